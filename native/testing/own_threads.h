// Threads of this process. The kernel lists one that was joined for a moment longer, so numbers of threads are never
// compared: what is asked for is which have come.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <set>
#include <string>
#include <thread>

namespace leadline::testing {

inline std::set<std::string> own_threads() {
  std::set<std::string> ids;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) ids.insert(task.path().filename());
  return ids;
}

inline std::size_t threads_since(const std::set<std::string>& before) {
  const std::set<std::string> now = own_threads();
  return static_cast<std::size_t>(
      std::count_if(now.begin(), now.end(), [&](const std::string& id) { return before.count(id) == 0; }));
}

// Whether all that came since have ended; false after ten seconds in which one did not.
inline bool none_left_since(const std::set<std::string>& before) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (threads_since(before) != 0) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace leadline::testing
