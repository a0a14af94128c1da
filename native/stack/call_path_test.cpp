#include "stack/call_path.h"

#include <doctest/doctest.h>

#include <string>

#include "base/clock.h"
#include "base/losses.h"
#include "stack/fake_python.h"

using namespace leadline;
using leadline::testing::FakePython;

namespace {

// Functions by number: what a test's chain is made of.
enum : uintptr_t {
  kMain = 1,
  kForward = 2,
  kHelper = 3,
  kModule = 4,
  kEnter = 5,
  kWrapper = 6,
  kRecompute = 7,
  kTask = 8
};

struct Fixture {
  Fixture() {
    FakePython::reset();
    FakePython::functions = {{kMain, "main"},           {kForward, "forward"}, {kHelper, "helper"},
                             {kModule, "__call__"},     {kEnter, "__enter__"}, {kWrapper, "wrapper"},
                             {kRecompute, "recompute"}, {kTask, "task"}};
    CodeRoles roles;
    roles.known = {{kModule, CodeRole::kModuleCall},
                   {kEnter, CodeRole::kOpener},
                   {kWrapper, CodeRole::kHidden},
                   {kRecompute, CodeRole::kRecompute}};
    PathFrames::set_roles(roles);
    FakePython::suspending = {kTask};
  }
  ~Fixture() { PathFrames::set_roles({}); }

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
  void begin(const char* name, int token) {
    path.sync();
    path.push(reinterpret_cast<const void*>(static_cast<uintptr_t>(token)), ScopeKind::kOperator,
              path.frames().operator_named(name, std::nullopt));
  }
  void open(const char* name, int token) {
    path.sync();
    path.push_region(reinterpret_cast<const void*>(static_cast<uintptr_t>(token)), ScopeKind::kRegion,
                     path.frames().named(FrameKind::kRegion, name));
  }
  bool end(int token) {
    uint64_t dropped = 0;
    if (!path.bring_up(reinterpret_cast<const void*>(static_cast<uintptr_t>(token)), now_ns(), &dropped)) return false;
    path.pop();
    return true;
  }

