#include "gpu/bounded_calls.h"

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>

#include "base/own_thread.h"

namespace leadline::gpu {

struct BoundedCalls::Shared {
  std::mutex mutex;
  std::condition_variable changed;
  std::function<void()> call;
  std::uint64_t asked = 0;
  std::uint64_t done = 0;
  bool ending = false;

  bool is_busy() const { return done < asked; }

  void serve() {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [this] { return ending || is_busy(); });
      if (!is_busy()) return;
      std::function<void()> taken = std::exchange(call, nullptr);
      lock.unlock();
      try {
        taken();
      } catch (...) {  // whoever asked sees that nothing was answered
      }
      taken = nullptr;
      lock.lock();
      ++done;
      changed.notify_all();
    }
  }
};

BoundedCalls::BoundedCalls() : shared_(std::make_shared<Shared>()) {}

bool BoundedCalls::run(std::function<void()> call, std::chrono::milliseconds limit) {
  const auto until = std::chrono::steady_clock::now() + limit;
  std::unique_lock lock(shared_->mutex);
  // Not wait_until() on the condition variable of the steady clock: the thread sanitizer of GCC 12 does not know it.
  const auto wait = [&](const auto& over) {
    while (!over()) {
      const auto left = until - std::chrono::steady_clock::now();
      if (left <= std::chrono::steady_clock::duration::zero()) return false;
      shared_->changed.wait_until(lock, std::chrono::system_clock::now() + left);
    }
    return true;
  };
  if (!wait([this] { return !shared_->is_busy(); })) return false;
  try {
    if (!thread_.joinable()) thread_ = own_thread([shared = shared_] { shared->serve(); });
  } catch (...) {
    return false;
  }
  shared_->call = std::move(call);
  const std::uint64_t mine = ++shared_->asked;
  shared_->changed.notify_all();
  return wait([&] { return shared_->done >= mine; });
}

bool BoundedCalls::is_stuck() const noexcept {
  const std::lock_guard lock(shared_->mutex);
  return shared_->is_busy();
}

void BoundedCalls::abandon() noexcept {
  if (thread_.joinable()) thread_.detach();
}

BoundedCalls::~BoundedCalls() {
  if (!thread_.joinable()) return;
  bool stuck = false;
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->ending = true;
    stuck = shared_->is_busy();
  }
  shared_->changed.notify_all();
  stuck ? thread_.detach() : thread_.join();
}

}  // namespace leadline::gpu
