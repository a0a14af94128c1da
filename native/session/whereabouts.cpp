#include "session/whereabouts.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <string>
#include <vector>

#include "base/clock.h"
#include "monitor/monitor.h"

namespace leadline {
namespace {

constexpr size_t kBytes = size_t{256} << 10;
constexpr size_t kMostThreads = 1024;
constexpr size_t kMostFrames = 512;

// `T 4711`, then a line for each frame: number of its kind, name, file, line, set apart by tabs.
void describe(const leadline_thread& thread, std::string* text) {
  std::vector<leadline_frame> frames(kMostFrames);
  size_t count = frames.size();
  if (thread.place == 0) return;
  const leadline_status status = Monitor::instance().path_to(thread.place, frames.data(), &count);
  if (status != LEADLINE_OK) return;
  *text += "T " + std::to_string(thread.tid) + "\n";
  for (size_t i = 0; i < count; ++i) {
    const leadline_frame& frame = frames[i];
    std::string line = std::to_string(frame.kind);
    for (const char* part : {frame.name, frame.file}) {
      line += '\t';
      for (const char* at = part == nullptr ? "" : part; *at != '\0'; ++at)
        line += *at == '\t' || *at == '\n' ? ' ' : *at;
    }
    *text += line + '\t' + std::to_string(frame.line) + '\n';
  }
}

}  // namespace

// Odd while it is written, as a reader outside has no other way to know.
struct Whereabouts::Head {
  std::atomic<uint64_t> changes;
  int64_t time_ns;  // CLOCK_MONOTONIC
  uint64_t bytes;
};

bool Whereabouts::begin() noexcept {
  if (head_ != nullptr) return true;
  const int file = memfd_create("leadline-whereabouts", MFD_CLOEXEC);
  if (file < 0) return false;
  void* memory = MAP_FAILED;
  if (ftruncate(file, static_cast<off_t>(kBytes)) == 0)
    memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED) return false;
  madvise(memory, kBytes, MADV_DONTFORK);
  head_ = static_cast<Head*>(memory);
  return true;
}

void Whereabouts::publish() noexcept try {
  std::vector<leadline_thread> threads(kMostThreads);
  size_t count = threads.size();
  if (Monitor::instance().threads(threads.data(), &count) != LEADLINE_OK) return;
  std::string text;
  for (size_t i = 0; i < count; ++i) describe(threads[i], &text);
  if (!begin()) return;
  constexpr size_t kRoom = kBytes - sizeof(Head);
  if (text.size() > kRoom) text.resize(text.rfind('\n', kRoom - 1) + 1);
  head_->changes.fetch_add(1, std::memory_order_acq_rel);
  head_->time_ns = now_ns();
  head_->bytes = text.size();
  std::memcpy(reinterpret_cast<char*>(head_) + sizeof(Head), text.data(), text.size());
  head_->changes.fetch_add(1, std::memory_order_release);
} catch (...) {
  return;  // for want of memory
}

void Whereabouts::forget() noexcept {
  if (head_ != nullptr) munmap(head_, kBytes);
  head_ = nullptr;
}

}  // namespace leadline
