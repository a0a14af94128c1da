// Regions that do not nest. Paths are compared whole, by text.
#include <doctest/doctest.h>

#include <string>

#include "base/clock.h"
#include "base/losses.h"
#include "stack/call_path.h"
#include "stack/fake_python.h"
#include "testing/failing_allocator.h"

using namespace leadline;
using leadline::testing::FakePython;
using leadline::testing::t_allocations;

namespace {

enum : uintptr_t { kMain = 1, kHelper = 2, kEnter = 3, kTask = 4, kManager = 5, kOther = 6, kWith = 7 };

struct Fixture {
  Fixture() {
    FakePython::reset();
    FakePython::functions = {{kMain, "main"},       {kHelper, "helper"}, {kEnter, "__enter__"}, {kTask, "task"},
                             {kManager, "manager"}, {kOther, "other"},   {kWith, "with"}};
    FakePython::suspending = {kTask, kManager};
    CodeRoles roles;
    roles.known = {{kEnter, CodeRole::kOpener}, {kWith, CodeRole::kBlockEntry}};
    PathFrames::set_roles(roles);
    losses().clear();
  }
  ~Fixture() { PathFrames::set_roles({}); }

  static const void* token(int number) { return reinterpret_cast<const void*>(static_cast<uintptr_t>(number)); }
  std::string text() {
    std::string out;
    for (const PathEntry& entry : path.entries()) {
      const PathFrame& frame = path.frames()[entry.frame];
      if (!out.empty()) out += " > ";
      out += frame.name;
      if (frame.line != 0) out += ":" + std::to_string(frame.line);
    }
    return out;
  }
  // As the collector does at every begin: all entries get a place, and stays that are over are taken note of.
  void settle() {
    for (const CallPath::Departed& stay : path.departed()) taken_ns += stay.elapsed_ns - stay.scope.child_ns;
    path.departed().clear();
    path.take_moved();
    for (PathEntry& entry : path.entries()) entry.slot = 1;
    path.scopes().back().begin_ns = now_ns();
  }
  void begin(const char* name, int number) {
    path.sync();
    path.push(token(number), ScopeKind::kOperator, path.frames().operator_named(name, std::nullopt));
    settle();
  }
  // `region` called from the innermost frame, by way of an __enter__.
  void open(const char* name, int number) {
    FakePython::chain.push_back({900, kEnter, 1});
    path.sync();
    path.push_region(token(number), ScopeKind::kRegion, path.frames().named(FrameKind::kRegion, name));
    settle();
    FakePython::chain.pop_back();
  }
  bool end(int number) {
    uint64_t dropped = 0;
    if (!path.bring_up(token(number), now_ns(), &dropped)) return false;
    path.pop();
    return true;
  }
  std::string operator_path() {
    begin("op", 99);
    const std::string seen = text();
    end(99);
    return seen;
  }

