#include "cct/compiled_operations.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <utility>

#include "testing/forked_child.h"

using namespace leadline;

namespace {

NodeId child(ThreadTree& tree, NodeId parent, std::string_view name, FrameKind kind = FrameKind::kPhase) {
  FrameKey key;
  key.kind = kind;
  key.name = tree.string(name);
  return tree.child(parent, tree.frame(key));
}

CompiledFrame operation(std::string name) {
  CompiledFrame frame;
  frame.name = std::move(name);
  return frame;
}

// As XLA writes them.
constexpr std::string_view kProgram = "XlaModule:#prefix=args[0],hlo_module=jit_step,program_id=12597#";
constexpr std::string_view kProduct =
    "Thunk:#name=jit(step)/while/body/a,hlo_op=no/dot_general,hlo_op=gemm_fusion_dot.66,unique_hlo_op_id=1846#";

}  // namespace

TEST_CASE("A title tells a program by its number and an operation by its name, whatever its other parts hold") {
  const CompiledTitle program = read_title(kProgram);
  CHECK(program.of == CompiledTitle::Of::kProgram);
  CHECK(program.program == 12597);
  CHECK(program.module == "jit_step");
  const CompiledTitle product = read_title(kProduct);
  CHECK(product.of == CompiledTitle::Of::kOperation);
  CHECK(product.operation == "gemm_fusion_dot.66");
  CHECK(read_title("Thunk:#hlo_op=command_buffer_104#").operation == "command_buffer_104");
}

TEST_CASE("What is no title, or one without a number, is nothing") {
  for (const std::string_view text :
       {"", "train", "XlaModule:#hlo_module=gemm_fusion_dot.85#", "XlaModule:#program_id=#",
        "XlaModule:#program_id=12x#", "XlaModule:#program_id=99999999999999999999999#", "Thunk:#name=copy#",
        "Thunk:#hlo_op=#", "XlaPass:#name=cse,program_id=7#"}) {
    CAPTURE(text);
    CHECK(read_title(text).of == CompiledTitle::Of::kNothing);
  }
}

TEST_CASE("What was said of a program and its operations first stays, and each new word is another version") {
  CompiledOperations known;
  const std::uint64_t before = known.version();
  known.put_program(7, operation("jit(step)"));
  known.put(7, "dot.1", {{{operation("dot_general")}, CompiledPart::kWhole}});
  CHECK(known.version() == before + 2);
  known.put_program(7, operation("jit(other)"));
  known.put(7, "dot.1", {{{operation("other")}, CompiledPart::kWhole}});
  known.put(7, "dot.2", {});
  CHECK(known.version() == before + 2);
  REQUIRE(known.program(7) != nullptr);
  CHECK(known.program(7)->name == "jit(step)");
  REQUIRE(known.operation(7, "dot.1") != nullptr);
  CHECK(known.operation(7, "dot.1")->front().frames.front().name == "dot_general");
  CHECK(known.operation(7, "dot.2") == nullptr);
  CHECK(known.program(8) == nullptr);
}

TEST_CASE("The program above an operation is the one that launched it, not the one that recorded it") {
  LossCounters losses;
  TreeRegistry trees(1'000'000, losses);
  ThreadTree& main = trees.create(1, "main");
  ThreadTree& records = trees.create(2, "records");
  const NodeId launched = child(main, child(main, main.root(), "line", FrameKind::kPython), kProgram);
  const NodeId buffer = child(main, launched, "Thunk:#hlo_op=command_buffer_1#");
  const NodeId recorded = child(records, child(records, records.graft(main.index(), buffer), "captured at"), kProgram);
  const NodeId product = child(records, recorded, kProduct);
  const ProgramAbove above = program_above(trees, records.index(), product);
  REQUIRE(above);
  CHECK(above.program == 12597);
  CHECK(above.thread == main.index());
  CHECK(above.node == launched);
  CHECK_FALSE(program_above(trees, main.index(), main.root()));
  // a program that another one calls back into is its own
  const NodeId inner = child(main, buffer, "XlaModule:#hlo_module=jit_inner,program_id=8#");
  CHECK(program_above(trees, main.index(), child(main, inner, kProduct)).node == inner);
}

TEST_CASE("What ran unexplained is told once for each program and operation, and runs are those below a caller") {
  LossCounters losses;
  TreeRegistry trees(1'000'000, losses);
  ThreadTree& main = trees.create(1, "main");
  const NodeId line = child(main, main.root(), "line", FrameKind::kPython);
  const NodeId called = child(main, line, kProgram);
  child(main, called, kProduct);
  child(main, line, "Thunk:#hlo_op=without.a.program#");
  main.add(called, MetricKind::kCallTime, kCpuDevice, kNoStream, 10);
  main.add(called, MetricKind::kCallTime, kCpuDevice, kNoStream, 20);
  ThreadTree& own = trees.create(2, "of XLA");
  own.add(child(own, own.root(), kProgram), MetricKind::kCallTime, kCpuDevice, kNoStream, 10);
  CompiledOperations known;
  const std::set<UnknownOperation> unknown = unknown_operations(trees, known);
  REQUIRE(unknown.size() == 2);
  CHECK(*unknown.begin() == UnknownOperation{12597, "", "jit_step"});
  CHECK(*unknown.rbegin() == UnknownOperation{12597, "gemm_fusion_dot.66", ""});
  known.put_program(12597, operation("jit(step)"));
  known.put(12597, "gemm_fusion_dot.66", {{{operation("dot_general")}, CompiledPart::kWhole}});
  CHECK(unknown_operations(trees, known).empty());
  CHECK(titled_runs(trees) == std::map<std::uint64_t, std::uint64_t>{{12597, 2}});
}

TEST_CASE("a child forked while another thread names a program has a lock of its own") {
  CompiledOperations known;
  const auto names = [&](std::uint64_t i) { known.put_program(i % 1000, operation("jit(step)")); };
  CHECK(leadline::testing::failures_of_children_beside(names, [&] {
          known.after_fork();
          known.put_program(5000, operation("jit(child)"));
          return known.program(5000) != nullptr && known.program(5000)->name == "jit(child)" ? 0 : 1;
        }) == 0);
}
