// A program of two lines: `y = tanh(dot(x, w))` and an addition, the last two fused into one operation.
#include "xla/hlo.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "xla/origins.h"
#include "xla/proto_writer.h"

using namespace leadline::xla;
using test::Message;

namespace {

Message shape(std::vector<uint64_t> dimensions) {
  Message message;
  message.number(2, 11);  // F32
  for (const uint64_t dimension : dimensions) message.number(3, dimension);
  return message;
}

struct Op {
  const char* name;
  const char* opcode;
  const char* op_name;
  uint64_t stack;
  uint64_t id;
  std::vector<uint64_t> operands;
  std::vector<uint64_t> called;
  std::vector<uint64_t> dimensions;
};

Message instruction(const Op& op) {
  Message message;
  message.bytes(1, op.name).bytes(2, op.opcode).message(3, shape(op.dimensions));
  message.message(7, Message().bytes(2, op.op_name).number(15, op.stack));
  if (std::string(op.opcode) == "dot") message.message(30, Message().number(1, 1));
  if (std::string(op.name) == "w") message.number(9, 1);  // a parameter's number; 0 is not written
  message.number(35, op.id);
  for (const uint64_t operand : op.operands) message.number(36, operand);
  std::string packed;  // the other form of a repeated integer
  for (const uint64_t called : op.called) packed.push_back(static_cast<char>(called));
  if (!packed.empty()) message.bytes(38, packed);
  return message;
}

Message computation(const char* name, uint64_t id, uint64_t root, const std::vector<Op>& ops) {
  Message message;
  message.bytes(1, name);
  for (const Op& op : ops) message.message(2, instruction(op));
  return message.number(5, id).number(6, root);
}

// Frames, by number: 1 main:9, 2 step:3 below it, 3 step:4 below main, 4 loss:7 below step:3 below main below step:3.
Message stacks() {
  Message message;
  message.bytes(1, "train.py").bytes(2, "main").bytes(2, "step").bytes(2, "loss");
  const auto location = [](uint64_t function, uint64_t line) {
    return Message().number(1, 1).number(2, function).number(3, line);
  };
  message.message(3, location(1, 9)).message(3, location(2, 3)).message(3, location(2, 4)).message(3, location(3, 7));
  const auto stack = [](uint64_t at, uint64_t parent) { return Message().number(1, at).number(2, parent); };
  message.message(4, stack(1, 0)).message(4, stack(2, 1)).message(4, stack(3, 1));
  message.message(4, stack(2, 2)).message(4, stack(4, 4));
  return message;
}

// `frames`: 0 leaves the stacks of instructions out, as some settings of JAX do.
std::string program(uint64_t frames = 1) {
  Message message;
  message.bytes(1, "jit_step");
  message.message(3, computation("fused", 1, 12,
                                 {{"p0", "parameter", "", 0, 10, {}, {}, {4, 8}},
                                  {"one", "broadcast", "jit(step)/add", 3 * frames, 13, {10}, {}, {4, 8}},
                                  {"tanh", "tanh", "jit(step)/tanh", 2 * frames, 11, {10}, {}, {4, 8}},
                                  {"add", "add", "jit(step)/add", 3 * frames, 12, {11, 13}, {}, {4, 8}}}));
  message.message(3, computation("main", 2, 25,
                                 {{"x", "parameter", "x", 0, 20, {}, {}, {4, 16}},
                                  {"w", "parameter", "w", 0, 21, {}, {}, {16, 8}},
                                  {"dot.1", "dot", "jit(step)/dot_general", 5 * frames, 22, {20, 21}, {}, {4, 8}},
                                  {"copy.1", "copy", "jit(step)/add;jit(step)/mul", 0, 23, {22}, {}, {4, 8}},
                                  {"copy.2", "copy", "", 0, 24, {23}, {}, {4, 8}},
                                  {"fusion.1", "fusion", "", 0, 25, {24}, {1}, {4, 8}}}));
  message.message(4, Message()
                         .message(1, shape({4, 16}))
                         .message(1, Message().number(2, 13).message(4, shape({})).message(4, shape({2})))
                         .bytes(3, "p0")
                         .bytes(3, "p1"));
  message.number(5, 77).number(6, 2);
  message.message(8, Message().message(1, Message().number(2, 0)));
  message.message(17, stacks());
  return message.text();
}

std::vector<std::string> text(const std::vector<SourceFrame>& frames) {
  std::vector<std::string> lines;
  for (const SourceFrame& frame : frames)
    lines.push_back(std::string(frame.function) + ":" + std::to_string(frame.line));
  return lines;
}

}  // namespace

TEST_CASE("a program is read with its parameters, its number and its donated arguments") {
  std::string problem;
  const Module module(program(), &problem);
  CHECK(problem.empty());
  CHECK(module.name() == "jit_step");
  CHECK(module.id() == 77);
  CHECK(module.aliases() == 1);
  CHECK(module.entry() == 1);
  REQUIRE(module.parameters().size() == 2);
  CHECK(module.parameters()[0].name == "x");
  CHECK(module.parameters()[0].shape == "f32[4,16]");
  CHECK(module.parameters()[1].name == "w");
  CHECK(module.parameters()[1].shape == "(f32[], f32[2])");
  CHECK(module.instructions()[module.find("dot.1")].bytes == 4 * 8 * 4);
  CHECK(module.find("nothing") == kNone);
}