  FakeClock clock{1'000};
  ModuleNames modules;
  CallPath path{FakePython::source(), &modules};
  int64_t taken_ns = 0;
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "nested regions of a coroutine come back in order, above its frame") {
  FakePython::chain = {{100, kMain, 10}, {300, kTask, 50}};
  open("outer", 1);
  FakePython::chain[1].line = 51;
  open("inner", 2);
  CHECK(operator_path() == "main:10 > outer:50 > inner:51 > task:51 > op");
  FakePython::chain = {{100, kMain, 10}, {400, kTask, 60}};
  CHECK(operator_path() == "main:10 > task:60 > op");
  open("other", 3);
  CHECK(operator_path() == "main:10 > other:60 > task:60 > op");
  FakePython::chain = {{100, kMain, 11}, {300, kTask, 52}};
  CHECK(operator_path() == "main:11 > outer:50 > inner:51 > task:52 > op");
  FakePython::chain = {{100, kMain, 11}, {400, kTask, 61}};
  CHECK(operator_path() == "main:11 > other:60 > task:61 > op");
  CHECK(end(1));  // of the suspended one
  CHECK(operator_path() == "main:11 > other:60 > task:61 > op");
  FakePython::chain = {{100, kMain, 11}, {300, kTask, 53}};
  CHECK(operator_path() == "main:11 > inner:51 > task:53 > op");
  CHECK(end(2));
  CHECK(end(3));
  CHECK(operator_path() == "main:11 > task:53 > op");
  CHECK(losses().total(LossKind::kRegionUnanchored) == 0);
}

TEST_CASE_FIXTURE(Fixture, "a coroutine that is waited for stands between, with its regions") {
  FakePython::chain = {{100, kMain, 10}, {300, kTask, 50}};
  open("request", 1);
  FakePython::chain = {{100, kMain, 10}, {300, kTask, 51}, {310, kTask, 70}};
  open("part", 2);
  FakePython::chain = {{100, kMain, 10}, {400, kHelper, 60}};
  CHECK(operator_path() == "main:10 > helper:60 > op");
  FakePython::chain = {{100, kMain, 10}, {300, kTask, 51}, {310, kTask, 71}};
  CHECK(operator_path() == "main:10 > request:50 > task:51 > part:70 > task:71 > op");
}

TEST_CASE_FIXTURE(Fixture, "suspended regions cost no further walks") {
  for (int task = 0; task < 40; ++task) {
    FakePython::chain = {{100, kMain, 10}, {static_cast<uintptr_t>(1000 + 16 * task), kTask, 50}};
    open("request", 1 + task);
  }
  FakePython::chain = {{100, kMain, 10}, {400, kHelper, 60}, {500, kOther, 1}};
  operator_path();
  const int walked = FakePython::frames_walked;
  FakePython::chain[2].line = 2;
  CHECK(operator_path() == "main:10 > helper:60 > other:2 > op");
  CHECK(FakePython::frames_walked - walked <= 3);
}

TEST_CASE_FIXTURE(Fixture, "a region whose frame has returned goes on for the caller") {
  FakePython::chain = {{100, kMain, 10}, {200, kHelper, 20}};
  open("outlives", 1);
  CHECK(operator_path() == "main:10 > outlives:20 > helper:20 > op");
  FakePython::chain = {{100, kMain, 11}};
  CHECK(operator_path() == "outlives:20 > main:11 > op");
  FakePython::chain = {{100, kMain, 12}, {200, kOther, 5}};  // where the helper's frame was
  CHECK(operator_path() == "outlives:20 > main:12 > other:5 > op");
  CHECK(end(1));
  CHECK(operator_path() == "main:12 > other:5 > op");
}

TEST_CASE_FIXTURE(Fixture, "a region opened by a context manager's generator belongs to the block") {
  FakePython::chain = {{100, kMain, 10}, {150, kWith, 1}, {300, kManager, 7}};
  CHECK(operator_path() == "main:10 > with:1 > manager:7 > op");
  open("block", 1);
  FakePython::chain = {{100, kMain, 11}};
  CHECK(operator_path() == "block:10 > main:11 > op");
}

TEST_CASE_FIXTURE(Fixture, "a region that ends first leaves what began inside it") {
  FakePython::chain = {{100, kMain, 10}};
  open("first", 1);
  clock.advance(10);
  FakePython::chain[0].line = 11;
  open("second", 2);
  clock.advance(100);
  CHECK(end(1));
  FakePython::chain[0].line = 12;
  CHECK(operator_path() == "second:11 > main:12 > op");
  clock.advance(1000);
  CHECK(path.scopes().back().earlier_ns == 100);
  CHECK(end(2));
  CHECK(operator_path() == "main:12 > op");
}

TEST_CASE_FIXTURE(Fixture, "a region opened in one hook and closed in another does not lose the operator around") {
  FakePython::chain = {{100, kMain, 10}};
  begin("node A", 1);
  FakePython::chain.push_back({200, kHelper, 20});
  open("between hooks", 2);
  FakePython::chain.pop_back();
  CHECK(end(1));
  begin("node B", 3);
  CHECK(text() == "between hooks:20 > main:10 > node B");
  FakePython::chain.push_back({200, kOther, 30});
  CHECK(end(2));
  CHECK(operator_path() == "main:10 > node B > other:30 > op");
  FakePython::chain.pop_back();
  CHECK(end(3));
  CHECK(path.scopes().empty());
}

TEST_CASE_FIXTURE(Fixture, "coroutines that take turns allocate nothing") {
  for (int task = 0; task < 8; ++task) {
    FakePython::chain = {{100, kMain, 10}, {static_cast<uintptr_t>(1000 + 16 * task), kTask, 50}};
    open("request", 1 + 2 * task);
    open("part", 2 + 2 * task);
  }
  const auto take_turns = [&] {
    uint64_t allocations = 0;
    for (uintptr_t task = 0; task < 8; ++task) {
      FakePython::chain = {{100, kMain, 10}, {1000 + 16 * task, kTask, 50}};
      const uint64_t before = t_allocations.made;
      begin("op", 99);
      end(99);
      allocations += t_allocations.made - before;
    }
    return allocations;
  };
  take_turns();
  CHECK(take_turns() == 0);
}

TEST_CASE_FIXTURE(Fixture, "statements are learned anew when roles change") {
  FakePython::chain = {{100, kMain, 10}, {200, kHelper, 20}};
  CHECK(operator_path() == "main:10 > helper:20 > op");
  CodeRoles roles;
  roles.known = {{kHelper, CodeRole::kHidden}};
  PathFrames::set_roles(roles);
  path.clear();  // a session begins
  CHECK(operator_path() == "main:10 > op");
}

TEST_CASE_FIXTURE(Fixture, "code that is made over and over, equal in name and line, is one frame") {
  FakePython::chain = {{100, kMain, 10}};
  operator_path();
  const uint32_t frames = path.frames().size();
  for (uintptr_t code = 1000; code < 2000; ++code) {
    FakePython::functions[code] = "generated";
    FakePython::chain = {{100, kMain, 10}, {200, code, 1}};
    CHECK(operator_path() == "main:10 > generated:1 > op");
  }
  CHECK(path.frames().size() == frames + 1);
}

TEST_CASE("names without end are kept up to a limit, and the rest is counted") {
  ModuleNames modules;
  PathFrames frames(FakePython::source(), &modules, 100);
  losses().clear();
  const PathFrameId known = frames.named(FrameKind::kRegion, "step 0");
  for (int i = 0; i < 1000; ++i) frames.named(FrameKind::kRegion, "step " + std::to_string(i));
  for (int i = 0; i < 1000; ++i) {
    const std::string shapes = "{\"shapes\": [" + std::to_string(i) + "]}";
    frames.operator_named("aten::mm", true, shapes.c_str());
  }
  CHECK(frames.size() <= 102);  // one for each kind beyond the limit
  CHECK(losses().total(LossKind::kNodesDropped) == 1900);
  CHECK(frames.named(FrameKind::kRegion, "step 0") == known);
  CHECK(std::string(frames[frames.named(FrameKind::kRegion, "step 999")].name) == "(names beyond the limit)");
}

TEST_CASE("native frames are told apart by address and file") {
  ModuleNames modules;
  PathFrames frames(FakePython::source(), &modules);
  const PathFrameId frame = frames.native({"mm", "libtorch_cpu.so", "b1", 0x1234});
  CHECK(frames.native({"mm", "libtorch_cpu.so", "b1", 0x1234}) == frame);
  CHECK(frames.native({"mm", "libtorch_cpu.so", "b1", 0x1238}) != frame);
  CHECK(frames.native({"mm", "libc10.so", "b2", 0x1234}) != frame);
  CHECK(frames[frame].kind == FrameKind::kNative);
  CHECK(frames[frame].address == 0x1234);
  CHECK(std::string(frames[frame].file) == "libtorch_cpu.so");
  CHECK(std::string(frames[frame].module) == "b1");
}
