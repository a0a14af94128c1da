// The place of a thread that waits, looked at from another one.
#include <new>

#include "base/clock.h"
#include "base/losses.h"
#include "monitor/monitor.h"
#include "providers/cpu/booker.h"
#include "providers/cpu/handler.h"

namespace leadline::cpu {
namespace {

constexpr int kTries = 3;
constexpr uintptr_t kFirstWait = 2;  // addresses of code that none is, as keys of frames that have none

}  // namespace

// A thread that stood still has not run: its CPU clock says so.
bool Booker::capture_other(SampledThread& thread, Wait* what) {
  const pid_t tid = thread.tid.load(std::memory_order_relaxed);
  for (int tries = 0; tries < kTries; ++tries) {
    *what = Wait::kRunning;
    const int64_t before_ns = thread_cpu_ns(thread.clock);
    InKernel now;
    if (!read_in_kernel(tid, &now)) return false;
    *what = wait_of(now, samples_ == nullptr ? nullptr : samples_->is_own_lock);
    if (*what == Wait::kRunning) return false;
    levels_.clear();
    if (const PublishedPlaces* const published = Monitor::instance().published_by(static_cast<uint64_t>(tid))) {
      for (uint32_t level = 0; level < published->depth(); ++level)
        levels_.push_back({published->place(level), published->anchor(level), published->token(level)});
    }
    frames_.resize(samples_ == nullptr ? 0 : kMostFrames);
    selves_.resize(samples_ == nullptr ? 0 : kMostSelves);
    if (samples_ != nullptr) {
      pages_.forget();
      SampledStack stack{frames_, selves_, {}};
      samples_->capture_of(pages_, tid, stack);
      frames_.resize(std::min(stack.frame_count, kMostFrames));
      selves_.resize(stack.self_count);
    }
    if (thread_cpu_ns(thread.clock) == before_ns) return true;
  }
  *what = Wait::kRunning;
  return false;
}

leadline_context Booker::waiting_at(SampledThread& thread, Wait* what) noexcept {
  leadline_context place = 0;
  // A code object that dies meanwhile waits for the lock that is held here.
  waiting_samples().fetch_add(1, std::memory_order_seq_cst);
  try {
    if (capture_other(thread, what)) {
      native_.clear();
      runs_.clear();
      if (samples_ != nullptr) drop_strangers();
      place = place_of(thread);
      if (in_api(place)) *what = Wait::kDevice;
    }
  } catch (...) {
    losses().count(LossKind::kInternalError, 1, "a wait could not be recorded because memory ran out");
    if (thread.path != nullptr) thread.path->clear();
    *what = Wait::kRunning;
  }
  waiting_samples().fetch_sub(1, std::memory_order_relaxed);
  return place;
}

// Inside a call of a device's library.
bool Booker::in_api(leadline_context place) {
  const auto known = in_api_.find(place);
  if (known != in_api_.end()) return known->second;
  size_t count = 0;
  std::vector<leadline_frame> frames;
  Monitor::instance().path_to(place, nullptr, &count);
  frames.resize(count);
  bool inside = false;
  if (count != 0 && Monitor::instance().path_to(place, frames.data(), &count) == LEADLINE_OK)
    inside = frames[count - 1].kind == static_cast<uint8_t>(FrameKind::kApi);
  in_api_.emplace(place, inside);
  return inside;
}

leadline_context Booker::wait_place(leadline_context below, Wait what) noexcept {
  try {
    leadline_context& known = native_places_[{below, kFirstWait + static_cast<uintptr_t>(what)}];
    if (known != 0) return known;
    const std::string name(to_text(what));
    const std::string detail = "{\"wait\": \"" + std::string(to_word(what)) + "\"}";
    leadline_path_frame named{};
    named.kind = static_cast<uint8_t>(FrameKind::kNative);
    named.name = name.c_str();
    named.detail = detail.c_str();
    known = place_at(below, named);
    return known;
  } catch (const std::bad_alloc&) {
    return below;
  }
}

void Booker::book_wait(leadline_context place, int64_t ns) noexcept {
  if (ns <= 0 || place == 0) return;
  const leadline_total total{static_cast<uint32_t>(MetricKind::kWait), 1, ns, ns, ns, 0};
  leadline_booking booking = leadline_booking_of(place);
  booking.totals = &total;
  booking.total_count = 1;
  Monitor::instance().book(booking, nullptr);
}

}  // namespace leadline::cpu