  ModuleNames modules;
  CallPath path{FakePython::source(), &modules};
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "an operator stands below the Python statement that called it") {
  FakePython::chain = {{100, kMain, 10}, {200, kForward, 20}};
  begin("aten::mm", 1);
  CHECK(text() == "main:10 > forward:20 > aten::mm");
  CHECK(end(1));
  FakePython::chain[1].line = 21;
  begin("aten::add", 2);
  CHECK(text() == "main:10 > forward:21 > aten::add");
}

TEST_CASE_FIXTURE(Fixture, "an operator below an operator without Python between costs no walk") {
  FakePython::chain = {{100, kMain, 10}};
  begin("aten::linear", 1);
  const int walks = FakePython::walks;
  begin("aten::addmm", 2);
  CHECK(FakePython::walks == walks);
  CHECK(text() == "main:10 > aten::linear > aten::addmm");
}

TEST_CASE_FIXTURE(Fixture, "Python called back from an operator stands between the two") {
  FakePython::chain = {{100, kMain, 10}};
  begin("MyFunctionBackward", 1);
  FakePython::chain.push_back({200, kHelper, 30});
  begin("aten::mul", 2);
  CHECK(text() == "main:10 > MyFunctionBackward > helper:30 > aten::mul");
  end(2);
  FakePython::chain.pop_back();
  CHECK(end(1));
  path.sync();
  CHECK(text() == "main:10");
}

TEST_CASE_FIXTURE(Fixture, "slots survive as long as their level stays") {
  FakePython::chain = {{100, kMain, 10}, {200, kForward, 20}};
  path.sync();
  path.entries()[0].slot = 7;
  path.entries()[1].slot = 8;
  FakePython::chain[1].line = 22;
  path.sync();
  CHECK(path.entries()[0].slot == 7);
  CHECK(path.entries()[1].slot == 0);
}

TEST_CASE_FIXTURE(Fixture, "the same address with another activation is compared by statement") {
  FakePython::chain = {{100, kMain, 10}, {200, kForward, 20}};
  path.sync();
  FakePython::chain = {{100, kMain, 11}, {200, kForward, 20}};
  path.sync();
  CHECK(text() == "main:11 > forward:20");
}

TEST_CASE_FIXTURE(Fixture, "another code object at a known address is not taken for the old one") {
  FakePython::chain = {{100, kMain, 10}, {200, kHelper, 5}};
  path.sync();
  CHECK(text() == "main:10 > helper:5");
  FakePython::functions[kHelper] = "generated";
  FakePython::fingerprints[kHelper] = 999;
  FakePython::codes_freed.fetch_add(1);
  path.sync();
  CHECK(text() == "main:10 > generated:5");
}

TEST_CASE_FIXTURE(Fixture, "modules show by qualified name, below a forward phase") {
  modules.add(500, 501, "layers");
  modules.name_root(500, "model");
  FakePython::chain = {
      {100, kMain, 10}, {200, kModule, 1, 500}, {201, kForward, 20}, {202, kModule, 1, 501}, {203, kForward, 21}};
  begin("aten::mm", 1);
  CHECK(text() == "main:10 > forward > model > forward:20 > model.layers > forward:21 > aten::mm");
  end(1);
  FakePython::chain[3].self = 502;  // another child of the same statement
  modules.add(500, 502, "head");
  path.sync();
  CHECK(text() == "main:10 > forward > model > forward:20 > model.head > forward:21");
}

TEST_CASE_FIXTURE(Fixture, "a module that has died keeps the name it had, and shows as none where it had none") {
  modules.name_root(500, "model");
  FakePython::chain = {{100, kMain, 10}, {200, kModule, 1, 500}, {201, kForward, 20}};
  path.sync();
  CHECK(text() == "main:10 > forward > model > forward:20");
  FakePython::dead = {500, 501};
  modules.forget(500);
  modules.name_root(500, "another");  // at the same address
  FakePython::chain = {{100, kMain, 11}, {200, kModule, 1, 500}, {201, kForward, 21}};
  path.sync();
  CHECK(text() == "main:11 > forward > model > forward:21");
  FakePython::chain = {{100, kMain, 12}, {200, kModule, 1, 501}, {201, kForward, 20}};
  path.sync();
  CHECK(text() == "main:12 > forward:20");
}

TEST_CASE_FIXTURE(Fixture, "a region stands above the frame that opened it and shows where") {
  FakePython::chain = {{100, kMain, 10}, {200, kEnter, 1}, {201, kHelper, 2}};
  open("epoch", 1);
  FakePython::chain = {{100, kMain, 11}};
  begin("aten::mm", 2);
  CHECK(text() == "epoch:10 > main:11 > aten::mm");
  end(2);
  CHECK(end(1));
  FakePython::chain[0].line = 12;
  path.sync();
  CHECK(text() == "main:12");
}

TEST_CASE_FIXTURE(Fixture, "a region of a suspended coroutine waits for its frame") {
  // The loop runs task A, which opens a region and yields; task B has nothing to do with it.
  FakePython::chain = {{100, kMain, 10}, {300, kTask, 50}, {301, kEnter, 1}};
  open("request", 1);
  FakePython::chain = {{100, kMain, 10}, {300, kTask, 51}};
  begin("aten::a", 2);
  CHECK(text() == "main:10 > request:50 > task:51 > aten::a");
  end(2);
  FakePython::chain = {{100, kMain, 10}, {400, kTask, 60}};
  begin("aten::b", 3);
  CHECK(text() == "main:10 > task:60 > aten::b");
  end(3);
  FakePython::chain = {{100, kMain, 10}, {300, kTask, 52}};
  begin("aten::c", 4);
  CHECK(text() == "main:10 > request:50 > task:52 > aten::c");
  end(4);
  CHECK(end(1));
}

TEST_CASE_FIXTURE(Fixture, "recomputation is marked") {
  FakePython::chain = {{100, kMain, 10}};
  begin("CheckpointBackward", 1);
  FakePython::chain.push_back({200, kRecompute, 2});
  FakePython::chain.push_back({201, kForward, 20});
  begin("aten::mm", 2);
  CHECK(text() == "main:10 > CheckpointBackward > recompute > recompute:2 > forward:20 > aten::mm");
}

TEST_CASE_FIXTURE(Fixture, "an end that skips others drops and counts them") {
  begin("a", 1);
  begin("b", 2);
  begin("c", 3);
  uint64_t dropped = 0;
  REQUIRE(path.bring_up(reinterpret_cast<const void*>(uintptr_t{1}), now_ns(), &dropped));
  CHECK(dropped == 2);
  path.pop();
  CHECK(text().empty());
  CHECK_FALSE(path.bring_up(reinterpret_cast<const void*>(uintptr_t{2}), now_ns(), &dropped));
}

TEST_CASE_FIXTURE(Fixture, "ten thousand frames are right, and far more are cut and counted") {
  for (uintptr_t i = 0; i < 10'000; ++i) FakePython::chain.push_back({1000 + i, kHelper, i % 7 + 1});
  path.sync();
  CHECK(path.entries().size() == 10'000);
  CHECK(losses().total(LossKind::kPythonFramesTruncated) == 0);
  for (uintptr_t i = 0; i < 80'000; ++i) FakePython::chain.push_back({20'000 + i, kHelper, 3});
  path.sync();
  CHECK(losses().total(LossKind::kPythonFramesTruncated) == 1);
  CHECK(path.entries().size() == 65'536);
}

TEST_CASE("without Python the path holds operators only") {
  ModuleNames modules;
  CallPath path(nullptr, &modules);
  path.sync();
  path.push(nullptr, ScopeKind::kOperator, path.frames().operator_named("op", std::nullopt));
  CHECK(path.entries().size() == 1);
  path.pop();
  CHECK(path.entries().empty());
}

TEST_CASE("operator names are told apart by text unless the pointer is stable") {
  ModuleNames modules;
  PathFrames frames(nullptr, &modules);
  char buffer[16] = "first";
  const PathFrameId first = frames.operator_named(buffer, std::nullopt);
  std::string("other").copy(buffer, 5);
  const PathFrameId second = frames.operator_named(buffer, std::nullopt);
  CHECK(first != second);
  CHECK(std::string(frames[second].name) == "other");
  CHECK(frames.operator_named("first", std::nullopt) == first);
  CHECK(frames.operator_named("first", true, "{\"shapes\": []}") != first);
  const PathFrameId wrapper = frames.operator_named("one engine: AddmmBackward0", std::nullopt);
  const PathFrameId same_end = frames.operator_named("two engine: AddmmBackward0", std::nullopt);
  CHECK(wrapper != same_end);
  CHECK(frames.operator_named("one engine: AddmmBackward0", std::nullopt) == wrapper);
  CHECK(frames.operator_named("", std::nullopt) == frames.operator_named("", std::nullopt));
}

TEST_CASE("names beyond the limit share a frame, whatever their length") {
  ModuleNames modules;
  PathFrames frames(nullptr, &modules, 4);
  for (int i = 0; i < 8; ++i) frames.operator_named(std::to_string(i).c_str(), std::nullopt);
  const std::string longer(200, 'x');
  const PathFrameId shared = frames.operator_named(longer.c_str(), std::nullopt);
  CHECK(frames.operator_named(longer.c_str(), std::nullopt) == shared);
  CHECK(frames.operator_named((longer.substr(1) + "y").c_str(), std::nullopt) == shared);
}

TEST_CASE("a module whose address came again has the new name") {
  ModuleNames names;
  names.add(1, 2, "old");
  CHECK(names.qualified(2).name == "old");
  const uint64_t before = names.generation();
  names.forget(2);
  CHECK(names.generation() != before);
  names.add(1, 2, "new");
  names.name_root(1, "net");
  CHECK(names.qualified(2).name == "net.new");
  names.add(2, 1, "cycle");
  CHECK(names.qualified(2).complete);
}
