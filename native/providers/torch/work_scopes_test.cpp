#include "providers/torch/work_scopes.h"

#include <doctest/doctest.h>

#include <thread>
#include <vector>

#include "monitor/monitor.h"
#include "testing/quiet_subscriber.h"

using namespace leadline;
using leadline::torch::WorkScopes;

namespace {

// The tokens of regions that have ended, in order.
class Ends final : public testing::QuietSubscriber {
 public:
  Ends() { REQUIRE(Monitor::instance().subscribe(LEADLINE_DOMAIN_REGION, this, &id_) == LEADLINE_OK); }
  ~Ends() override { Monitor::instance().unsubscribe(id_); }
  void on_event(const leadline_event& event, ThreadState&) noexcept override {
    if (event.domain == LEADLINE_DOMAIN_REGION && event.phase == LEADLINE_END) seen.push_back(event.token);
  }
  std::vector<const void*> seen;

 private:
  leadline_subscription id_ = 0;
};

void begin(const void* token) {
  leadline_event event{};
  event.domain = LEADLINE_DOMAIN_REGION;
  event.phase = LEADLINE_BEGIN;
  event.token = token;
  event.of.region.name = "gloo:send";
  Monitor::instance().emit(event);
  WorkScopes::began(token);
}

}  // namespace

TEST_CASE("what goes on after its operator ends with it, once, and its own end is not heard, wherever it comes") {
  const Ends ends;
  int works[3];
  const size_t outer = WorkScopes::enter();
  begin(&works[0]);
  const size_t inner = WorkScopes::enter();
  begin(&works[1]);
  begin(&works[2]);
  CHECK(WorkScopes::ended(&works[2]));  // in time: torch's own end is told
  WorkScopes::leave(inner);
  CHECK(ends.seen == std::vector<const void*>{&works[1]});
  WorkScopes::leave(outer);
  CHECK(ends.seen == std::vector<const void*>{&works[1], &works[0]});
  CHECK(!WorkScopes::ended(&works[1]));
  std::thread([&] { CHECK(!WorkScopes::ended(&works[0])); }).join();
  CHECK(WorkScopes::ended(&works[0]));  // a region of the program at the same place
}

TEST_CASE("memory that torch uses again for another scope is another scope") {
  const Ends ends;
  int work = 0;
  const size_t entered = WorkScopes::enter();
  begin(&work);
  WorkScopes::leave(entered);
  begin(&work);  // measuring rested when the first one ended
  CHECK(WorkScopes::ended(&work));
}

TEST_CASE("regions outside of such operators and many works at once") {
  const Ends ends;
  std::vector<int> works(3000);
  begin(&works[0]);
  CHECK(WorkScopes::ended(&works[0]));
  for (int& work : works) {
    const size_t entered = WorkScopes::enter();
    begin(&work);
    WorkScopes::leave(entered);
  }
  size_t heard = 0;
  for (int& work : works) heard += WorkScopes::ended(&work) ? 1 : 0;
  CHECK(ends.seen.size() + heard == works.size());  // each ends once
  CHECK(ends.seen.size() == 1024);
}
