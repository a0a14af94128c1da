#include "session/session.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <new>
#include <system_error>
#include <utility>

#include "base/abandon.h"
#include "base/clock.h"
#include "base/losses.h"
#include "session/providers.h"
#include "session/termination.h"

namespace leadline {
namespace {

constexpr uint32_t kDomains = LEADLINE_DOMAIN_OPERATOR | LEADLINE_DOMAIN_MEMORY | LEADLINE_DOMAIN_REGION |
                              LEADLINE_DOMAIN_GPU_API | LEADLINE_DOMAIN_GPU_ACTIVITY | LEADLINE_DOMAIN_COMPILE |
                              LEADLINE_DOMAIN_BOOKING;
// What was begun or allocated before the pause may end in it, what was measured before may be told in it.
constexpr uint32_t kDomainsWhilePaused =
    LEADLINE_DOMAIN_GPU_ACTIVITY | LEADLINE_DOMAIN_MEMORY | LEADLINE_DOMAIN_BOOKING;

constexpr double kForeverS = 1e9;  // thirty years

}  // namespace

class Session::Flusher {
 public:
  Flusher(Session& session, double interval_s) : session_(session), interval_(interval_s) { begin(); }
  ~Flusher() { close(); }
  // For good; a signal that comes now is for the program.
  void close() {
    const std::lock_guard lock(changing_);
    closed_ = true;
    end();
    if (!std::exchange(forgotten_, true)) termination::forget();
  }
  // Ends the thread. A signal that comes now stays pending, for whoever writes the last segment.
  void halt() {
    const std::lock_guard lock(changing_);
    end();
  }
  // As halt(), and until wake() a signal ends the process at once. Threads that fork at a time rest together.
  void rest() {
    const std::lock_guard lock(changing_);
    ++resting_;
    if (closed_) return;
    end();
    termination::forget();
    if (const int signal = termination::pending(); signal != 0) {
      session_.write(true);
      termination::die(signal);
    }
  }
  void wake() {
    const std::lock_guard lock(changing_);
    if (resting_ > 0) --resting_;
    if (resting_ == 0 && !closed_) begin();
  }
  Flusher(const Flusher&) = delete;
  Flusher& operator=(const Flusher&) = delete;

 private:
  void begin() {
    if (thread_.joinable()) return;
    stop_.store(false);
    wake_ = termination::listen();
    // The program's signals are not for this thread.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      thread_ = std::thread([this] { run(); });
      pthread_setname_np(thread_.native_handle(), "leadline-flush");
    } catch (const std::system_error&) {
      termination::forget();  // nobody would answer
      losses().count(
          LossKind::kInternalError, 1,
          "No thread for writing segments could be started (see ulimit -u); a killed process leaves nothing.");
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  void end() {
    if (!thread_.joinable()) return;
    stop_.store(true);
    sem_post(wake_);
    thread_.join();
    wait_until_uncounted(tid_.load());
  }
  // A joined thread may still be listed for a moment. Python warns of a fork when it sees more than one thread.
  static void wait_until_uncounted(pid_t tid) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d", tid);
    for (int tries = 0; tries < 1000 && access(path, F_OK) == 0; ++tries) sched_yield();
  }

  void run() {
    tid_.store(static_cast<pid_t>(syscall(SYS_gettid)));
    // The first segment comes early, so that a program that dies young leaves something.
    double wait_s = interval_ < 1.0 ? interval_ : 1.0;
    for (;;) {
      const bool timed_out = wait(wait_s);
      if (stop_.load()) return;
      if (const int signal = termination::pending(); signal != 0) {
        session_.write(true);
        termination::die(signal);
        return;
      }
      if (!timed_out) continue;
      const WriteResult result = session_.flush();
      // Without its folder the session is over, and nobody will read a segment of this process: only signals are
      // waited for from now on.
      const bool over = result.error == WriteError::kOpen && result.system_errno == ENOENT;
      wait_s = over ? kForeverS : interval_;
    }
  }

  // False when woken before the time.
  bool wait(double seconds) noexcept {
    timespec until{};
    clock_gettime(CLOCK_REALTIME, &until);  // the only clock that sem_timedwait knows
    const auto nanoseconds = static_cast<int64_t>(seconds * 1e9) + until.tv_nsec;
    until.tv_sec += nanoseconds / 1'000'000'000;
    until.tv_nsec = nanoseconds % 1'000'000'000;
    int result = 0;
    do {
      result = sem_timedwait(wake_, &until);
    } while (result != 0 && errno == EINTR);
    return result != 0;
  }

