// A file in which the kernel counts what one thread does, of perf_event_open().
//
// A program may close all files and open its own under the same numbers: those are told apart and left alone.
#pragma once

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdint>

namespace leadline::cpu {

class PerfFile {
 public:
  // `leader`: the number of the file of its group, -1 where it is the first. False where the kernel refuses.
  bool open(const perf_event_attr& wanted, pid_t tid, int leader = -1) noexcept {
    perf_event_attr attributes = wanted;
    number_ = static_cast<int>(syscall(SYS_perf_event_open, &attributes, tid, -1, leader, PERF_FLAG_FD_CLOEXEC));
    if (number_ >= 0 && ioctl(number_, PERF_EVENT_IOC_ID, &id_) != 0) id_ = 0;
    return number_ >= 0;
  }
  void close() noexcept {
    if (is_ours()) ::close(number_);
    number_ = -1;
  }
  // Signal-safe.
  bool is_ours() const noexcept {
    uint64_t id = 0;
    return number_ >= 0 && ioctl(number_, PERF_EVENT_IOC_ID, &id) == 0 && id == id_;
  }
  int number() const noexcept { return number_; }  // -1: it is not open

 private:
  int number_ = -1;
  uint64_t id_ = 0;
};

}  // namespace leadline::cpu
