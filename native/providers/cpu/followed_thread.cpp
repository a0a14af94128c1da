// What happens with one thread: it is met, given its timer and counters, looked at, and let go.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/clock.h"
#include "base/losses.h"
#include "monitor/monitor.h"
#include "providers/cpu/handler.h"
#include "providers/cpu/threads.h"

namespace leadline::cpu {
namespace {

constexpr std::string_view kOwnThreads = "leadline-";  // their CPU time is the cost of measuring
constexpr uint32_t kSilentListings = 4;
constexpr int64_t kDeafIntervals = 8;  // a thread that ran for so long without a sample is asked why

std::string read_file(const char* path) {
  char text[4096];
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  const ssize_t got = read(file, text, sizeof text);
  close(file);
  return got > 0 ? std::string(text, static_cast<size_t>(got)) : std::string();
}

std::string name_of(pid_t tid) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/task/%d/comm", tid);
  std::string name = read_file(path);
  if (!name.empty() && name.back() == '\n') name.pop_back();
  return name;
}

bool blocks(pid_t tid, int signal) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/task/%d/status", tid);
  const std::string status = read_file(path);
  const size_t at = status.find("SigBlk:");
  if (at == std::string::npos) return false;
  const uint64_t mask = strtoull(status.c_str() + at + 7, nullptr, 16);
  return (mask >> (signal - 1) & 1) != 0;
}

}  // namespace

bool is_our_name(pid_t tid) { return name_of(tid).starts_with(kOwnThreads); }

void Threads::meet(pid_t tid, bool new_born) {
  if (is_own(tid)) return;
  std::string name = name_of(tid);
  if (name.starts_with(kOwnThreads))
    return own_.push_back({tid, new_born ? 0 : std::max<int64_t>(thread_cpu_ns(cpu_clock_of(tid)), 0)});
  SampledThread* const thread = fresh();
  if (thread == nullptr) {
    losses().count(LossKind::kSamplesMissing, 1, "more threads at a time than are sampled");
    return;
  }
  thread->name = tid == getpid() ? "main" : std::move(name);
  thread->clock = cpu_clock_of(tid);
  const int64_t ran_ns = std::max<int64_t>(thread_cpu_ns(thread->clock), 0);
  thread->accounted_ns.store(new_born && !paused_ ? 0 : ran_ns);
  thread->handlers_ns.store(0);
  thread->paid_at_ns = 0;
  thread->taken.store(0);
  thread->over.store(false);
  thread->marked = false;
  thread->deaf = false;
  thread->silent = 0;
  thread->taken_before = 0;
  thread->ran_ns = ran_ns;
  thread->unbooked_ns = 0;
  thread->unbooked_counts = {};
  thread->own_minor.store(0);
  thread->own_major.store(0);
  thread->last = 0;
  thread->places.clear();
  thread->root = Monitor::instance().thread_place(static_cast<uint64_t>(tid), thread->name, thread->clock, new_born);
  thread->seen = true;
  thread->tid.store(tid, std::memory_order_release);
  if (const CounterPlan* const wanted = plan(); wanted != nullptr) {
    if (!thread->files.open(*wanted, tid))
      losses().count(LossKind::kSamplesMissing, 1, "counters of a thread could not be opened (see ulimit -n)");
    thread->books.begin(new_born && !paused_ ? CounterWords{} : counted(*thread));
  }
  thread->wait = {};
  if (with_waits_ && !paused_) Waits::begin(*thread);
  if (has_signal_stack(tid) && !arm(*thread)) refused_ = true;
}

void Threads::look_at(SampledThread& thread) {
  booker_.book(thread);
  if (thread.on_time_ns.load(std::memory_order_relaxed) != 0 && !thread.task_clock.is_open())
    thread.on_time_ns.store(0, std::memory_order_relaxed);
  const int64_t ran_ns = thread_cpu_ns(thread.clock);
  if (ran_ns < 0 || paused_) return;
  thread.ran_ns = ran_ns;
  const int64_t waiting_ns = ran_ns - thread.accounted_ns.load(std::memory_order_relaxed);
  if (!thread.has_timer && has_signal_stack(thread.tid.load(std::memory_order_relaxed)) && arm(thread))
    thread.deaf = false;
  if (!thread.deaf) {
    if (static_cast<double>(waiting_ns) * hz_ < static_cast<double>(kDeafIntervals) * 1e9) return;
    // The handler blocks the signal too while it runs, so once is not enough.
    const uint32_t taken = thread.taken.load(std::memory_order_relaxed);
    const bool silent = !thread.has_timer ||
                        (taken == thread.taken_before && blocks(thread.tid.load(std::memory_order_relaxed), signal_));
    thread.taken_before = taken;
    thread.silent = silent ? thread.silent + 1 : 0;
    if (thread.silent < kSilentListings) return;
    thread.deaf = true;
    const std::string sentence =
        "The thread " + thread.name +
        (thread.has_timer ? " blocks all signals, so what it ran is booked at the thread itself."
         : has_signal_stack(thread.tid.load(std::memory_order_relaxed))
             ? " could not be given a timer, so what it ran is booked at the thread itself."
             : " began before measuring and can not be interrupted safely, so what it ran is booked at the thread "
               "itself.");
    losses().count(LossKind::kSamplesMissing, 1, sentence);
  }
  if (waiting_ns > 0) {
    thread.accounted_ns.fetch_add(waiting_ns, std::memory_order_relaxed);
    booker_.book_unseen(thread, waiting_ns);
  }
}

