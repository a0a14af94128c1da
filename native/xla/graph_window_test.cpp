#include "xla/graph_window.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "xla/plane_writer.h"
#include "xla/proto_writer.h"

using namespace leadline::xla;
using test::Damage;
using test::Message;
using test::Plane;

namespace {

constexpr const char* kCalled = "EagerLocalExecute: __inference_train_7";
constexpr const char* kRun = "FunctionRun";
constexpr const char* kProcess = "ExecutorState::Process";
constexpr const char* kPuts = "ThreadpoolListener::Record";
constexpr const char* kTakes = "ThreadpoolListener::StartRegion";
constexpr const char* kLeaves = "ThreadpoolListener::StopRegion";
constexpr const char* kBegins = "ExecutorState::ProcessAsync::Start";
constexpr const char* kEnds = "ExecutorState::ProcessAsync::Done";

struct Drawn {
  std::string bytes;
  std::string problem;
  std::unique_ptr<Space> space;
  std::unique_ptr<GraphWindow> window;

  explicit Drawn(std::string drawn) : bytes(std::move(drawn)) {
    space = std::make_unique<Space>(bytes, graph_window_wanted(), &problem);
    window = std::make_unique<GraphWindow>(*space, true);
  }
  explicit Drawn(Plane& plane) : Drawn(Message().message(1, plane.message()).text()) { CHECK(problem.empty()); }

  const GraphNode& node(std::string_view name, size_t function = 0) const {
    const auto& nodes = window->functions().at(function).nodes;
    const auto found =
        std::ranges::find_if(nodes, [&](const GraphNode& one) { return window->text(one.node) == name; });
    REQUIRE(found != nodes.end());
    return *found;
  }
};

// Python calls a function, whose step 5 is one run of the executor on the caller's thread.
Plane& called(Plane& plane, std::vector<Plane::Event> inside, uint64_t begin_ps = 0) {
  std::vector<Plane::Event> all{{kCalled, begin_ps, 1000, {}},
                                {kRun, begin_ps + 10, 980, {{"id", 5}}},
                                {kProcess, begin_ps + 20, 900, {{"id", 5}}}};
  all.insert(all.end(), inside.begin(), inside.end());
  return plane.line("python", all);
}

}  // namespace

TEST_CASE("nodes count for the function that Python called, and what runs inside of one is taken off its own time") {
  Plane plane("/host:CPU");
  called(plane, {{"scope/product:MatMul", 100, 300, {}},
                 {"scope/inner:Sin", 150, 100, {}},
                 {"scope/product:MatMul", 500, 200, {}},
                 {"MemoryAllocation", 510, 0, {{"requested_bytes", 64}}},
                 {"MemoryAllocation", 520, 0, {{"requested_bytes", 16}}},
                 {"not a node", 750, 20, {}},
                 {"some::thing:Else", 780, 20, {}}});
  plane.line("other", {{kProcess, 0, 50, {{"id", 6}}}, {"lost:Sin", 10, 20, {}}});  // nothing tells who called it
  const Drawn drawn(plane);
  REQUIRE(drawn.window->functions().size() == 1);
  const GraphFunction& function = drawn.window->functions()[0];
  CHECK(drawn.window->text(function.name) == "__inference_train_7");
  CHECK(function.steps == std::vector<int64_t>{5});
  CHECK(function.nodes.size() == 2);
  const GraphNode& product = drawn.node("scope/product");
  CHECK(drawn.window->text(product.kind) == "MatMul");
  CHECK(product.ran.whole.count == 2);
  CHECK(product.ran.whole.sum == 500);
  CHECK(product.ran.own_ps == 400);
  CHECK(product.ran.whole.min == 200);
  CHECK(product.ran.whole.max == 300);
  CHECK(product.taken_bytes.count == 2);
  CHECK(product.taken_bytes.sum == 80);
  REQUIRE(drawn.window->steps().size() == 1);
  CHECK(drawn.window->steps()[0].start_ps == 10);
  CHECK(drawn.window->spans().size() == 4);
}

TEST_CASE("a node that a pool's thread takes up first has lain in the queue, and those behind it have not") {
  Plane plane("/host:CPU");
  plane.line("python", {{kCalled, 0, 1000, {}},
                        {kRun, 10, 980, {{"id", 5}}},
                        {kPuts, 20, 0, {{"_p", 40}}},
                        {kPuts, 30, 0, {{"_p", 41}}},
                        {kProcess, 60, 100, {{"id", 5}}},
                        {"here:Add", 70, 10, {}}});
  plane.line("tf_Compute/1", {{kTakes, 100, 0, {{"_c", 40}}},
                              {kProcess, 110, 200, {{"id", 5}}},
                              {"first:Sin", 120, 10, {}},
                              {"second:Cos", 140, 10, {}},
                              {kLeaves, 320, 0, {}},
                              {kTakes, 330, 0, {{"_c", 41}}},
                              {"ExecutorDoneCallback", 340, 5, {{"id", 5}}},
                              {kLeaves, 350, 0, {}},
                              {kProcess, 360, 10, {{"id", 5}}},
                              {"third:Sin", 362, 2, {}},
                              {kTakes, 400, 0, {{"_c", 99}}},  // put before the window
                              {kProcess, 410, 10, {{"id", 5}}},
                              {"fourth:Sin", 412, 2, {}}});
  const Drawn drawn(plane);
  CHECK(drawn.node("first").queued_ps.count == 1);
  CHECK(drawn.node("first").queued_ps.sum == 80);
  for (const char* name : {"here", "second", "third", "fourth"}) CHECK(drawn.node(name).queued_ps.count == 0);
}