TEST_CASE("a frame that inlining has put in twice stands once, nearest to the operation") {
  std::string problem;
  const Module module(program(), &problem);
  CHECK(text(module.stack(2)) == std::vector<std::string>{"main:9", "step:3"});
  CHECK(text(module.stack(5)) == std::vector<std::string>{"main:9", "step:3", "loss:7"});
  CHECK(module.stack(0).empty());
  CHECK(module.stack(99).empty());
}

TEST_CASE("an operation comes from its own line, from what is fused into it, or from what stands next to it") {
  std::string problem;
  const Module module(program(), &problem);
  const OriginFinder finder(module);
  const Origins own = finder.find(module.find("dot.1"));
  CHECK(own.rung == Rung::kOwn);
  REQUIRE(own.parts.size() == 1);
  CHECK(own.parts[0].op_name == "jit(step)/dot_general");

  const Origins fused = finder.find(module.find("fusion.1"));
  CHECK(fused.rung == Rung::kInside);
  REQUIRE(fused.parts.size() == 2);
  CHECK(fused.parts[0].op_name == "jit(step)/tanh");  // dearer than an addition
  CHECK(fused.parts[0].share > fused.parts[1].share);
  CHECK(fused.parts[0].share + fused.parts[1].share == doctest::Approx(1));
  CHECK(fused.parts[1].opcode == "add");  // and not what it adds, spread out, which has its name

  const Origins merged = finder.find(module.find("copy.1"));
  CHECK(merged.rung == Rung::kSameName);
  CHECK(text(module.stack(merged.parts[0].stack)) == std::vector<std::string>{"main:9", "step:4"});

  const Origins near = finder.find(module.find("copy.2"));
  CHECK(near.rung == Rung::kOperand);  // who uses it, the fusion, has no line of its own
  CHECK(near.parts[0].opcode == "copy");
}

// A product that XLA has rewritten, and let its metadata go, below a fusion that consumes it.
std::string rewritten(const char* moved) {
  Message message;
  message.bytes(1, "jit_layer");
  message.message(3, computation("fused", 1, 13,
                                 {{"param_0.1", "parameter", "", 0, 10, {}, {}, {4, 1}},
                                  {"bitcast.2", "bitcast", moved, 4, 11, {10}, {}, {4}},
                                  {"max.4", "maximum", "jit(layer)/activation/max", 3, 13, {11}, {}, {4}}}));
  message.message(3, computation("main", 2, 24,
                                 {{"x", "parameter", "x", 0, 20, {}, {}, {4, 4}},
                                  {"product", "dot", "", 0, 21, {20, 20}, {}, {4, 1}},
                                  {"fusion", "fusion", "jit(layer)/activation/max", 3, 24, {21}, {1}, {4}}}));
  message.number(6, 2);
  message.message(17, stacks());
  return message.text();
}

TEST_CASE("an operation that computes stands in its own scope or in none, never in its consumer's") {
  std::string problem;
  const Module known(rewritten("jit(layer)/product/dot_general"), &problem);
  const Origins found = OriginFinder(known).find(known.find("product"));
  CHECK(found.rung == Rung::kMoved);
  REQUIRE(found.parts.size() == 1);
  CHECK(found.parts[0].op_name == "jit(layer)/product/dot_general");
  CHECK(found.parts[0].opcode == "dot");
  CHECK(text(known.stack(found.parts[0].stack)) == std::vector<std::string>{"main:9", "step:3"});

  const Module unknown(rewritten("jit(layer)/activation/reshape"), &problem);
  const Origins none = OriginFinder(unknown).find(unknown.find("product"));
  CHECK(none.rung == Rung::kNothing);
  CHECK(none.parts.empty());
}

TEST_CASE("where frames were left out of a program its operations have their names still") {
  std::string problem;
  const Module module(program(0), &problem);
  const OriginFinder finder(module);
  const Origins fused = finder.find(module.find("fusion.1"));
  CHECK(fused.rung == Rung::kNothing);
  REQUIRE(fused.parts.size() == 2);
  CHECK(fused.parts[0].op_name == "jit(step)/tanh");
  CHECK(module.stack(fused.parts[0].stack).empty());
  const Origins alone = finder.find(module.find("dot.1"));
  REQUIRE(alone.parts.size() == 1);
  CHECK(alone.parts[0].op_name == "jit(step)/dot_general");
  CHECK(finder.find(module.find("copy.2")).parts.empty());
}

TEST_CASE("what is cut off or changed is refused or read, and never read beyond") {
  const std::string whole = program();
  for (size_t length = 0; length < whole.size(); ++length) {
    std::string problem;
    const Module module(std::string(whole, 0, length), &problem);
    CHECK((problem.empty() || module.instructions().empty()));
  }
  test::Damage damage;
  for (int round = 0; round < 20'000; ++round) {
    const std::string changed = damage.of(whole);
    std::string problem;
    const Module module(changed, &problem);
    const OriginFinder finder(module);
    for (uint32_t row = 0; row < module.instructions().size(); ++row) {
      for (const Origin& part : finder.find(row).parts) CHECK(module.stack(part.stack).size() <= 4096);
    }
  }
}
