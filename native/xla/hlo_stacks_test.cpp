// A program of which XLA has numbered the stacks anew, with numbers of the table before in its instructions.
#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "xla/hlo.h"
#include "xla/proto_writer.h"

using namespace leadline::xla;
using test::Message;

namespace {

struct Line {
  std::string_view file;
  uint64_t line;
  uint64_t column;
};

struct Op {
  const char* name;
  uint64_t stack;
  Line says;
};

// Of model.py. Frames, by number: 1 main:30, 2 loss:20 below it, 3 layer:10 below that at column 8, 4 the same at
// column 4, 5 loss:21 below 1, 6 layer:11 below 2, 7 layer:11 below 5, 8 step:40 below 1, 9 loss:21 below 8, 10
// layer:12 below 5, 11 layer:12 below 9.
Message stacks() {
  Message message;
  message.bytes(1, "model.py");
  for (const char* function : {"main", "loss", "layer", "step"}) message.bytes(2, function);
  const auto location = [&](uint64_t function, uint64_t line, uint64_t column) {
    message.message(3, Message().number(1, 1).number(2, function).number(3, line).number(4, column));
  };
  location(1, 30, 1);
  location(2, 20, 2);
  location(3, 10, 8);
  location(3, 10, 4);
  location(2, 21, 2);
  location(3, 11, 6);
  location(4, 40, 2);
  location(3, 12, 6);
  const auto stack = [&](uint64_t at, uint64_t parent) {
    message.message(4, Message().number(1, at).number(2, parent));
  };
  stack(1, 0);
  stack(2, 1);
  stack(3, 2);
  stack(4, 2);
  stack(5, 1);
  stack(6, 2);
  stack(6, 5);
  stack(7, 1);
  stack(5, 8);
  stack(8, 5);
  stack(8, 9);
  return message;
}

std::string program(const std::vector<Op>& ops) {
  Message main;
  main.bytes(1, "main");
  uint64_t id = 1;
  for (const Op& op : ops) {
    Message metadata;
    if (!op.says.file.empty()) metadata.bytes(3, op.says.file).number(4, op.says.line).number(18, op.says.column);
    if (op.stack != 0) metadata.number(15, op.stack);
    main.message(2, Message().bytes(1, op.name).bytes(2, "add").message(7, metadata).number(35, id++));
  }
  main.number(5, 1).number(6, 1);
  return Message().bytes(1, "jit_step").message(3, main).number(5, 7).number(6, 1).message(17, stacks()).text();
}

// The frames of an instruction, `main:30 loss:20`.
std::string shown(const Module& module, std::string_view name) {
  std::string text;
  for (const SourceFrame& frame : module.stack(module.instructions()[module.find(name)].stack)) {
    if (!text.empty()) text += ' ';
    text += std::string(frame.function) + ":" + std::to_string(frame.line);
  }
  return text;
}

}  // namespace

TEST_CASE("instructions with numbers of another table stand where they say that they do") {
  std::string problem;
  const Module module(program({{"dot", 2, {"model.py", 10, 8}},
                               {"tanh", 3, {"model.py", 10, 4}},  // by chance on the line where it belongs
                               {"other column", 9, {"model.py", 20, 7}},
                               {"unsaid", 4, {}},
                               {"unnumbered", 0, {"model.py", 30, 1}}}),
                      &problem);
  CHECK(problem.empty());
  CHECK(shown(module, "dot") == "main:30 loss:20 layer:10");
  CHECK(shown(module, "tanh") == "main:30 loss:20 layer:10");
  CHECK(shown(module, "other column") == "main:30 loss:20");
  CHECK(shown(module, "unsaid").empty());
  CHECK(shown(module, "unnumbered") == "main:30");
}

TEST_CASE("of several stacks that end on a line what all have in common is shown") {
  std::string problem;
  const Module module(program({{"from two lines", 1, {"model.py", 11, 6}}, {"by two ways", 1, {"model.py", 12, 6}}}),
                      &problem);
  CHECK(shown(module, "from two lines") == "main:30 layer:11");
  CHECK(shown(module, "by two ways") == "main:30 loss:21 layer:12");
}

TEST_CASE("a line that the table does not have is shown by itself") {
  std::string problem;
  const Module module(program({{"known", 2, {"model.py", 10, 8}}, {"new", 3, {"other.py", 5, 1}}}), &problem);
  CHECK(shown(module, "new") == ":5");
  const std::vector<SourceFrame> frames = module.stack(module.instructions()[module.find("new")].stack);
  CHECK(frames.back().file == "other.py");
}

TEST_CASE("numbers that agree with the lines, or with nothing that could be compared, are kept") {
  std::string problem;
  const Module agreeing(program({{"a", 6, {"model.py", 11, 6}}, {"b", 4, {}}}), &problem);
  CHECK(shown(agreeing, "a") == "main:30 loss:20 layer:11");
  CHECK(shown(agreeing, "b") == "main:30 loss:20 layer:10");
  const Module elsewhere(program({{"a", 6, {"/build/model.py", 11, 6}}}), &problem);
  CHECK(shown(elsewhere, "a") == "main:30 loss:20 layer:11");
}

TEST_CASE("damaged tables of another program's numbers are read within their bounds") {
  const std::string whole = program({{"dot", 2, {"model.py", 10, 8}}, {"by two ways", 1, {"model.py", 12, 6}}});
  test::Damage damage;
  for (int round = 0; round < 20'000; ++round) {
    std::string problem;
    const Module module(damage.of(whole), &problem);
    for (const Instruction& instruction : module.instructions()) CHECK(module.stack(instruction.stack).size() <= 4096);
  }
}
