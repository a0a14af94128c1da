#include "monitor/monitor.h"

#include <doctest/doctest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "base/losses.h"

using namespace leadline;

namespace {

struct Seen {
  std::vector<std::string> lines;
  static void callback(const leadline_event* event, void* user) {
    auto* self = static_cast<Seen*>(user);
    std::string line = event->phase == LEADLINE_BEGIN ? "+" : event->phase == LEADLINE_END ? "-" : ".";
    if (event->domain == LEADLINE_DOMAIN_OPERATOR) line += event->of.op.name;
    if (event->domain == LEADLINE_DOMAIN_REGION) line += event->of.region.name == nullptr ? "" : event->of.region.name;
    self->lines.push_back(line + "@" + std::to_string(event->of.op.nesting));
  }
};

leadline_event operator_event(leadline_phase phase, const char* name, const void* token) {
  leadline_event event{};
  event.domain = LEADLINE_DOMAIN_OPERATOR;
  event.phase = phase;
  event.token = token;
  event.of.op.name = name;
  event.of.op.sequence = -1;
  return event;
}

std::vector<std::string> path(uint32_t sources = LEADLINE_SOURCE_ALL) {
  leadline_frame frames[16];
  size_t count = 16;
  REQUIRE(leadline_callpath_get(sources, frames, &count) == LEADLINE_OK);
  std::vector<std::string> names;
  for (size_t i = 0; i < count; ++i) names.emplace_back(frames[i].name);
  return names;
}

}  // namespace

TEST_CASE("subscribers see begin and end with nesting, and nothing after they leave") {
  Seen seen;
  leadline_subscription id = 0;
  REQUIRE(leadline_monitor_register(LEADLINE_DOMAIN_OPERATOR, Seen::callback, &seen, &id) == LEADLINE_OK);
  int outer = 0;
  int inner = 0;
  leadline_event event = operator_event(LEADLINE_BEGIN, "outer", &outer);
  leadline_monitor_emit(&event);
  event = operator_event(LEADLINE_BEGIN, "inner", &inner);
  leadline_monitor_emit(&event);
  CHECK(path() == std::vector<std::string>{"outer", "inner"});
  CHECK(path(LEADLINE_SOURCE_PYTHON).empty());
  event = operator_event(LEADLINE_END, nullptr, &inner);
  leadline_monitor_emit(&event);
  event = operator_event(LEADLINE_END, nullptr, nullptr);
  leadline_monitor_emit(&event);
  CHECK(seen.lines == std::vector<std::string>{"+outer@0", "+inner@1", "-inner@1", "-outer@0"});
  CHECK(path().empty());
  CHECK(leadline_monitor_unregister(id) == LEADLINE_OK);
  CHECK(leadline_monitor_unregister(id) == LEADLINE_ERROR_INVALID);
  event = operator_event(LEADLINE_BEGIN, "late", &outer);
  leadline_monitor_emit(&event);
  CHECK(seen.lines.size() == 4);
  CHECK(leadline_monitor_active(LEADLINE_DOMAIN_OPERATOR) == 0);
}

TEST_CASE("the path says how much room it needs") {
  Seen seen;
  leadline_subscription id = 0;
  leadline_monitor_register(LEADLINE_DOMAIN_OPERATOR, Seen::callback, &seen, &id);
  int tokens[3];
  for (int& token : tokens) {
    leadline_event event = operator_event(LEADLINE_BEGIN, "op", &token);
    leadline_monitor_emit(&event);
  }
  leadline_frame one[1];
  size_t count = 1;
  CHECK(leadline_callpath_get(LEADLINE_SOURCE_ALL, one, &count) == LEADLINE_ERROR_FULL);
  CHECK(count == 3);
  count = 1;
  CHECK(leadline_callpath_get(LEADLINE_SOURCE_ALL, nullptr, &count) == LEADLINE_ERROR_INVALID);
  leadline_monitor_finalize();
  CHECK(path().empty());
}

