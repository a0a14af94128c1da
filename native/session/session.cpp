#include "session/session.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <utility>
#include <vector>

#include "base/abandon.h"
#include "base/clock.h"
#include "base/flight_recorder.h"
#include "base/losses.h"
#include "session/flusher.h"
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

constexpr char kNoMemory[] = "memory is short";
static_assert(sizeof kNoMemory <= 16, "a std::string keeps as many characters without allocating");

// As far as there is memory for the sentence.
void say(std::string* text, const char* sentence) noexcept {
  try {
    *text = sentence;
  } catch (const std::bad_alloc&) {
    text->assign(kNoMemory);
  }
}

}  // namespace

Session& Session::instance() {
  static auto* const session = new Session();  // never destroyed: threads may outlive main
  return *session;
}

void Session::describe_process(const std::string& segment_path) {
  options_.segment_path = segment_path;
  flight_recorder().set_path(segment_path.empty() ? std::string() : beside_segment(segment_path, ".flight"));
  process_.pid = static_cast<uint32_t>(getpid());
  process_.parent_pid = static_cast<uint32_t>(getppid());
  process_.start_ns = described_at_ns_ = realtime_ns();
  began_ns_ = now_ns();
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

bool Session::start(const SessionOptions& options, std::string* why) noexcept {
  const std::lock_guard change(changing_);
  try {
    return begin(options, why);
  } catch (const std::bad_alloc&) {
    give_up();
    say(why, "Leadline cannot measure because there is no memory left for it.");
    return false;
  }
}

void Session::give_up() noexcept {
  pause_providers();  // nobody listens to what they may have begun
  if (subscription_ != 0) Monitor::instance().unsubscribe(subscription_);
  subscription_ = 0;
  const std::lock_guard hold(held_);
  present_ = nullptr;
  collector_.reset();
}

bool Session::begin(const SessionOptions& options, std::string* why) {
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

WriteResult Session::write(bool complete) noexcept {
  const std::lock_guard lock(writing_);
  const std::shared_ptr<Collector> collector = this->collector();
  if (collector == nullptr) return {};
  const int64_t begin_ns = now_ns();
  collector->refresh_thread_times();
  // A clock that was set back meanwhile does not end what has not begun, nor before what was measured.
  process_.end_ns = std::max({realtime_ns(), described_at_ns_ + (begin_ns - began_ns_), process_.start_ns});
  process_.complete = complete;
  std::vector<OpenPlace> open;
  if (!complete) {
    try {
      open = collector->open_places();
    } catch (const std::bad_alloc&) {
      open.clear();  // the segment will say what is short
    }
  }
  const SessionCost spent = cost();
  const OwnCost own_cost{spent.callbacks_ns, spent.flush_ns, spent.events, spent.held_bytes};
  const SegmentSources sources{collector->trees(),    losses(), process_,  &collector->ledger(),  &collector->window(),
                               &collector->devices(), open,     &own_cost, &collector->compiled()};
  const WriteResult result = writer_.write(options_.segment_path, sources, complete);
  if (!result) {
    try {
      status_ = describe(result, options_.segment_path);
    } catch (const std::bad_alloc&) {
      say(&status_, kNoMemory);
    }
  }
  writer_bytes_.store(writer_.held_bytes());
  if (complete) {
    whereabouts_.forget();
  } else {
    whereabouts_.publish();
  }
  flush_ns_.fetch_add(now_ns() - begin_ns);
  return result;
}

WriteResult Session::flush() noexcept { return running() ? write(false) : WriteResult{}; }

WriteResult Session::stop() noexcept {
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
    flight_recorder().set_path({});
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

bool Session::trace_is_open() const noexcept {
  const auto collector = this->collector();
  return collector != nullptr && collector->window().is_open();
}

leadline_context Session::place_of_thread(uint64_t tid, std::string_view name) noexcept {
  return Monitor::instance().thread_place(tid, name, cpu_clock_of(static_cast<pid_t>(tid)), false);
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

void Session::announce_window(const std::string& path) {
  if (const auto collector = this->collector()) collector->window().announce_to(path);
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
  for (const Provider* provider : providers()) cost.callbacks_ns += provider->cost_ns();
  cost.flush_ns = flush_ns_.load();
  cost.held_bytes = monitor.held_bytes;
  if (const std::shared_ptr<Collector> collector = this->collector()) {
    cost.held_bytes += collector->held_bytes() + writer_bytes_.load();
    cost.nodes = collector->trees().node_count();
    cost.threads = collector->trees().size();
    cost.steps = std::max<int64_t>(collector->steps(), 0);
    cost.paused_ns = collector->paused_ns();
  }
  return cost;
}

std::string Session::write_status() const {
  const std::lock_guard lock(writing_);
  return status_;
}

void Session::before_exec() {
  for (Provider* provider : providers()) provider->before_exec();
  if (const auto flusher = this->flusher()) flusher->rest();
}

void Session::exec_failed() {
  if (const auto flusher = this->flusher()) flusher->wake();
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
  whereabouts_.after_fork();
  for (Provider* provider : providers()) provider->after_fork_child();
  if (there == nullptr || segment_path.empty()) {
    flight_recorder().set_path({});
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