// It has ended, or is sampled no more: then what it runs is still known to the monitor's user, and its row is the same
// when it is sampled again.
void Threads::part(SampledThread& thread) noexcept {
  disarm(thread);
  booker_.book(thread);
  const int64_t now_ns = thread.over.load(std::memory_order_acquire)
                             ? thread.ran_at_end_ns.load(std::memory_order_relaxed)
                             : std::max(thread_cpu_ns(thread.clock), thread.ran_ns);
  if (!paused_) account(thread, now_ns);
  waits_.rest(thread);
  thread.files.close();
  const bool over = thread.over.load(std::memory_order_acquire) || thread_cpu_ns(thread.clock) < 0;
  // Also of one that goes on: at the end of a program it may be over before the collector looks for the last time.
  Monitor::instance().thread_ran(static_cast<uint64_t>(thread.tid.load()), now_ns, over);
  samples_ += thread.taken.load();
  handlers_ns_ += thread.handlers_ns.load();
  scaled_ = scaled_ || thread.books.scaled();
  ++parted_;
  thread.tid.store(0, std::memory_order_release);
}

bool Threads::arm(SampledThread& thread) noexcept {
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = signal_;
  event.sigev_value.sival_ptr = &thread;
  event._sigev_un._tid = thread.tid.load(std::memory_order_relaxed);
  thread.has_timer = timer_create(thread.clock, &event, &thread.timer) == 0;
  if (!thread.has_timer) return false;
  const auto interval_ns = static_cast<int64_t>(1e9 / hz_);
  itimerspec every{};
  every.it_interval.tv_sec = interval_ns / 1'000'000'000;
  every.it_interval.tv_nsec = interval_ns % 1'000'000'000;
  every.it_value = every.it_interval;
  if (timer_settime(thread.timer, 0, &every, nullptr) != 0) {
    disarm(thread);
    return false;
  }
  const pid_t tid = thread.tid.load(std::memory_order_relaxed);
  const bool on_time = with_task_clocks_ && thread.task_clock.open(tid, interval_ns, kTaskClockSignal);
  thread.on_time_ns.store(on_time ? interval_ns : 0, std::memory_order_relaxed);
  return true;
}

void Threads::disarm(SampledThread& thread) noexcept {
  thread.on_time_ns.store(0, std::memory_order_relaxed);
  thread.task_clock.close();
  if (thread.has_timer) timer_delete(thread.timer);
  thread.has_timer = false;
}

// The program has taken a signal of ours for itself.
void Threads::arm_anew() noexcept {
  signal_ = install_handler();
  with_task_clocks_ = with_task_clocks_ && task_clock_handled();
  for (SampledThread* thread : all_) {
    if (thread->tid.load(std::memory_order_relaxed) == 0) continue;
    disarm(*thread);
    if (signal_ != 0 && has_signal_stack(thread->tid.load(std::memory_order_relaxed))) arm(*thread);
  }
}

// From outside; what cannot be read is zero, which is no news.
CounterWords Threads::counted(const SampledThread& thread) noexcept {
  CounterWords words{};
  const CounterPlan* const wanted = plan();
  if (wanted == nullptr) return words;
  Usage usage;
  if (thread.over.load(std::memory_order_acquire)) {
    put_usage(*wanted, thread.used_at_end, words.data());
  } else if (wanted->uses_usage() && usage_of(thread.tid.load(std::memory_order_relaxed), &usage)) {
    put_usage(*wanted, without(usage, thread.own_minor.load(), thread.own_major.load()), words.data());
  }
  thread.files.read(*wanted, words.data());
  return words;
}

// What a thread has run and counted up to now belongs to where it was seen last.
void Threads::account(SampledThread& thread, int64_t ran_ns) noexcept {
  if (plan() != nullptr) Booker::count(thread, counted(thread).data());
  const int64_t rest_ns = ran_ns - thread.accounted_ns.load(std::memory_order_relaxed);
  if (rest_ns > 0) thread.accounted_ns.fetch_add(rest_ns, std::memory_order_relaxed);
  booker_.book_rest(thread, rest_ns);
}

}  // namespace leadline::cpu
