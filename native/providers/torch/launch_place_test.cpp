#include "providers/torch/launch_place.h"

#include <doctest/doctest.h>

#include <map>
#include <thread>
#include <vector>

#include "base/losses.h"
#include "monitor/monitor.h"
#include "providers/torch/communication.h"
#include "testing/failing_allocator.h"
#include "testing/quiet_subscriber.h"

using namespace leadline;
using namespace leadline::torch;

namespace {

// Debug information of a thread, as torch keeps it: a chain of kinds.
struct Chain {
  uintptr_t kind;
  std::shared_ptr<void> info;
  std::shared_ptr<void> outer;
};
thread_local std::shared_ptr<void> t_top;
bool g_forgets = false;

std::shared_ptr<void> current() { return t_top; }
void set(std::shared_ptr<void> info) { t_top = std::move(info); }
void push(uintptr_t kind, std::shared_ptr<void> info) {
  if (!g_forgets) t_top = std::make_shared<Chain>(Chain{kind, std::move(info), t_top});
}
const void* find(uintptr_t kind) {
  for (auto* link = static_cast<Chain*>(t_top.get()); link != nullptr; link = static_cast<Chain*>(link->outer.get())) {
    if (link->kind == kind) return link->info.get();
  }
  return nullptr;
}

Symbols symbols() {
  Symbols made;
  made.debug_info = find;
  made.current_debug_info = current;
  made.push_debug_info = push;
  made.set_debug_info = set;
  return made;
}

// Answers with one place.
class Answering final : public testing::QuietSubscriber {
 public:
  Answering() { REQUIRE(Monitor::instance().subscribe(LEADLINE_DOMAIN_OPERATOR, this, &id_) == LEADLINE_OK); }
  ~Answering() override { Monitor::instance().unsubscribe(id_); }
  leadline_context context(ThreadState&, bool) noexcept override { return 5; }

 private:
  leadline_subscription id_ = 0;
};

}  // namespace

TEST_CASE("A torch that keeps what it is given passes the test, one that does not fails it") {
  g_forgets = false;
  CHECK(LaunchPlace::self_test(symbols()));
  CHECK(t_top == nullptr);
  g_forgets = true;
  CHECK(!LaunchPlace::self_test(symbols()));
  g_forgets = false;
  Symbols other = symbols();
  other.debug_info = [](uintptr_t) { return static_cast<const void*>(nullptr); };
  CHECK(!LaunchPlace::self_test(other));
  CHECK(t_top == nullptr);
  other = symbols();
  other.set_debug_info = [](std::shared_ptr<void>) {};
  CHECK(!LaunchPlace::self_test(other));
  t_top.reset();
}

TEST_CASE("A collective that ends on another thread leaves that thread's information alone") {
  const Answering subscriber;
  const Symbols torch = symbols();
  auto context = Communication::open(torch, true);
  REQUIRE(context != nullptr);
  CHECK(LaunchPlace::read(torch) == 5);
  const std::shared_ptr<void> handed_on = t_top;
  std::thread([&] {
    const auto own = std::make_shared<Chain>();
    t_top = own;
    static_cast<Communication*>(context.get())->close();
    CHECK(t_top == own);
    context.reset();
    CHECK(t_top == own);
  }).join();
  CHECK(LaunchPlace::read(torch) == 0);  // what this thread does from here on was not asked for there
  t_top.reset();
}

TEST_CASE("Collectives that end on other threads leave no pile of information behind") {
  const Answering subscriber;
  const Symbols torch = symbols();
  const auto depth = [] {
    int links = 0;
    for (auto* link = static_cast<Chain*>(t_top.get()); link != nullptr; link = static_cast<Chain*>(link->outer.get()))
      ++links;
    return links;
  };
  const auto end_elsewhere = [](std::unique_ptr<ObserverContext> context) {
    std::thread([&] { static_cast<Communication*>(context.get())->close(); }).join();
  };
  push(1, nullptr);  // the program's own, below
  for (int i = 0; i < 100; ++i) {
    auto first = Communication::open(torch, true);
    auto second = Communication::open(torch, true);
    CHECK(depth() == 3);
    end_elsewhere(std::move(first));  // in any order
    end_elsewhere(std::move(second));
  }
  // What the program has put above ours stays as it is, and ours goes when that has gone.
  const std::shared_ptr<void> ours = t_top;
  push(2, nullptr);
  auto above = Communication::open(torch, true);
  CHECK(depth() == 5);
  static_cast<Communication*>(above.get())->close();
  CHECK(depth() == 4);
  t_top = ours;
  auto last = Communication::open(torch, true);
  CHECK(depth() == 2);
  static_cast<Communication*>(last.get())->close();
  CHECK(depth() == 1);
  t_top.reset();
}

TEST_CASE("Without memory a collective runs as ever, and what is not known of it is counted") {
  const Answering subscriber;
  const Symbols torch = symbols();
  CHECK(leadline_monitor_context() == 5);  // the thread is known from here on
  losses().clear();
  uint64_t allocations = 0;
  for (uint64_t failing = 0; failing <= allocations; ++failing) {
    const uint64_t before = testing::t_allocations.made;
    testing::t_allocations.fail_at = failing == 0 ? 0 : before + failing;
    auto context = Communication::open(torch, true);
    testing::t_allocations.fail_at = 0;
    if (failing == 0) allocations = testing::t_allocations.made - before;
    CHECK((LaunchPlace::read(torch) == 5) == (failing == 0));
    if (context != nullptr) static_cast<Communication*>(context.get())->close();
    CHECK(t_top == nullptr);
    CHECK(losses().total(LossKind::kInternalError) == failing);
  }
  CHECK(allocations > 2);
  losses().clear();
}
