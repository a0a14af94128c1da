#include "providers/cpu/threads.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <system_error>

#include "base/abandon.h"
#include "base/clock.h"
#include "base/losses.h"
#include "monitor/monitor.h"
#include "providers/cpu/handler.h"
#include "unwind/rule_cache.h"

namespace leadline::cpu {
namespace {

constexpr auto kListing = std::chrono::milliseconds(50);
constexpr std::string_view kOwnThreads = "leadline-";  // their CPU time is the cost of measuring
constexpr uint32_t kForgetOwn = 64;  // listings after which they are told anew: numbers of threads come again
constexpr uint32_t kSilentListings = 4;
constexpr int64_t kDeafIntervals = 8;  // a thread that ran for so long without a sample is asked why

// The CPU clock of any thread of this process, as the kernel numbers it (posix-timers.h: CPUCLOCK_PERTHREAD | SCHED).
clockid_t clock_of(pid_t tid) noexcept { return (~static_cast<clockid_t>(tid) << 3) | 6; }

pid_t own_tid() noexcept { return static_cast<pid_t>(syscall(SYS_gettid)); }

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

bool Threads::start(double hz, std::string* why) {
  stop();
  signal_ = install_handler();
  if (signal_ == 0) {
    *why = "CPU samples need a real-time signal and the program uses all of them; measure without --cpu-sample.";
    return false;
  }
  hz_ = hz;
  {
    const std::lock_guard lock(booker_.lock());
    first_listing_ = true;
    own_.clear();
    paused_ = false;
    running_ = true;
    samples_ = 0;
    handlers_ns_ = 0;
    helper_ns_ = 0;
    refused_ = false;
    set_sampling(true);
    list();
    if (refused_ && std::none_of(all_.begin(), all_.end(), [](const SampledThread* one) { return one->has_timer; })) {
      running_ = false;
      set_sampling(false);
      *why = "CPU samples need timers on the CPU clocks of threads (timer_create), and this system refuses them.";
      return false;
    }
  }
  begin_helper();
  return true;
}

void Threads::stop() noexcept {
  if (!running_) return;
  end_helper();
  const std::lock_guard lock(booker_.lock());
  running_ = false;
  for (SampledThread* thread : all_) disarm(*thread);
  for (SampledThread* thread : all_) {
    if (thread->tid.load(std::memory_order_relaxed) != 0) part(*thread);
  }
  set_sampling(false);
}

void Threads::pause() noexcept {
  const std::lock_guard lock(booker_.lock());
  if (!running_ || paused_) return;
  paused_ = true;
  set_sampling(false);
  for (SampledThread* thread : all_) {
    if (thread->tid.load(std::memory_order_relaxed) == 0) continue;
    booker_.book(*thread);
    account(*thread, thread_cpu_ns(thread->clock));
  }
}

void Threads::resume() noexcept {
  const std::lock_guard lock(booker_.lock());
  if (!running_ || !paused_) return;
  paused_ = false;
  for (SampledThread* thread : all_) {
    const int64_t ran_ns = thread_cpu_ns(thread->clock);
    if (thread->tid.load(std::memory_order_relaxed) != 0 && ran_ns >= 0) thread->accounted_ns.store(ran_ns);
  }
  set_sampling(true);
}

void Threads::rest() noexcept {
  if (running_) end_helper();
}

void Threads::wake() {
  if (running_) begin_helper();
}

void Threads::forget() noexcept {
  set_sampling(false);
  waiting_samples().store(0);
  abandon(all_);
  abandon(own_);
  abandon(waking_);
  abandon(wake_);
  abandon(helper_);
  running_ = false;
}

void Threads::book_waiting() noexcept {
  if (waiting_samples().load(std::memory_order_acquire) <= 0) return;
  const std::lock_guard lock(booker_.lock());
  for (SampledThread* thread : all_) booker_.book(*thread);
}

Threads::Count Threads::count() const noexcept {
  const std::lock_guard lock(booker_.lock());
  Count count{samples_, handlers_ns_, helper_ns_.load(std::memory_order_relaxed), parted_};
  for (const SampledThread* thread : all_) {
    if (thread->tid.load(std::memory_order_relaxed) == 0) continue;
    count.samples += thread->taken.load(std::memory_order_relaxed);
    count.handlers_ns += thread->handlers_ns.load(std::memory_order_relaxed);
    ++count.threads;
  }
  return count;
}

// ---------------------------------------------------------------- the helper thread

void Threads::begin_helper() {
  if (helper_.joinable()) return;
  ending_ = false;
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // the program's signals are not for this thread
  try {
    helper_ = std::thread([this] { run(); });
    pthread_setname_np(helper_.native_handle(), "leadline-cpu");
  } catch (const std::system_error&) {
    losses().count(LossKind::kInternalError, 1,
                   "No thread for CPU samples could be started (see ulimit -u); later threads are not sampled.");
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Threads::end_helper() noexcept {
  if (!helper_.joinable()) return;
  {
    const std::lock_guard lock(waking_);
    ending_ = true;
  }
  wake_.notify_all();
  helper_.join();
  // A joined thread may still be listed for a moment. Python warns of a fork when it sees more than one thread.
  char path[64];
  snprintf(path, sizeof path, "/proc/self/task/%d", helper_tid_.load());
  for (int tries = 0; tries < 1000 && access(path, F_OK) == 0; ++tries) sched_yield();
}

void Threads::run() {
  helper_tid_.store(own_tid());
  const int64_t before_ns = helper_ns_.load();
  for (;;) {
    {
      std::unique_lock waiting(waking_);
      if (wake_.wait_for(waiting, kListing, [this] { return ending_; })) return;
    }
    const std::lock_guard lock(booker_.lock());
    try {
      list();
    } catch (...) {
      losses().count(LossKind::kInternalError, 1, "threads could not be listed for want of memory");
    }
    helper_ns_.store(before_ns + thread_cpu_ns(), std::memory_order_relaxed);
  }
}

void Threads::list() {
  if (!handler_in_place()) arm_anew();
  if (samples_native()) unwind::renew();
  for (SampledThread* thread : all_) thread->seen = false;
  if (++listings_ % kForgetOwn == 0) own_.clear();
  DIR* const tasks = opendir("/proc/self/task");
  if (tasks == nullptr) return;
  while (const dirent* entry = readdir(tasks)) {
    const auto tid = static_cast<pid_t>(strtol(entry->d_name, nullptr, 10));
    if (tid <= 0) continue;
    SampledThread* thread = known(tid);
    // A number may be given to another thread at once: its clock begins anew.
    if (thread != nullptr && thread_cpu_ns(thread->clock) < thread->ran_ns) {
      part(*thread);
      thread = nullptr;
    }
    if (thread == nullptr) {
      meet(tid, !first_listing_);
    } else {
      thread->seen = true;
      look_at(*thread);
    }
  }
  closedir(tasks);
  for (SampledThread* thread : all_) {
    if (thread->tid.load(std::memory_order_relaxed) != 0 && !thread->seen) part(*thread);
  }
  first_listing_ = false;
}

SampledThread* Threads::known(pid_t tid) noexcept {
  for (SampledThread* thread : all_) {
    if (thread->tid.load(std::memory_order_relaxed) == tid) return thread;
  }
  return nullptr;
}

SampledThread* Threads::fresh() {
  for (SampledThread* thread : all_) {
    if (thread->tid.load(std::memory_order_relaxed) == 0) return thread;
  }
  if (all_.size() >= kMost) return nullptr;
  auto made = std::make_unique<SampledThread>();
  all_.push_back(made.get());
  add_sampled(made.get(), 1);
  return made.release();
}

void Threads::meet(pid_t tid, bool new_born) {
  if (std::find(own_.begin(), own_.end(), tid) != own_.end()) return;
  std::string name = name_of(tid);
  if (name.starts_with(kOwnThreads)) return own_.push_back(tid);
  SampledThread* const thread = fresh();
  if (thread == nullptr) {
    losses().count(LossKind::kSamplesMissing, 1, "more threads at a time than are sampled");
    return;
  }
  thread->name = tid == getpid() ? "main" : std::move(name);
  thread->clock = clock_of(tid);
  const int64_t ran_ns = std::max<int64_t>(thread_cpu_ns(thread->clock), 0);
  thread->accounted_ns.store(new_born && !paused_ ? 0 : ran_ns);
  thread->handlers_ns.store(0);
  thread->taken.store(0);
  thread->over.store(false);
  thread->marked = false;
  thread->deaf = false;
  thread->silent = 0;
  thread->taken_before = 0;
  thread->ran_ns = ran_ns;
  thread->unbooked_ns = 0;
  thread->last = 0;
  thread->places.clear();
  thread->root = Monitor::instance().thread_place(static_cast<uint64_t>(tid), thread->name, thread->clock, new_born);
  thread->seen = true;
  thread->tid.store(tid, std::memory_order_release);
  if (!arm(*thread)) refused_ = true;
}

void Threads::look_at(SampledThread& thread) {
  booker_.book(thread);
  const int64_t ran_ns = thread_cpu_ns(thread.clock);
  if (ran_ns < 0 || paused_) return;
  thread.ran_ns = ran_ns;
  const int64_t waiting_ns = ran_ns - thread.accounted_ns.load(std::memory_order_relaxed);
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
                          : " could not be given a timer, so what it ran is booked at the "
                            "thread itself.");
    losses().count(LossKind::kSamplesMissing, 1, sentence);
  }
  if (waiting_ns > 0) {
    thread.accounted_ns.fetch_add(waiting_ns, std::memory_order_relaxed);
    booker_.book_unseen(thread, waiting_ns);
  }
}

// It has ended, or is sampled no more.
void Threads::part(SampledThread& thread) noexcept {
  disarm(thread);
  booker_.book(thread);
  const int64_t now_ns = thread.over.load(std::memory_order_acquire)
                             ? thread.ran_at_end_ns.load(std::memory_order_relaxed)
                             : std::max(thread_cpu_ns(thread.clock), thread.ran_ns);
  if (!paused_) account(thread, now_ns);
  Monitor::instance().thread_over(static_cast<uint64_t>(thread.tid.load()), now_ns);
  samples_ += thread.taken.load();
  handlers_ns_ += thread.handlers_ns.load();
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
  if (timer_settime(thread.timer, 0, &every, nullptr) == 0) return true;
  disarm(thread);
  return false;
}

void Threads::disarm(SampledThread& thread) noexcept {
  if (thread.has_timer) timer_delete(thread.timer);
  thread.has_timer = false;
}

// The program has taken our signal for itself.
void Threads::arm_anew() noexcept {
  signal_ = install_handler();
  for (SampledThread* thread : all_) {
    if (thread->tid.load(std::memory_order_relaxed) == 0) continue;
    disarm(*thread);
    if (signal_ != 0) arm(*thread);
  }
}

// What a thread has run up to now belongs to where it was seen last.
void Threads::account(SampledThread& thread, int64_t ran_ns) noexcept {
  const int64_t rest_ns = ran_ns - thread.accounted_ns.load(std::memory_order_relaxed);
  if (rest_ns > 0) thread.accounted_ns.fetch_add(rest_ns, std::memory_order_relaxed);
  booker_.book_rest(thread, rest_ns);
}

}  // namespace leadline::cpu
