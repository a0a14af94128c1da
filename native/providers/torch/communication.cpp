#include "providers/torch/communication.h"

#include <atomic>
#include <new>

#include "base/clock.h"
#include "base/ids.h"
#include "base/losses.h"
#include "leadline/monitor.h"
#include "providers/torch/work_scopes.h"

namespace leadline::torch {
namespace {

thread_local int64_t t_waited_inside_ns = 0;

// No two threads have the same, also when one gets the memory of the other.
uint64_t this_thread() noexcept {
  static std::atomic<uint64_t> threads{0};
  thread_local const uint64_t number = threads.fetch_add(1, std::memory_order_relaxed) + 1;
  return number;
}

}  // namespace

std::unique_ptr<ObserverContext> Communication::open(const Symbols& symbols, bool launching, uint64_t flight) noexcept {
  auto* const opened = new (std::nothrow) Communication(launching ? &symbols : nullptr, flight);
  if (opened == nullptr) {
    InFlight(flight).end();  // for all that is known from here on
    losses().count(LossKind::kInternalError, 1, "there was no memory to measure what a collective waited for");
  }
  return std::unique_ptr<ObserverContext>(opened);
}

Communication::Communication(const Symbols* symbols, uint64_t flight) noexcept
    : flight_(flight),
      thread_(this_thread()),
      scopes_(WorkScopes::enter()),
      before_ns_(t_waited_inside_ns),
      wall_ns_(now_ns()),
      cpu_ns_(thread_cpu_ns()) {
  t_waited_inside_ns = 0;
  if (symbols != nullptr) launch_.emplace(*symbols);
}

void Communication::close() noexcept {
  if (thread_ != this_thread()) {  // whose clock says nothing about the one that began
    if (launch_) launch_->void_elsewhere();
    return;
  }
  flight_.end();
  launch_.reset();
  WorkScopes::leave(scopes_);
  const int64_t cpu_ns = thread_cpu_ns() - cpu_ns_;
  const int64_t wall_ns = now_ns() - wall_ns_;
  const int64_t waited_ns = wall_ns > cpu_ns ? wall_ns - cpu_ns : 0;
  const int64_t own_ns = waited_ns - t_waited_inside_ns;
  t_waited_inside_ns = before_ns_ + waited_ns;
  if (own_ns > 0) leadline_monitor_measure(static_cast<uint32_t>(MetricKind::kWaitTime), own_ns, 0);
}

}  // namespace leadline::torch
