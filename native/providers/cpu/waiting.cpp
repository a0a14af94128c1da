#include "providers/cpu/waiting.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace leadline::cpu {
namespace {

constexpr long kIoCalls[] = {
    SYS_read,           SYS_pread64,         SYS_readv,           SYS_preadv,    SYS_write,       SYS_pwrite64,
    SYS_writev,         SYS_pwritev,         SYS_ppoll,           SYS_pselect6,  SYS_epoll_pwait, SYS_fsync,
    SYS_fdatasync,      SYS_openat,          SYS_sendfile,        SYS_splice,    SYS_msync,       SYS_close,
    SYS_io_getevents,   SYS_copy_file_range, SYS_sync_file_range, SYS_fallocate, SYS_statx,       SYS_newfstatat,
    SYS_recvfrom,       SYS_recvmsg,         SYS_recvmmsg,        SYS_sendto,    SYS_sendmsg,     SYS_accept,
    SYS_accept4,        SYS_connect,
#ifdef SYS_poll
    SYS_poll,           SYS_select,          SYS_epoll_wait,      SYS_open,      SYS_stat,
#endif
#ifdef SYS_io_uring_enter
    SYS_io_uring_enter,
#endif
};
// Calls whose first argument is a descriptor, which may be a socket.
constexpr long kOfDescriptor[] = {
    SYS_read,     SYS_readv,  SYS_write,   SYS_writev, SYS_sendfile, SYS_recvfrom, SYS_recvmsg,
    SYS_recvmmsg, SYS_sendto, SYS_sendmsg, SYS_accept, SYS_accept4,  SYS_connect,
};
constexpr long kSleepCalls[] = {SYS_nanosleep, SYS_clock_nanosleep};
constexpr long kChildCalls[] = {SYS_wait4, SYS_waitid};
constexpr long kLockCalls[] = {SYS_flock, SYS_semtimedop, SYS_semop, SYS_mq_timedreceive, SYS_mq_timedsend};

template <size_t N>
constexpr bool among(long call, const long (&calls)[N]) noexcept {
  for (const long one : calls) {
    if (call == one) return true;
  }
  return false;
}

// A wait for nothing but time: no file is named.
bool only_time(const InKernel& now) noexcept {
  if (now.call == SYS_ppoll) return now.arguments[1] == 0;
  if (now.call == SYS_pselect6) return now.arguments[0] == 0;
#ifdef SYS_poll
  if (now.call == SYS_poll) return now.arguments[1] == 0;
  if (now.call == SYS_select) return now.arguments[0] == 0;
#endif
  return false;
}

// A parent stands still until its child has begun another program: vfork, and clone as posix_spawn and subprocess call
// it. Of clone3 the flags are behind a pointer; a thread that waits there does so for the same reason.
bool until_child_begins(const InKernel& now) noexcept {
  constexpr uint64_t kVfork = 0x4000;  // CLONE_VFORK
#ifdef SYS_vfork
  if (now.call == SYS_vfork) return true;
#endif
#ifdef SYS_clone3
  if (now.call == SYS_clone3) return true;
#endif
  return now.call == SYS_clone && (now.arguments[0] & kVfork) != 0;
}

// Drivers of accelerators wait in ioctl; terminals answer at once.
bool of_device(const InKernel& now) noexcept { return now.call == SYS_ioctl; }

bool read_text(const char* form, pid_t tid, char* text, size_t room) noexcept {
  char path[64];
  snprintf(path, sizeof path, form, tid);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const ssize_t got = read(file, text, room - 1);
  close(file);
  if (got <= 0) return false;
  text[got] = '\0';
  return true;
}

// Another thread may close the descriptor meanwhile: then it is none. Sockets of AF_UNIX are pipes to another process.
bool is_network(uint64_t descriptor) noexcept {
  int domain = 0;
  socklen_t size = sizeof domain;
  return descriptor <= INT32_MAX &&
         getsockopt(static_cast<int>(descriptor), SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 &&
         (domain == AF_INET || domain == AF_INET6);
}

}  // namespace

// proc(5): "running", or number of the call (-1: none), six arguments and the stack pointer and program counter; with
// -1 only the last two.
bool parse_in_kernel(std::string_view line, InKernel* out) noexcept {
  *out = {};
  if (line.starts_with("running")) return true;
  char text[256];
  if (line.empty() || line.size() >= sizeof text) return false;
  std::memcpy(text, line.data(), line.size());
  text[line.size()] = '\0';
  char* at = text;
  char* end = nullptr;
  out->call = strtol(at, &end, 10);
  if (end == at) return false;
  out->running = false;
  if (out->call < 0) return true;
  for (uint64_t& argument : out->arguments) {
    at = end;
    argument = strtoull(at, &end, 16);
    if (end == at) return false;
  }
  return true;
}

bool read_in_kernel(pid_t tid, InKernel* out) noexcept {
  char text[256];
  if (!read_text("/proc/self/task/%d/syscall", tid, text, sizeof text) || !parse_in_kernel(text, out)) return false;
  out->network = !out->running && among(out->call, kOfDescriptor) && is_network(out->arguments[0]);
  return true;
}

Wait wait_of(const InKernel& now, bool (*is_own_lock)(uintptr_t address)) noexcept {
  if (now.running) return Wait::kRunning;
  if (now.call < 0) return Wait::kIo;
  if (now.call == SYS_futex) return is_own_lock != nullptr && is_own_lock(now.arguments[0]) ? Wait::kGil : Wait::kLock;
  if (among(now.call, kSleepCalls) || only_time(now)) return Wait::kSleep;
  if (now.network) return Wait::kNetwork;
  if (among(now.call, kIoCalls)) return Wait::kIo;
  if (among(now.call, kChildCalls) || until_child_begins(now)) return Wait::kChild;
  if (among(now.call, kLockCalls)) return Wait::kLock;
  if (of_device(now)) return Wait::kDevice;
  return Wait::kOther;
}

int64_t waited_for_core_ns(pid_t tid) noexcept {
  char text[128];
  if (!read_text("/proc/self/task/%d/schedstat", tid, text, sizeof text)) return -1;
  unsigned long long ran = 0;
  unsigned long long waited = 0;
  if (sscanf(text, "%llu %llu", &ran, &waited) != 2) return -1;
  return static_cast<int64_t>(waited);
}

}  // namespace leadline::cpu
