// What must not go wrong when threads, memory and processes end at a bad moment.
#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/losses.h"
#include "monitor/monitor.h"
#include "stack/fake_python.h"
#include "testing/failing_allocator.h"
#include "testing/forked_child.h"
#include "testing/quiet_subscriber.h"

using namespace leadline;
using namespace leadline::testing;

namespace {

// Before the first event: every thread's path has it.
const bool g_python = (Monitor::instance().set_python(FakePython::source()), true);

// Answers with one place, as long as it is subscribed.
class Answering final : public testing::QuietSubscriber {
 public:
  leadline_context context(ThreadState&, bool) noexcept override { return 1; }
};

void run_operator() {
  leadline_operator_event op{};
  op.name = "op";
  op.sequence = -1;
  int token = 0;
  Monitor::instance().begin_operator(op, &token);
  Monitor::instance().end_operator(&token);
}

leadline_subscription listen() {
  leadline_subscription id = 0;
  REQUIRE(leadline_monitor_register(
              LEADLINE_DOMAIN_OPERATOR, [](const leadline_event*, void*) {}, nullptr, &id) == LEADLINE_OK);
  return id;
}

}  // namespace

TEST_CASE("Asking for the place while subscribers come and go is answered or not, and reads none that has gone") {
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  threads.reserve(2);
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      while (!stop.load(std::memory_order_relaxed)) {
        if (leadline_monitor_context() > 1) ++wrong;
      }
    });
  }
  for (int round = 0; round < 3'000; ++round) {
    auto subscriber = std::make_unique<Answering>();
    leadline_subscription id = 0;
    REQUIRE(Monitor::instance().subscribe(LEADLINE_DOMAIN_OPERATOR, subscriber.get(), &id) == LEADLINE_OK);
    Monitor::instance().unsubscribe(id);
  }
  stop.store(true);
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("Without memory a call path is refused and counted, and the next one is whole") {
  losses().clear();
  const leadline_subscription id = listen();
  std::thread([] {
    run_operator();
    FakePython::reset();
    for (uintptr_t frame = 1; frame <= 2'000; ++frame) {
      FakePython::functions[frame] = std::string("f").append(std::to_string(frame));
      FakePython::chain.push_back({frame, frame, 1});
    }
    leadline_frame frames[4];
    size_t count = 4;
    {
      const NoMemory nothing;
      CHECK(leadline_callpath_get(LEADLINE_SOURCE_PYTHON, frames, &count) == LEADLINE_ERROR_NO_MEMORY);
    }
    CHECK(count == 0);
    CHECK(losses().total(LossKind::kInternalError) == 1);
    count = 4;
    CHECK(leadline_callpath_get(LEADLINE_SOURCE_PYTHON, frames, &count) == LEADLINE_ERROR_FULL);
    CHECK(count == 2'000);
    FakePython::reset();
  }).join();
  leadline_monitor_unregister(id);
}

// The thread sanitizer and qemu, under which other processors are tested, end a child that starts a thread.
#if !defined(__SANITIZE_THREAD__) && defined(__x86_64__)
TEST_CASE("In a forked child nobody takes over the state of a thread that is not there") {
  const leadline_subscription id = listen();
  std::atomic<bool> forked{false};
  std::atomic<bool> began{false};
  std::thread other([&] {
    leadline_operator_event op{};
    op.name = "half";
    op.sequence = -1;
    Monitor::instance().begin_operator(op, &op);
    began.store(true);
    while (!forked.load()) std::this_thread::yield();
    Monitor::instance().end_operator(&op);
  });
  while (!began.load()) std::this_thread::yield();
  run_operator();
  const int states = answer_of_child([] {
    Monitor::instance().after_fork();
    const size_t own = Monitor::instance().thread_states();
    std::thread(run_operator).join();
    return static_cast<int>(own * 10 + Monitor::instance().thread_states());
  });
  forked.store(true);
  other.join();
  CHECK(states == 12);  // the forking thread, and then a new one
  leadline_monitor_unregister(id);
}
#endif
