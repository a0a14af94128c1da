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
#include "base/own_thread.h"
#include "base/steps_ended.h"
#include "monitor/monitor.h"
#include "providers/cpu/handler.h"
#include "unwind/rule_cache.h"

namespace leadline::cpu {
namespace {

constexpr auto kListing = std::chrono::microseconds(50'000);
constexpr double kSamplesAListing = 100;  // so that rings do not fill up
constexpr uint32_t kForgetOwn = 64;       // listings after which they are told anew: numbers of threads come again
constexpr int64_t kLeastUnseen = 10'000'000;
// The first second of steps is looked at more closely, so that a run of a tenth of a second has looks enough to say
// what its threads wait for.
constexpr auto kFirstLook = std::chrono::microseconds(10'000);
constexpr uint32_t kFirstLooks = 100;

pid_t own_tid() noexcept { return static_cast<pid_t>(syscall(SYS_gettid)); }

// The next program would end of a signal that waits for this thread, which blocks it, since it has no handler for it.
void drop_pending() noexcept {
  sigset_t ours;
  sigset_t blocked;
  sigemptyset(&ours);
  sigaddset(&ours, kTaskClockSignal);
  const timespec now{};
  if (pthread_sigmask(SIG_BLOCK, nullptr, &blocked) == 0 && sigismember(&blocked, kTaskClockSignal) == 1)
    sigtimedwait(&ours, nullptr, &now);
}

}  // namespace

bool Threads::start(double hz, double wait_hz, std::string* why) {
  stop();
  signal_ = install_handler();
  if (signal_ == 0) {
    *why = "CPU samples need a real-time signal and the program uses all of them; measure without --cpu-sample.";
    return false;
  }
  with_task_clocks_ = handle_task_clock();
  hz_ = hz;
  with_waits_ = wait_hz > 0;
  interval_ = std::min(kListing, std::chrono::microseconds(static_cast<int64_t>(1e6 * kSamplesAListing / hz)));
  wait_interval_ns_ = with_waits_ ? static_cast<int64_t>(1e9 / wait_hz) : 0;
  look_at_ns_ = 0;
  first_step_ = g_steps_ended.load(std::memory_order_relaxed);
  close_looks_ = 0;
  if (with_waits_) interval_ = std::min(interval_, std::chrono::microseconds(static_cast<int64_t>(1e6 / wait_hz)));
  stacks_.open();
  {
    const std::lock_guard lock(booker_.lock());
    first_listing_ = true;
    own_.clear();
    own_ns_ = 0;
    booker_.begin_sum();
    paused_ = false;
    running_ = true;
    samples_ = 0;
    handlers_ns_ = 0;
    helper_ns_ = 0;
    refused_ = false;
    set_sampling(true);
    list();
    // The process's clock is read inside of what the threads' are: rather a little less than what was unseen.
    process_begin_ns_ = thread_cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
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
  const int64_t process_ns = paused_ ? process_paused_ns_ : thread_cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
  for (SampledThread* thread : all_) disarm(*thread);
  drop_pending();
  for (SampledThread* thread : all_) {
    if (thread->tid.load(std::memory_order_relaxed) != 0) part(*thread);
  }
  count_unseen(process_ns);
  set_sampling(false);
  stacks_.close();
}

// What threads without samples ran before the first listing that meets them, or after the last, is in no figure.
void Threads::count_unseen(int64_t process_ns) noexcept {
  if (!paused_) look_at_own();
  const int64_t ran_ns = process_ns - process_begin_ns_;
  const int64_t unseen_ns = ran_ns - own_ns_ - helper_ns_.load() - handlers_ns_ - booker_.sum_ns();
  if (unseen_ns < std::max<int64_t>(kLeastUnseen, ran_ns / 100))
    return;  // clocks of threads are read one after another
  char sentence[200];
  snprintf(sentence, sizeof sentence,
           "%.3g s of CPU time were run by threads that ended before they were seen (within %d ms), or that block all "
           "signals and ended after they were seen last; they are in no figure.",
           static_cast<double>(unseen_ns) / 1e9, static_cast<int>(kListing.count() / 1000));
  losses().count(LossKind::kSamplesMissing, 1, sentence);
}

void Threads::pause() noexcept {
  const std::lock_guard lock(booker_.lock());
  if (!running_ || paused_) return;
  paused_ = true;
  process_paused_ns_ = thread_cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
  look_at_own();
  set_sampling(false);
  for (SampledThread* thread : all_) {
    if (thread->tid.load(std::memory_order_relaxed) == 0) continue;
    booker_.book(*thread);
    account(*thread, thread_cpu_ns(thread->clock));
    waits_.rest(*thread);
  }
}

void Threads::resume() noexcept {
  const std::lock_guard lock(booker_.lock());
  if (!running_ || !paused_) return;
  paused_ = false;
  for (Own& one : own_) one.ran_ns = thread_cpu_ns(cpu_clock_of(one.tid));
  for (SampledThread* thread : all_) {
    const int64_t ran_ns = thread_cpu_ns(thread->clock);
    if (thread->tid.load(std::memory_order_relaxed) == 0) continue;
    if (ran_ns >= 0) thread->accounted_ns.store(ran_ns);
    thread->books.begin(counted(*thread));
    if (with_waits_) Waits::begin(*thread);
  }
  process_begin_ns_ += thread_cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - process_paused_ns_;
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
  for (SampledThread* thread : all_) {
    thread->files.close();
    thread->task_clock.forget();
  }
  waiting_samples().store(0);
  stacks_.abandon();
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
  Count count{samples_, handlers_ns_, helper_ns_.load(std::memory_order_relaxed), parted_, scaled_};
  for (const SampledThread* thread : all_) {
    if (thread->tid.load(std::memory_order_relaxed) == 0) continue;
    count.samples += thread->taken.load(std::memory_order_relaxed);
    count.handlers_ns += thread->handlers_ns.load(std::memory_order_relaxed);
    count.scaled = count.scaled || thread->books.scaled();
    ++count.threads;
  }
  return count;
}

// ---------------------------------------------------------------- the helper thread

void Threads::begin_helper() {
  if (helper_.joinable()) return;
  ending_ = false;
  try {
    helper_ = own_thread([this] { run(); });
    pthread_setname_np(helper_.native_handle(), "leadline-cpu");
  } catch (const std::system_error&) {
    losses().count(LossKind::kInternalError, 1,
                   "No thread for CPU samples could be started (see ulimit -u); later threads are not sampled.");
  }
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
      const auto interval = looks_closely() ? std::min(interval_, kFirstLook) : interval_;
      if (wake_.wait_for(waiting, interval, [this] { return ending_; })) return;
    }
    const std::lock_guard lock(booker_.lock());
    try {
      list();
    } catch (...) {
      losses().count(LossKind::kInternalError, 1, "threads could not be listed because memory ran out");
    }
    helper_ns_.store(before_ns + thread_cpu_ns(), std::memory_order_relaxed);
  }
}

bool Threads::looks_closely() const noexcept {
  return with_waits_ && close_looks_ < kFirstLooks && g_steps_ended.load(std::memory_order_relaxed) != first_step_;
}

void Threads::list() {
  if (!handler_in_place() || (with_task_clocks_ && !task_clock_handled())) arm_anew();
  if (samples_native()) unwind::renew();
  for (SampledThread* thread : all_) thread->seen = false;
  const int64_t now = now_ns();
  const bool closely = looks_closely();
  const bool look = with_waits_ && !paused_ && (closely || now >= look_at_ns_);
  if (look && closely) ++close_looks_;
  if (look) look_at_ns_ = now + wait_interval_ns_ / 2;  // listings come late, never early
  if (!paused_) look_at_own();
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
      if (look) waits_.look(*thread);
    }
  }
  closedir(tasks);
  for (SampledThread* thread : all_) {
    if (thread->tid.load(std::memory_order_relaxed) != 0 && !thread->seen) part(*thread);
  }
  stacks_.look(std::any_of(all_.begin(), all_.end(), [](const SampledThread* one) {
    return one->tid.load(std::memory_order_relaxed) != 0 && !has_signal_stack(one->tid.load(std::memory_order_relaxed));
  }));
  first_listing_ = false;
}

