// Calls into a vendor's library that may never come back, made by a thread of ours, so that whoever needs the answer
// waits no longer than it wants.
//
// A call that is not back in time is left where it is: its thread cannot be ended, what it uses must live as long as
// the process, and until it is back no other call is made.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <thread>

namespace leadline::gpu {

class BoundedCalls {
 public:
  BoundedCalls();
  ~BoundedCalls();
  BoundedCalls(const BoundedCalls&) = delete;
  BoundedCalls& operator=(const BoundedCalls&) = delete;

  // Any thread; one call at a time. False: it was not back within `limit`, or not made because an earlier one is not
  // back, or no thread can be had.
  bool run(std::function<void()> call, std::chrono::milliseconds limit);
  // A call is not back: what it uses must not be freed.
  bool is_stuck() const noexcept;
  // The child of a fork: the thread is not here.
  void abandon() noexcept;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;  // also the thread's, which may outlive this
  std::thread thread_;
};

}  // namespace leadline::gpu
