// Subscribers that come, go and keep data of their own.
#include <doctest/doctest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/losses.h"
#include "monitor/monitor.h"
#include "testing/quiet_subscriber.h"

using namespace leadline;

namespace {

void emit_operator(leadline_phase phase, const void* token) {
  leadline_event event = leadline_event_of(LEADLINE_DOMAIN_OPERATOR, phase);
  event.token = token;
  event.of.op.name = "op";
  event.of.op.sequence = -1;
  leadline_monitor_emit(&event);
}

void emit_region(leadline_phase phase, const void* token) {
  leadline_event event = leadline_event_of(LEADLINE_DOMAIN_REGION, phase);
  event.token = token;
  event.of.region.name = "region";
  leadline_monitor_emit(&event);
}

class Listener final : public testing::QuietSubscriber {
 public:
  explicit Listener(uint32_t domains) { REQUIRE(Monitor::instance().subscribe(domains, this, &id_) == LEADLINE_OK); }
  ~Listener() override { Monitor::instance().unsubscribe(id_); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

 private:
  leadline_subscription id_ = 0;
};

// A subscriber that unregisters another one while both are inside their callbacks.
struct Rival {
  leadline_subscription own = 0;
  const Rival* other = nullptr;
  std::atomic<int>* inside = nullptr;
  leadline_status answer = LEADLINE_ERROR_INVALID;
  static void callback(const leadline_event* event, void* user) {
    auto* self = static_cast<Rival*>(user);
    if (event->token != self) return;
    self->inside->fetch_add(1);
    while (self->inside->load() < 2) std::this_thread::yield();
    self->answer = leadline_monitor_unregister(self->other->own);
  }
};

struct Totals {
  uint64_t begins = 0;
  std::vector<uint64_t> seen_at_end;
  std::vector<uint64_t> of_thread;
  static void callback(const leadline_event* event, void* user) {
    auto* self = static_cast<Totals*>(user);
    ++*event->thread_data;
    if (event->phase == LEADLINE_BEGIN) {
      CHECK(*event->scope_data == 0);
      *event->scope_data = ++self->begins;
    } else {
      self->seen_at_end.push_back(*event->scope_data);
      self->of_thread.push_back(*event->thread_data);
    }
  }
};

}  // namespace

TEST_CASE("two callbacks that unregister each other both return") {
  std::atomic<int> inside{0};
  Rival a;
  Rival b;
  a.inside = b.inside = &inside;
  a.other = &b;
  b.other = &a;
  REQUIRE(leadline_monitor_register(LEADLINE_DOMAIN_OPERATOR, Rival::callback, &a, &a.own) == LEADLINE_OK);
  REQUIRE(leadline_monitor_register(LEADLINE_DOMAIN_OPERATOR, Rival::callback, &b, &b.own) == LEADLINE_OK);
  std::thread first([&] { emit_operator(LEADLINE_BEGIN, &a); });
  std::thread second([&] { emit_operator(LEADLINE_BEGIN, &b); });
  first.join();
  second.join();
  CHECK(a.answer == LEADLINE_OK);
  CHECK(b.answer == LEADLINE_OK);
  CHECK(leadline_monitor_active(LEADLINE_DOMAIN_OPERATOR) == 0);
  // Their places serve again.
  std::vector<leadline_subscription> all(Monitor::kMaxSubscribers);
  for (leadline_subscription& id : all)
    CHECK(leadline_monitor_register(
              LEADLINE_DOMAIN_MEMORY, [](const leadline_event*, void*) {}, nullptr, &id) == LEADLINE_OK);
  leadline_monitor_finalize();
}

TEST_CASE("a callback that unregisters itself is not called again") {
  static int calls = 0;
  static leadline_subscription id = 0;
  calls = 0;
  REQUIRE(leadline_monitor_register(
              LEADLINE_DOMAIN_OPERATOR,
              [](const leadline_event*, void*) {
                ++calls;
                CHECK(leadline_monitor_unregister(id) == LEADLINE_OK);
              },
              nullptr, &id) == LEADLINE_OK);
  int token = 0;
  emit_operator(LEADLINE_BEGIN, &token);
  emit_operator(LEADLINE_END, &token);
  CHECK(calls == 1);
  leadline_monitor_finalize();
}

TEST_CASE("every subscriber has data of its own for each scope and each thread") {
  Totals first;
  Totals second;
  leadline_subscription ids[2];
  REQUIRE(leadline_monitor_register(LEADLINE_DOMAIN_OPERATOR, Totals::callback, &first, &ids[0]) == LEADLINE_OK);
  int outer = 0;
  int inner = 0;
  emit_operator(LEADLINE_BEGIN, &outer);
  REQUIRE(leadline_monitor_register(LEADLINE_DOMAIN_OPERATOR, Totals::callback, &second, &ids[1]) == LEADLINE_OK);
  emit_operator(LEADLINE_BEGIN, &inner);
  emit_operator(LEADLINE_END, &inner);
  emit_operator(LEADLINE_END, &outer);
  emit_operator(LEADLINE_BEGIN, &outer);
  emit_operator(LEADLINE_END, &outer);
  CHECK(first.seen_at_end == std::vector<uint64_t>{2, 1, 3});
  CHECK(first.of_thread == std::vector<uint64_t>{3, 4, 6});
  CHECK(second.seen_at_end == std::vector<uint64_t>{1, 0, 2});  // it did not see the outer one begin
  leadline_monitor_finalize();
}

TEST_CASE("data of scopes that never end is not kept for ever") {
  Totals totals;
  leadline_subscription id = 0;
  REQUIRE(leadline_monitor_register(LEADLINE_DOMAIN_OPERATOR, Totals::callback, &totals, &id) == LEADLINE_OK);
  int outer = 0;
  int lost = 0;
  const size_t before = Monitor::instance().cost().held_bytes;
  for (int i = 0; i < 100'000; ++i) {
    emit_operator(LEADLINE_BEGIN, &outer);
    emit_operator(LEADLINE_BEGIN, &lost);
    emit_operator(LEADLINE_END, &outer);
  }
  CHECK(totals.seen_at_end.size() == 100'000);
  CHECK(totals.seen_at_end.back() == 199'999);
  CHECK(Monitor::instance().cost().held_bytes < before + 1'000'000);
  leadline_monitor_finalize();
}

TEST_CASE("data of a scope that is set aside while the one around it ends stays its own") {
  const Listener core(LEADLINE_DOMAIN_OPERATOR | LEADLINE_DOMAIN_REGION);
  struct Kept {
    uint64_t inner = 0;
    static void callback(const leadline_event* event, void* user) {
      auto* self = static_cast<Kept*>(user);
      if (event->phase == LEADLINE_BEGIN) *event->scope_data = 77;
      if (event->phase == LEADLINE_END && event->token == user) self->inner = *event->scope_data;
    }
  };
  Kept kept;
  leadline_subscription id = 0;
  int outer = 0;
  int around = 0;
  int lost = 0;
  std::thread([&] {
    emit_region(LEADLINE_BEGIN, &outer);  // nobody keeps data for it yet
    REQUIRE(leadline_monitor_register(LEADLINE_DOMAIN_OPERATOR | LEADLINE_DOMAIN_REGION, Kept::callback, &kept, &id) ==
            LEADLINE_OK);
    // As many as are kept before data of lost scopes is looked for.
    for (int i = 0; i < 255; ++i) {
      emit_operator(LEADLINE_BEGIN, &around);
      emit_operator(LEADLINE_BEGIN, &lost);
      emit_operator(LEADLINE_END, &around);
    }
    emit_region(LEADLINE_BEGIN, &kept);
    emit_region(LEADLINE_END, &outer);  // the inner one goes on
    emit_region(LEADLINE_END, &kept);
  }).join();
  CHECK(kept.inner == 77);
  leadline_monitor_unregister(id);
}

TEST_CASE("an end without a token ends the innermost scope of its kind, not one of another kind") {
  struct Ended {
    std::vector<leadline_domain> domains;
    static void callback(const leadline_event* event, void* user) {
      if (event->phase == LEADLINE_END) static_cast<Ended*>(user)->domains.push_back(event->domain);
    }
  };
  Ended ended;
  leadline_subscription id = 0;
  losses().clear();
  REQUIRE(leadline_monitor_register(LEADLINE_DOMAIN_OPERATOR | LEADLINE_DOMAIN_REGION, Ended::callback, &ended, &id) ==
          LEADLINE_OK);
  emit_region(LEADLINE_BEGIN, nullptr);
  emit_operator(LEADLINE_BEGIN, nullptr);
  emit_region(LEADLINE_END, nullptr);
  CHECK(ended.domains == std::vector<leadline_domain>{LEADLINE_DOMAIN_REGION});
  emit_region(LEADLINE_END, nullptr);
  CHECK(ended.domains.size() == 1);
  CHECK(losses().total(LossKind::kOperatorEndUnmatched) >= 1);
  leadline_monitor_finalize();
}

TEST_CASE("a callback that asks for its path keeps it while another thread forgets all open scopes") {
  struct Asking {
    size_t levels = 0;
    static void callback(const leadline_event* event, void* user) {
      if (event->phase != LEADLINE_END) return;
      std::thread([] { Monitor::instance().forget_open_scopes(); }).join();
      leadline_frame frames[8];
      size_t count = 8;
      CHECK(leadline_callpath_get(LEADLINE_SOURCE_ALL, frames, &count) == LEADLINE_OK);
      static_cast<Asking*>(user)->levels = count;
    }
  } asking;
  leadline_subscription id = 0;
  REQUIRE(leadline_monitor_register(LEADLINE_DOMAIN_OPERATOR, Asking::callback, &asking, &id) == LEADLINE_OK);
  int outer = 0;
  int inner = 0;
  emit_operator(LEADLINE_BEGIN, &outer);
  emit_operator(LEADLINE_BEGIN, &inner);
  emit_operator(LEADLINE_END, &inner);
  CHECK(asking.levels == 2);
  leadline_monitor_finalize();
}

TEST_CASE("a destructor that emits after its thread has ended leaves no state behind") {
  struct Late {
    ~Late() {
      int token = 0;
      emit_operator(LEADLINE_BEGIN, &token);
    }
  };
  leadline_subscription id = 0;
  REQUIRE(leadline_monitor_register(
              LEADLINE_DOMAIN_OPERATOR, [](const leadline_event*, void*) {}, nullptr, &id) == LEADLINE_OK);
  const auto work = [] {
    thread_local Late late;  // destroyed after whatever the first event makes
    (void)late;
    int token = 0;
    emit_operator(LEADLINE_BEGIN, &token);
  };
  std::thread(work).join();
  const size_t states = Monitor::instance().thread_states();
  for (int i = 0; i < 50; ++i) std::thread(work).join();
  CHECK(Monitor::instance().thread_states() == states);
  leadline_monitor_finalize();
}

TEST_CASE("own cost is measured for begins and ends alike, with what the provider does before") {
  static FakeClock* clock = nullptr;
  FakeClock fake(1'000'000);
  clock = &fake;
  leadline_subscription id = 0;
  REQUIRE(leadline_monitor_register(
              LEADLINE_DOMAIN_OPERATOR,
              [](const leadline_event* event, void*) { clock->advance(event->phase == LEADLINE_BEGIN ? 900 : 100); },
              nullptr, &id) == LEADLINE_OK);
  Monitor& monitor = Monitor::instance();
  monitor.reset_cost();
  constexpr int kOperators = 100'000;
  int token = 0;
  leadline_operator_event op{};
  op.name = "op";
  op.sequence = -1;
  for (int i = 0; i < kOperators; ++i) {
    monitor.event_comes();
    fake.advance(500);  // the provider asks for the name
    monitor.begin_operator(op, &token);
    fake.advance(1'000'000);  // the operator itself
    monitor.end_operator(&token);
  }
  const double truth = 1'500.0 * kOperators;
  const auto measured = static_cast<double>(monitor.cost().callbacks_ns);
  CHECK(measured > 0.8 * truth);
  CHECK(measured < 1.2 * truth);
  leadline_monitor_finalize();
}

TEST_CASE("own cost does not count what a thread waits for a core in the middle of an event") {
  static FakeClock* clock = nullptr;
  FakeClock fake(1'000'000);
  clock = &fake;
  leadline_subscription id = 0;
  const auto count = [](const leadline_event*, void*) {
    static int events = 0;
    clock->advance(++events % 997 == 0 ? 5'000'000 : 1'000);
  };
  REQUIRE(leadline_monitor_register(LEADLINE_DOMAIN_OPERATOR, count, nullptr, &id) == LEADLINE_OK);
  Monitor& monitor = Monitor::instance();
  monitor.reset_cost();
  constexpr int kOperators = 500'000;
  int token = 0;
  for (int i = 0; i < kOperators; ++i) {
    emit_operator(LEADLINE_BEGIN, &token);
    emit_operator(LEADLINE_END, &token);
  }
  const double truth = 2'000.0 * kOperators;
  const auto measured = static_cast<double>(monitor.cost().callbacks_ns);
  CHECK(measured > 0.8 * truth);
  CHECK(measured < 1.2 * truth);
  leadline_monitor_finalize();
}

TEST_CASE("own cost does not count a pause between the provider's work and the event") {
  FakeClock fake(1'000'000);
  leadline_subscription id = 0;
  REQUIRE(leadline_monitor_register(
              LEADLINE_DOMAIN_OPERATOR | LEADLINE_DOMAIN_REGION, [](const leadline_event*, void*) {}, nullptr, &id) ==
          LEADLINE_OK);
  Monitor& monitor = Monitor::instance();
  monitor.reset_cost();
  for (int i = 0; i < 1'000; ++i) {
    monitor.event_comes();  // of an event that is not emitted, since measuring pauses
    monitor.pause(id, LEADLINE_DOMAIN_MEMORY);
    fake.advance(1'000'000'000);
    monitor.resume(id, LEADLINE_DOMAIN_OPERATOR | LEADLINE_DOMAIN_REGION);
    emit_region(LEADLINE_BEGIN, &id);
    emit_region(LEADLINE_END, &id);
  }
  CHECK(monitor.cost().callbacks_ns < 1'000'000);
  leadline_monitor_finalize();
}
