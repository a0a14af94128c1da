// What a thread waits for, as the kernel sees it: from the system call that it is in. No signal, no lock.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <string_view>

namespace leadline::cpu {

enum class Wait : uint8_t {
  kRunning,  // or about to
  kGil,      // the interpreter's lock
  kLock,
  kIo,
  kSleep,
  kChild,
  kDevice,
  kCore,     // it could run, and others did
  kNetwork,  // a socket
  kOther,    // another system call, or not known
};
inline constexpr size_t kWaits = 10;

// As a frame names it.
constexpr std::string_view to_text(Wait wait) noexcept {
  constexpr std::array<std::string_view, kWaits> kTexts{"running",
                                                        "[waits for the GIL]",
                                                        "[waits for a lock]",
                                                        "[waits for input or output]",
                                                        "[sleeps]",
                                                        "[waits for a child]",
                                                        "[waits for a device]",
                                                        "[waits for a core]",
                                                        "[waits for the network]",
                                                        "[waits in the kernel]"};
  return kTexts[static_cast<size_t>(wait)];
}
constexpr std::string_view to_word(Wait wait) noexcept {
  constexpr std::array<std::string_view, kWaits> kWords{"running", "gil",    "lock", "io",      "sleep",
                                                        "child",   "device", "core", "network", "other"};
  return kWords[static_cast<size_t>(wait)];
}

// Where a thread stands in the kernel.
struct InKernel {
  bool running = true;
  bool network = false;  // on a socket that leaves the machine, or could
  long call = -1;        // number of its system call; -1: waiting outside of one (a page that comes from the disk)
  std::array<uint64_t, 6> arguments{};
};

// From a line of /proc/PID/task/TID/syscall; false where it is none.
bool parse_in_kernel(std::string_view line, InKernel* out) noexcept;
// Of a thread of this process. False where the system does not say, or the thread has ended.
bool read_in_kernel(pid_t tid, InKernel* out) noexcept;
// `is_own_lock`: whether an address is a lock that the interpreter keeps for itself; may be nullptr.
Wait wait_of(const InKernel& now, bool (*is_own_lock)(uintptr_t address)) noexcept;

// How long a thread has waited for a core up to now; -1 where the system does not say.
int64_t waited_for_core_ns(pid_t tid) noexcept;

}  // namespace leadline::cpu
