// A program for tests: emits events as providers do, and reads what the collector would write to a file.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "collector/collector.h"
#include "monitor/monitor.h"
#include "writer/segment.h"
#include "writer/snapshot.h"

namespace leadline::testing {

// One row of a metric, of all devices and streams.
using Measured = MetricValues;

class RecordedProgram {
 public:
  static constexpr std::uint32_t kEverything = 0xff;

  explicit RecordedProgram(const CollectorOptions& options = {}) : collector(options) {
    losses().clear();
    Monitor::instance().forget_subscriber_state();
    REQUIRE(Monitor::instance().subscribe(kEverything, &collector, &subscription_) == LEADLINE_OK);
  }
  ~RecordedProgram() {
    if (Monitor::instance().paused()) resume();
    Monitor::instance().unsubscribe(subscription_);
    Monitor::instance().forget_subscriber_state();
  }
  RecordedProgram(const RecordedProgram&) = delete;
  RecordedProgram& operator=(const RecordedProgram&) = delete;

  void pause() {
    REQUIRE(Monitor::instance().pause(subscription_, LEADLINE_DOMAIN_GPU_ACTIVITY | LEADLINE_DOMAIN_MEMORY |
                                                         LEADLINE_DOMAIN_BOOKING) == LEADLINE_OK);
    collector.pause();
  }
  void resume() {
    collector.resume();
    REQUIRE(Monitor::instance().resume(subscription_, kEverything) == LEADLINE_OK);
  }

  // The last snapshot taken, as text and numbers. Paths are names from the thread down: "main/train/aten::mm".
  void take() {
    ProcessInfo process;
    process.name = "program";
    shown = take_snapshot(
        {collector.trees(), losses(), process, &collector.ledger(), &collector.window(), &collector.devices()});
  }
  std::string_view text(std::uint32_t string) const {
    const auto begin = shown.strings.offsets[string];
    return {reinterpret_cast<const char*>(shown.strings.bytes.data()) + begin,
            shown.strings.offsets[string + std::size_t{1}] - begin};
  }
  std::string path(std::uint32_t node) const {
    std::string path;
    for (std::int32_t at = static_cast<std::int32_t>(node); at >= 2; at = shown.nodes.parent[at]) {
      const std::string name(text(shown.frames.name[shown.nodes.frame[at]]));
      path = path.empty() ? name : name + "/" + path;
    }
    return path;
  }
  std::vector<std::uint8_t> kinds_of_events() const {
    std::vector<std::uint8_t> kinds;
    shown.events->for_each_column([&](std::string_view name, const auto& values) {
      if constexpr (std::is_same_v<decltype(values), const std::vector<std::uint8_t>&>) {
        if (name == "kind") kinds = values;
      }
    });
    return kinds;
  }
  std::vector<std::string> paths() const {
    std::vector<std::string> all;
    for (std::uint32_t node = 2; node < shown.nodes.parent.size(); ++node) all.push_back(path(node));
    return all;
  }
  Measured measured(std::string_view where, MetricKind metric) const {
    Measured found;
    for (std::size_t row = 0; row < shown.metrics.node.size(); ++row) {
      if (shown.metrics.metric[row] != static_cast<std::uint8_t>(metric) || path(shown.metrics.node[row]) != where)
        continue;
      const auto& rows = shown.metrics;
      found.merge({rows.count[row], rows.sum[row], rows.min[row], rows.max[row], rows.sum_squares[row]});
    }
    return found;
  }

  Collector collector;
  Snapshot shown;

 private:
  leadline_subscription subscription_ = 0;
};

inline void begin_region(const char* name, const void* token, leadline_region_kind kind = LEADLINE_REGION_USER,
                         uint32_t flags = 0, int64_t* stays_ns = nullptr) {
  leadline_event event{};
  event.domain = LEADLINE_DOMAIN_REGION;
  event.phase = LEADLINE_BEGIN;
  event.token = token;
  event.of.region.name = name;
  event.of.region.kind = kind;
  event.of.region.flags = flags;
  event.of.region.stays_ns = stays_ns;
  leadline_monitor_emit(&event);
}
inline void end_region(const void* token, leadline_region_kind kind = LEADLINE_REGION_USER, uint32_t flags = 0,
                       int64_t* stays_ns = nullptr) {
  leadline_event event{};
  event.domain = LEADLINE_DOMAIN_REGION;
  event.phase = LEADLINE_END;
  event.token = token;
  event.of.region.kind = kind;
  event.of.region.flags = flags;
  event.of.region.stays_ns = stays_ns;
  leadline_monitor_emit(&event);
}

inline leadline_operator_event operator_named(const char* name, std::int64_t sequence = -1) {
  leadline_operator_event op{};
  op.name = name;
  op.sequence = sequence;
  return op;
}

// One value at a place, as a provider books it.
inline void measure_at(leadline_context context, MetricKind metric, std::int64_t value) {
  const leadline_measure measure{static_cast<std::uint32_t>(metric), value};
  leadline_event event{};
  event.domain = LEADLINE_DOMAIN_GPU_ACTIVITY;
  event.phase = LEADLINE_INSTANT;
  event.of.gpu_activity.context = context;
  event.of.gpu_activity.device = -1;
  event.of.gpu_activity.stream = kNoStream;
  event.of.gpu_activity.measures = &measure;
  event.of.gpu_activity.measure_count = 1;
  leadline_monitor_emit(&event);
}

// A place of the calling thread: below a region of that name.
inline leadline_context place_of(const char* name) {
  int region = 0;
  begin_region(name, &region);
  const leadline_context place = leadline_monitor_context();
  end_region(&region);
  return place;
}

}  // namespace leadline::testing