bool Threads::is_own(pid_t tid) const noexcept {
  return std::any_of(own_.begin(), own_.end(), [tid](const Own& one) { return one.tid == tid; });
}

void Threads::look_at_own() noexcept {
  const bool anew = ++listings_ % kForgetOwn == 0;
  for (Own& one : own_) {
    const int64_t ran_ns = thread_cpu_ns(cpu_clock_of(one.tid));
    const bool other = ran_ns < one.ran_ns || (anew && !is_our_name(one.tid));
    if (!other && one.tid != helper_tid_.load()) own_ns_ += ran_ns - one.ran_ns;
    one = other ? Own{0, 0} : Own{one.tid, ran_ns};
  }
  std::erase_if(own_, [](const Own& one) { return one.tid == 0; });
}

void Threads::meet_own() {
  const pid_t tid = own_tid();
  take_signal_stack();
  const std::lock_guard lock(booker_.lock());
  if (!running_) return;
  SampledThread* thread = known(tid);
  if (thread != nullptr && thread_cpu_ns() < thread->ran_ns) {  // of one that had this number before
    part(*thread);
    thread = nullptr;
  }
  if (thread == nullptr) {
    meet(tid, true);
    thread = known(tid);
  }
  if (thread != nullptr) watch_end(*thread);
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

}  // namespace leadline::cpu