  Session& session_;
  double interval_;
  sem_t* wake_ = nullptr;  // a semaphore, since a signal handler can post nothing else
  std::atomic<bool> stop_{false};
  std::atomic<pid_t> tid_{0};
  std::mutex changing_;  // one thread at a time begins or ends the thread
  int resting_ = 0;      // rests without their wake()
  bool closed_ = false;
  bool forgotten_ = false;
  std::thread thread_;
};

Session& Session::instance() {
  static auto* const session = new Session();  // never destroyed: threads may outlive main
  return *session;
}

void Session::describe_process(const std::string& segment_path) {
  options_.segment_path = segment_path;
  process_.pid = static_cast<uint32_t>(getpid());
  process_.parent_pid = static_cast<uint32_t>(getppid());
  process_.start_ns = realtime_ns();
  process_.complete = false;
}

std::shared_ptr<Collector> Session::collector() const noexcept {
  const std::lock_guard hold(held_);
  return collector_;
}

std::shared_ptr<Session::Flusher> Session::flusher() const noexcept {
  const std::lock_guard hold(held_);
  return flusher_;
}

bool Session::start(const SessionOptions& options, std::string* why) {
  const std::lock_guard change(changing_);
  if (running()) {
    *why = "Leadline already measures this process; stop that session first.";
    return false;
  }
  {
    const std::lock_guard lock(writing_);
    options_ = options;
    trace_max_events_ = options.trace_max_events;
    describe_process(options.segment_path);
    status_.clear();
  }
  losses().clear();
  flush_ns_.store(0);
  Monitor& monitor = Monitor::instance();
  if (monitor.paused()) monitor.resume(0, 0);  // a session that a fork ended was
  monitor.forget_subscriber_state();
  monitor.reset_cost();
  // Not std::make_shared: the child of a fork may have to take it over from a torn pointer.
  const std::shared_ptr<Collector> collector = std::make_unique<Collector>(CollectorOptions{options.max_nodes});
  if (monitor.subscribe(kDomains, collector.get(), &subscription_) != LEADLINE_OK) {
    *why = "Leadline cannot measure because all places for listeners of its monitor are taken; unregister one.";
    return false;
  }
  paused_ = false;
  {
    const std::lock_guard hold(held_);
    collector_ = collector;
    present_ = collector.get();
  }
  resume_providers();
  if (options.flush_interval_s > 0) {
    auto made = std::make_shared<Flusher>(*this, options.flush_interval_s);
    const std::lock_guard hold(held_);
    flusher_ = std::move(made);
  }
  return true;
}

WriteResult Session::write(bool complete) {
  const std::lock_guard lock(writing_);
  const std::shared_ptr<Collector> collector = this->collector();
  if (collector == nullptr) return {};
  const int64_t begin_ns = now_ns();
  collector->refresh_thread_times();
  process_.end_ns = realtime_ns();
  process_.complete = complete;
  const SegmentSources sources{collector->trees(),   losses(), process_, &collector->ledger(), &collector->window(),
                               &collector->devices()};
  const WriteResult result = writer_.write(options_.segment_path, sources, complete);
  if (!result) status_ = describe(result, options_.segment_path);
  writer_bytes_.store(writer_.held_bytes());
  flush_ns_.fetch_add(now_ns() - begin_ns);
  return result;
}

WriteResult Session::flush() { return running() ? write(false) : WriteResult{}; }

WriteResult Session::stop() {
  const std::lock_guard change(changing_);
  if (!running()) return {};
  stop_providers();
  const std::shared_ptr<Flusher> flusher = this->flusher();
  if (flusher != nullptr) flusher->halt();
  Monitor::instance().unsubscribe(subscription_);
  if (paused_) Monitor::instance().resume(0, 0);
  paused_ = false;
  subscription_ = 0;
  const WriteResult result = write(true);
  if (flusher != nullptr) flusher->close();
  if (const int signal = termination::pending(); signal != 0) termination::die(signal);
  std::shared_ptr<Collector> last;
  {
    const std::lock_guard hold(held_);
    flusher_.reset();
    present_ = nullptr;
    last = std::move(collector_);
    collector_.reset();
  }
  {
    const std::lock_guard lock(writing_);  // another thread may be writing what it took hold of
    writer_.clear();
  }
  last.reset();
  Monitor::instance().forget_subscriber_state();
  return result;
}

void Session::pause() noexcept {
  const std::lock_guard change(changing_);
  const std::shared_ptr<Collector> collector = this->collector();
  if (collector == nullptr || paused_) return;
  paused_ = true;
  Monitor::instance().pause(subscription_, kDomainsWhilePaused);
  collector->pause();
  pause_providers();
}

void Session::resume() noexcept {
  const std::lock_guard change(changing_);
  const std::shared_ptr<Collector> collector = this->collector();
  if (collector == nullptr || !paused_) return;
  paused_ = false;
  collector->resume();
  Monitor::instance().resume(subscription_, kDomains);
  resume_providers();
}

void Session::set_process(const ProcessDetails& details) {
  const std::lock_guard lock(writing_);
  process_.name = details.name;
  process_.rank = details.rank;
  process_.local_rank = details.local_rank;
  if (details.start_ns > 0) process_.start_ns = details.start_ns;
}

void Session::open_trace() noexcept {
  const std::shared_ptr<Collector> collector = this->collector();
  if (collector == nullptr) return;
  collector->window().decide();
  collector->window().open(trace_max_events_.load());
}

void Session::close_trace() noexcept {
  if (const auto collector = this->collector()) collector->window().close();
}

void Session::take_back_trace() noexcept {
  if (const auto collector = this->collector()) collector->window().take_back();
}

void Session::begin_step(int64_t number) noexcept {
  if (const auto collector = this->collector()) collector->begin_step(number, now_ns());
}

void Session::trace_steps(int64_t wait, int64_t count) noexcept {
  if (const auto collector = this->collector()) collector->trace_steps(wait, count, trace_max_events_.load());
}

bool Session::share_window(const std::string& path, const std::string& parent_path) noexcept {
  const std::shared_ptr<Collector> collector = this->collector();
  if (collector == nullptr) return false;
  collector->window().limit(trace_max_events_.load());
  return collector->window().share(path, parent_path);
}

SessionCost Session::cost() const {
  const Monitor::Cost monitor = Monitor::instance().cost();
  SessionCost cost;
  cost.events = monitor.events;
  cost.callbacks_ns = monitor.callbacks_ns;
  cost.flush_ns = flush_ns_.load();
  cost.held_bytes = monitor.held_bytes;
  if (const std::shared_ptr<Collector> collector = this->collector()) {
    cost.held_bytes += collector->held_bytes() + writer_bytes_.load();
    cost.nodes = collector->trees().node_count();
    cost.threads = collector->trees().size();
    cost.steps = std::max<int64_t>(collector->steps(), 0);
  }
  return cost;
}

std::string Session::write_status() const {
  const std::lock_guard lock(writing_);
  return status_;
}

void Session::before_fork() {
  for (Provider* provider : providers()) provider->before_fork();
  if (const auto flusher = this->flusher()) flusher->rest();
}

void Session::after_fork_in_parent() {
  if (const auto flusher = this->flusher()) flusher->wake();
  for (Provider* provider : providers()) provider->after_fork_parent();
}

void Session::after_fork(const std::string& segment_path) {
  // The parent's flush thread is not here, and any lock may have been held when the process was copied.
  Collector* there = present_.exchange(nullptr);
  if (subscription_ == 0) there = nullptr;  // another thread was about to stop
  held_.reset();
  abandon(collector_);
  abandon(flusher_);
  termination::forget();
  abandon(changing_);
  abandon(writing_);
  abandon(providers_busy_);
  abandon(status_);
  abandon(writer_);
  Monitor::instance().after_fork();
  for (Provider* provider : providers()) provider->after_fork_child();
  if (there == nullptr || segment_path.empty()) {
    if (subscription_ != 0) Monitor::instance().unsubscribe(subscription_);
    subscription_ = 0;
    if (there == nullptr) return;
    for (Provider* provider : providers()) provider->pause();  // hooks that stay have nobody to tell
    return;
  }
  losses().clear();
  there->after_fork();
  collector_.reset(there);
  present_ = there;
  describe_process(segment_path);
  flush_ns_.store(0);
  if (options_.flush_interval_s > 0) flusher_ = std::make_shared<Flusher>(*this, options_.flush_interval_s);
}

}  // namespace leadline