TEST_CASE("nodes of a run whose end the window has cut belong to the step that put it into the pool") {
  Plane plane("/host:CPU");
  plane.line("python", {{kCalled, 0, 1000, {}}, {kRun, 10, 980, {{"id", 5}}}, {kPuts, 20, 0, {{"_p", 40}}}});
  plane.line("tf_Compute/1", {{kTakes, 100, 0, {{"_c", 40}}},
                              {"first:Sin", 120, 10, {}},
                              {"second:Cos", 140, 10, {}},
                              {kTakes, 200, 0, {{"_c", 41}}},  // nothing tells who put it there
                              {"third:Sin", 220, 10, {}}});
  const Drawn drawn(plane);
  CHECK(drawn.node("first").queued_ps.sum == 80);
  CHECK(drawn.node("second").ran.whole.sum == 10);
  CHECK(drawn.node("second").queued_ps.count == 0);
  CHECK(drawn.window->functions()[0].nodes.size() == 2);
  CHECK(drawn.window->spans().size() == 2);
}

TEST_CASE("what holds no thread lasts until it is done, and what asked for it counts once") {
  Plane plane("/host:CPU");
  const std::vector<Plane::Stat> told{
      {"step_id", 5}, {"name", 0, "loss/reduce"}, {"kernel_type", 0, "CollectiveReduceV2"}};
  const std::vector<Plane::Stat> cut{{"step_id", 5}, {"name", 0, "cut"}, {"kernel_type", 0, "_Recv"}};
  called(plane, {{"loss/reduce:CollectiveReduceV2", 100, 5, {}}, {kBegins, 100, 0, told}, {kBegins, 200, 0, cut}});
  plane.line("grpc", {{kEnds, 890, 3, told}});
  const Drawn drawn(plane);
  CHECK(drawn.node("loss/reduce").elsewhere_ps.sum == 790);
  CHECK(drawn.node("loss/reduce").ran.whole.count == 0);
  CHECK(drawn.node("cut").elsewhere_ps.count == 0);
  REQUIRE(drawn.window->spans().size() == 1);
  CHECK(drawn.window->spans()[0].line == -1);
  CHECK(drawn.window->spans()[0].duration_ps == 790);
}

TEST_CASE("a node waits from the end of its last input, through what the optimizer took out, and not in loops") {
  Plane plane("/host:CPU");
  called(plane, {{"a:Sin", 100, 50, {}},
                 {"b:Cos", 160, 40, {}},
                 {"sum:Add", 230, 10, {}},
                 {"turn:Neg", 300, 10, {}},
                 {"turn:Neg", 320, 10, {}},
                 {"last:Exp", 400, 10, {}},
                 {"alone:Exp", 420, 10, {}}});
  Drawn drawn(plane);
  GraphWindow& window = *drawn.window;
  const auto number = [&](const char* name) { return window.number(name); };
  const std::vector<uint32_t> of_sum{number("a"), number("taken out")};
  const std::vector<uint32_t> of_taken{number("b"), number("taken out")};  // which waits for itself
  const std::vector<uint32_t> of_last{number("turn")};
  const std::vector<GraphWait> waits =
      window.waits(window.functions()[0], [&](uint32_t node) -> const std::vector<uint32_t>* {
        if (node == number("sum")) return &of_sum;
        if (node == number("taken out")) return &of_taken;
        return node == number("last") ? &of_last : nullptr;
      });
  REQUIRE(waits.size() == 1);
  CHECK(window.text(waits[0].node) == "sum");
  CHECK(waits[0].ps.sum == 30);
}

TEST_CASE("stages of tf.data have no step, and one inside of another is taken off") {
  Plane plane("/host:CPU");
  plane.line("python", {{"Iterator::Root", 0, 100, {}}, {"Iterator::Root::Prefetch", 10, 60, {}}});
  const Drawn drawn(plane);
  REQUIRE(drawn.window->stages().size() == 2);
  CHECK(drawn.window->stages()[0].ran.own_ps == 40);
  CHECK(drawn.window->stages()[1].ran.own_ps == 60);
  CHECK(drawn.window->functions().empty());
}

TEST_CASE("damaged and hostile windows end with a sentence or with numbers, never outside of their bytes") {
  Plane plane("/host:CPU");
  const std::vector<Plane::Stat> told{{"step_id", 5}, {"name", 0, "reduce"}, {"kernel_type", 0, "_Recv"}};
  called(plane, {{"a:Sin", 100, ~uint64_t{0} >> 1, {}},
                 {"b:Cos", ~uint64_t{0} >> 1, ~uint64_t{0} >> 1, {}},
                 {"a:Sin", 120, ~uint64_t{0} >> 1, {}},
                 {kTakes, 130, 0, {{"_c", 4}}},
                 {kPuts, 131, 0, {{"_p", 4}}},
                 {kBegins, 140, 0, told},
                 {kEnds, 150, 0, told}});
  const std::string whole = Message().message(1, plane.message()).text();
  const Drawn drawn{std::string(whole)};
  CHECK(drawn.node("a").ran.whole.sum == INT64_MAX);
  for (size_t size = 0; size < whole.size(); size += 7) {
    const Drawn cut(whole.substr(0, size));
    CHECK(cut.window->spans().size() <= 6);
  }
  Damage damage;
  for (int i = 0; i < 2000; ++i) {
    const Drawn changed(damage.of(whole));
    for (const GraphFunction& function : changed.window->functions())
      changed.window->waits(function, [](uint32_t) -> const std::vector<uint32_t>* { return nullptr; });
  }
}