TEST_CASE("an end without a begin is counted, not believed") {
  Seen seen;
  leadline_subscription id = 0;
  leadline_monitor_register(LEADLINE_DOMAIN_OPERATOR, Seen::callback, &seen, &id);
  const uint64_t before = losses().total(LossKind::kOperatorEndUnmatched);
  int token = 0;
  const leadline_event event = operator_event(LEADLINE_END, nullptr, &token);
  leadline_monitor_emit(&event);
  CHECK(seen.lines.empty());
  CHECK(losses().total(LossKind::kOperatorEndUnmatched) == before + 1);
  leadline_monitor_finalize();
}

TEST_CASE("arguments that make no sense and too many subscribers are refused") {
  leadline_subscription id = 0;
  CHECK(leadline_monitor_register(0, Seen::callback, nullptr, &id) == LEADLINE_ERROR_INVALID);
  CHECK(leadline_monitor_register(1, nullptr, nullptr, &id) == LEADLINE_ERROR_INVALID);
  CHECK(leadline_monitor_register(1, Seen::callback, nullptr, nullptr) == LEADLINE_ERROR_INVALID);
  for (uint32_t i = 0; i < Monitor::kMaxSubscribers; ++i) {
    CHECK(leadline_monitor_register(1, Seen::callback, nullptr, &id) == LEADLINE_OK);
  }
  CHECK(leadline_monitor_register(1, Seen::callback, nullptr, &id) == LEADLINE_ERROR_FULL);
  leadline_monitor_finalize();
  CHECK(leadline_monitor_register(1, Seen::callback, nullptr, &id) == LEADLINE_OK);
  leadline_monitor_finalize();
}

TEST_CASE("a callback that causes events is not called for them") {
  static int calls = 0;
  leadline_subscription id = 0;
  leadline_monitor_register(
      LEADLINE_DOMAIN_OPERATOR,
      [](const leadline_event*, void*) {
        ++calls;
        int token = 0;
        const leadline_event nested = operator_event(LEADLINE_BEGIN, "nested", &token);
        leadline_monitor_emit(&nested);
      },
      nullptr, &id);
  int token = 0;
  const leadline_event event = operator_event(LEADLINE_BEGIN, "op", &token);
  leadline_monitor_emit(&event);
  CHECK(calls == 1);
  leadline_monitor_finalize();
}

TEST_CASE("unregister waits for callbacks on other threads") {
  struct Target {
    std::atomic<bool> alive{true};
    std::atomic<bool> violated{false};
  } target;
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&stop] {
      int token = 0;
      while (!stop.load(std::memory_order_relaxed)) {
        leadline_event event = operator_event(LEADLINE_BEGIN, "op", &token);
        leadline_monitor_emit(&event);
        event = operator_event(LEADLINE_END, nullptr, &token);
        leadline_monitor_emit(&event);
      }
    });
  }
  for (int round = 0; round < 200; ++round) {
    leadline_subscription id = 0;
    target.alive.store(true);
    REQUIRE(leadline_monitor_register(
                LEADLINE_DOMAIN_OPERATOR,
                [](const leadline_event*, void* user) {
                  auto* to = static_cast<Target*>(user);
                  if (!to->alive.load()) to->violated.store(true);
                },
                &target, &id) == LEADLINE_OK);
    leadline_monitor_unregister(id);
    target.alive.store(false);
  }
  stop.store(true);
  for (std::thread& thread : threads) thread.join();
  CHECK_FALSE(target.violated.load());
  leadline_monitor_finalize();
}

TEST_CASE("states of ended threads serve again") {
  Seen seen;
  leadline_subscription id = 0;
  leadline_monitor_register(
      LEADLINE_DOMAIN_MEMORY, [](const leadline_event*, void*) {}, &seen, &id);
  const auto touch = [] {
    leadline_event event{};
    event.domain = LEADLINE_DOMAIN_MEMORY;
    event.phase = LEADLINE_INSTANT;
    leadline_monitor_emit(&event);
  };
  std::thread(touch).join();
  const size_t states = Monitor::instance().thread_states();
  for (int i = 0; i < 100; ++i) std::thread(touch).join();
  CHECK(Monitor::instance().thread_states() == states);
  leadline_monitor_finalize();
}
