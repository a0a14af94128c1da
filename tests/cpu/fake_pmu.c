// A processor with two counters, for machines without any: preloaded, it answers perf_event_open for hardware events.
//
// FAKE_PMU=group: counters of a group count all of the time. FAKE_PMU=turns: a group of two does not fit, and each
// alone is on the processor for half of the time. FAKE_PMU=zero: events open and never count. Cycles are three for each
// nanosecond of the thread's CPU time, instructions six, raw events as many as their code says.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { kMost = 1024 };

struct event {
  int open;
  int leader;
  pid_t tid;
  uint64_t rate;
  uint64_t begun_ns;
  uint64_t last_ns;  // of a thread that has ended, the kernel keeps what it counted
};
static struct event events[kMost];

static uint64_t ran_ns(pid_t tid) {
  struct timespec t;
  if (clock_gettime(((~(clockid_t)tid) << 3) | 6, &t) != 0) return 0;
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int is(const char* mode) {
  const char* const chosen = getenv("FAKE_PMU");
  return chosen != NULL && strcmp(chosen, mode) == 0;
}

static int open_event(const struct perf_event_attr* wanted, pid_t tid, int leader) {
  const int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (file < 0 || file >= kMost) return -1;
  if (tid == 0) tid = (pid_t)syscall(SYS_gettid);
  const uint64_t rate = wanted->type == PERF_TYPE_RAW                   ? wanted->config
                        : wanted->config == PERF_COUNT_HW_CPU_CYCLES ? 3
                                                                     : 6;
  events[file] = (struct event){1, leader, tid, rate, ran_ns(tid), ran_ns(tid)};
  return file;
}

long syscall(long number, ...) {
  static long (*real)(long, ...);
  if (real == NULL) real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
  va_list list;
  va_start(list, number);
  long a[6];
  for (int i = 0; i < 6; ++i) a[i] = va_arg(list, long);
  va_end(list);
  if (number == SYS_perf_event_open) {
    const struct perf_event_attr* const wanted = (const struct perf_event_attr*)a[0];
    if (wanted->type == PERF_TYPE_RAW ||
        (wanted->type == PERF_TYPE_HARDWARE && wanted->config <= PERF_COUNT_HW_INSTRUCTIONS))
      return open_event(wanted, (pid_t)a[1], (int)a[3]);
  }
  return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int ioctl(int file, unsigned long request, ...) {
  static int (*real)(int, unsigned long, ...);
  if (real == NULL) real = (int (*)(int, unsigned long, ...))dlsym(RTLD_NEXT, "ioctl");
  va_list list;
  va_start(list, request);
  void* const argument = va_arg(list, void*);
  va_end(list);
  if (request == PERF_EVENT_IOC_ID && file >= 0 && file < kMost && events[file].open) {
    *(uint64_t*)argument = 1000u + (unsigned)file;
    return 0;
  }
  return real(file, request, argument);
}

ssize_t read(int file, void* to, size_t bytes) {
  static ssize_t (*real)(int, void*, size_t);
  if (real == NULL) real = (ssize_t(*)(int, void*, size_t))dlsym(RTLD_NEXT, "read");
  if (file < 0 || file >= kMost || !events[file].open) return real(file, to, bytes);
  struct event* const leader = &events[file];
  uint64_t answer[3 + kMost];
  const uint64_t now = ran_ns(leader->tid);
  if (now > leader->last_ns) leader->last_ns = now;
  const uint64_t enabled = leader->last_ns - leader->begun_ns;
  uint64_t count = 0;
  for (int i = 0; i < kMost; ++i) {
    const struct event* const one = &events[i];
    if (!one->open || (i != file && one->leader != file)) continue;
    answer[3 + count++] = is("zero") ? 0 : one->rate * (is("turns") ? enabled / 2 : enabled);
  }
  answer[0] = count;
  answer[1] = enabled;
  answer[2] = is("group") || is("zero") ? enabled : count > 1 ? 0 : enabled / 2;
  const size_t size = (3 + count) * sizeof answer[0];
  memcpy(to, answer, size < bytes ? size : bytes);
  return (ssize_t)size;
}

int close(int file) {
  static int (*real)(int);
  if (real == NULL) real = (int (*)(int))dlsym(RTLD_NEXT, "close");
  if (file >= 0 && file < kMost) events[file].open = 0;
  return real(file);
}
