// Small fusions, each with the weights that follow from their shapes by hand: additions + bytes read + bytes written.
#include "xla/weights.h"

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "xla/proto_writer.h"

using namespace leadline::xla;
using test::Message;

namespace {

constexpr uint64_t kS32 = 4;
constexpr uint64_t kF32 = 11;
constexpr uint64_t kF64 = 12;

struct Op {
  std::string name;  // begins with ~: has no stack
  std::string opcode;
  std::vector<uint64_t> dimensions;
  std::vector<std::string> operands = {};
  std::string called = "";
  Message more = {};
  uint64_t type = kF32;
  uint64_t number = 0;  // of a parameter
};

// Computations in the order of a file: what is called before who calls it. The last has the instruction that is weighed
// as its root.
class Program {
 public:
  Program& computation(const std::string& name, const std::vector<Op>& ops) {
    Message message;
    message.bytes(1, name);
    for (const Op& op : ops) {
      ids_[op.name] = next_;
      Message one;
      one.bytes(1, op.name).bytes(2, op.opcode).message(3, shape(op));
      const bool known = op.name.front() != '~';
      one.message(7, Message().bytes(2, known ? "jit(f)/" + op.name : "").number(15, known ? 1 : 0));
      if (op.opcode == "parameter") one.number(9, op.number);
      one.number(35, next_++);
      for (const std::string& operand : op.operands) one.number(36, ids_.at(operand));
      if (!op.called.empty()) one.number(38, computations_.at(op.called));
      one.append(op.more);
      message.message(2, one);
    }
    computations_[name] = next_;
    whole_.message(3, message.number(5, next_).number(6, next_ - 1));
    next_++;
    return *this;
  }

  // By name, of what `fusion` calls.
  std::map<std::string, double> weighed(const std::string& fusion = "fusion") const {
    std::string problem;
    const Module module(whole_.text(), &problem);
    REQUIRE(problem.empty());
    std::map<std::string, double> found;
    for (const auto& [row, weight] : weights(module, module.find(fusion), Known::kByStack))
      found.emplace(module.instructions()[row].name, weight);
    return found;
  }

 private:
  static Message shape(const Op& op) {
    Message message;
    if (op.opcode == "tuple") {
      message.number(2, 13);
      for (size_t i = 0; i < op.operands.size(); ++i) {
        Message part;
        part.number(2, op.type);
        for (const uint64_t dimension : op.dimensions) part.number(3, dimension);
        message.message(4, part);
      }
      return message;
    }
    message.number(2, op.type);
    for (const uint64_t dimension : op.dimensions) message.number(3, dimension);
    return message;
  }

  Message whole_;
  uint64_t next_ = 1;
  std::map<std::string, uint64_t> ids_, computations_;
};

Message window(const std::vector<uint64_t>& sizes) {
  Message all;
  for (const uint64_t size : sizes) all.message(1, Message().number(1, size));
  return Message().message(15, all);
}

// The function of a reduction; its addition has a stack or not.
std::vector<Op> sum(bool known) {
  return {{"~a", "parameter", {}},
          {"~b", "parameter", {}, {}, "", {}, kF32, 1},
          {known ? "plus" : "~plus", "add", {}, {"~a", "~b"}}};
}

using Weights = std::map<std::string, double>;

double bytes(int count) { return count / 2.0; }

// A fusion of these operations, the last of which is its result.
Weights fused(const std::vector<Op>& ops, bool reducer_known = false) {
  Program program;
  program.computation("sum", sum(reducer_known)).computation("fused", ops);
  program.computation("main", {{"fusion", "fusion", ops.back().dimensions, {}, "fused", {}, ops.back().type}});
  return program.weighed();
}

Op parameter(const std::string& name, std::vector<uint64_t> dimensions, uint64_t number, uint64_t type = kF32) {
  return {name, "parameter", std::move(dimensions), {}, "", {}, type, number};
}

}  // namespace

TEST_CASE("elements are counted by what they compute, and what comes in and goes out by its bytes") {
  CHECK(fused({parameter("~x", {100}, 0),
               parameter("~y", {100}, 1),
               {"exp", "exponential", {100}, {"~x"}},
               {"add", "add", {100}, {"exp", "~y"}}}) ==
        Weights{{"exp", 100 * 20 + bytes(400)}, {"add", 100 + bytes(400 + 400)}});
  CHECK(fused({parameter("~x", {100}, 0, kF64),
               {"log", "log", {100}, {"~x"}, "", {}, kF64},
               {"root", "sqrt", {100}, {"log"}, "", {}, kF64}}) ==
        Weights{{"log", 2 * 100 * 20 + bytes(800)}, {"root", 2 * 100 * 8 + bytes(800)}});
  CHECK(fused({parameter("~x", {100}, 0, kS32), {"halves", "divide", {100}, {"~x", "~x"}, "", {}, kS32}}) ==
        Weights{{"halves", 100 * 100 + bytes(400 + 400)}});
}

TEST_CASE("what only spreads or renames values costs what it reads") {
  CHECK(fused({parameter("~bias", {10}, 0),
               parameter("~x", {5, 10}, 1),
               {"spread", "broadcast", {5, 10}, {"~bias"}},
               {"~same", "bitcast", {5, 10}, {"~x"}},
               {"add", "add", {5, 10}, {"spread", "~same"}},
               {"~out", "bitcast", {50}, {"add"}}}) == Weights{{"spread", bytes(40)}, {"add", 50 + bytes(200 + 200)}});
}

TEST_CASE("a reduction asks for all of its operand and runs its function for each element") {
  const std::vector<Op> ops = {parameter("~x", {10, 100}, 0),
                               {"~zero", "constant", {}},
                               {"square", "multiply", {10, 100}, {"~x", "~x"}},
                               {"reduce", "reduce", {10}, {"square", "~zero"}, "sum"}};
  CHECK(fused(ops, false) == Weights{{"square", 1000 + bytes(4000)}, {"reduce", 1000 + bytes(40)}});
  CHECK(fused(ops, true) == Weights{{"square", 1000 + bytes(4000)}, {"plus", 1000}, {"reduce", bytes(40)}});
}

TEST_CASE("a window computes what it slides over as often as it meets it") {
  CHECK(fused({parameter("~x", {100}, 0),
               {"~zero", "constant", {}},
               {"exp", "exponential", {100}, {"~x"}},
               {"pool", "reduce-window", {98}, {"exp", "~zero"}, "sum", window({3})}}) ==
        Weights{{"exp", 3 * 98 * 20 + bytes(400)}, {"pool", 3 * 98 + bytes(392)}});
}

TEST_CASE("a product of matrices and a convolution count each term twice") {
  const Message over = Message().message(30, Message().number(1, 1));
  CHECK(fused({parameter("~x", {4, 16}, 0),
               parameter("~w", {16, 8}, 1),
               {"dot", "dot", {4, 8}, {"~x", "~w"}, "", over},
               {"tanh", "tanh", {4, 8}, {"dot"}}}) ==
        Weights{{"dot", 2 * 32 * 16 + bytes(256 + 512)}, {"tanh", 32 * 20 + bytes(128)}});
  Message kernel = window({3, 3});
  kernel.message(16, Message().number(4, 3));
  CHECK(fused({parameter("~x", {1, 10, 10, 4}, 0),
               parameter("~k", {3, 3, 4, 16}, 1),
               {"conv", "convolution", {1, 8, 8, 16}, {"~x", "~k"}, "", kernel},
               {"negate", "negate", {1, 8, 8, 16}, {"conv"}}}) ==
        Weights{{"conv", 2 * 1024 * 36 + bytes(1600 + 2304)}, {"negate", 1024 + bytes(4096)}});
}

TEST_CASE("an update in place reads and writes what is new, a slice what it takes") {
  CHECK(fused({parameter("~cache", {1000, 64}, 0),
               parameter("~x", {1, 64}, 1),
               parameter("~i", {}, 2, kS32),
               {"square", "multiply", {1, 64}, {"~x", "~x"}},
               {"update", "dynamic-update-slice", {1000, 64}, {"~cache", "square", "~i"}}}) ==
        Weights{{"square", 64 + bytes(256)}, {"update", bytes(256 + 4)}});
  // What is updated is computed first: all of it is written.
  CHECK(fused({parameter("~cache", {100}, 0),
               parameter("~x", {1}, 1),
               parameter("~i", {}, 2, kS32),
               {"negate", "negate", {100}, {"~cache"}},
               {"update", "dynamic-update-slice", {100}, {"negate", "~x", "~i"}}}) ==
        Weights{{"negate", 100 + bytes(400)}, {"update", 100 + bytes(4 + 4 + 400)}});
  CHECK(fused({parameter("~x", {1000}, 0),
               parameter("~i", {}, 1, kS32),
               {"exp", "exponential", {1000}, {"~x"}},
               {"slice", "dynamic-slice", {10}, {"exp", "~i"}}}) ==
        Weights{{"exp", 10 * 20 + bytes(40)}, {"slice", bytes(40 + 4)}});
  CHECK(fused({parameter("~table", {5000, 8}, 0),
               parameter("~i", {20}, 1, kS32),
               {"take", "gather", {20, 8}, {"~table", "~i"}},
               {"double", "add", {20, 8}, {"take", "take"}}}) ==
        Weights{{"take", bytes(640 + 80)}, {"double", 160 + bytes(640)}});
  CHECK(fused({parameter("~grad", {5000, 8}, 0),
               parameter("~i", {20}, 1, kS32),
               parameter("~u", {20, 8}, 2),
               {"scatter", "scatter", {5000, 8}, {"~grad", "~i", "~u"}, "sum"}}) ==
        Weights{{"scatter", 160 + bytes(80 + 640 + 640)}});
}

TEST_CASE("each of several results is written by who makes it, and what they read is shared") {
  CHECK(fused({parameter("~x", {100}, 0),
               {"exp", "exponential", {100}, {"~x"}},
               {"negate", "negate", {100}, {"~x"}},
               {"~both", "tuple", {100}, {"exp", "negate"}}}) ==
        Weights{{"exp", 100 * 20 + bytes(200 + 400)}, {"negate", 100 + bytes(200 + 400)}});
}

TEST_CASE("operations without a stack hand what they cost to who uses them, the last to what it is of") {
  CHECK(fused({parameter("~x", {100}, 0),
               {"~convert", "convert", {100}, {"~x"}},
               {"sqrt", "sqrt", {100}, {"~convert"}},
               {"~last", "negate", {100}, {"sqrt"}}}) ==
        Weights{{"sqrt", bytes(400) + 100 + 100 * 8 + 100 + bytes(400)}});
}

TEST_CASE("what a fusion calls in turn keeps its values in registers") {
  Program program;
  program.computation("inner", {parameter("~in", {100}, 0), {"exp", "exponential", {100}, {"~in"}}});
  program.computation("outer", {parameter("~x", {100}, 0),
                                {"negate", "negate", {100}, {"~x"}},
                                {"~nested", "fusion", {100}, {"negate"}, "inner"},
                                {"add", "add", {100}, {"~nested", "~nested"}}});
  program.computation("main", {{"fusion", "fusion", {100}, {}, "outer"}});
  CHECK(program.weighed() == Weights{{"negate", 100 + bytes(400)}, {"exp", 100 * 20}, {"add", 100 + bytes(400)}});
}

TEST_CASE("nobody's result and a computation that calls itself have an end") {
  CHECK(fused({parameter("~x", {100}, 0), {"dead", "tanh", {100}, {"~x"}}, {"negate", "negate", {100}, {"~x"}}}) ==
        Weights{{"dead", 0}, {"negate", 100 + bytes(400 + 400)}});
  Message self;
  for (uint64_t id = 1; id <= 8; ++id) {  // each calls this computation twice
    self.message(2, Message()
                        .bytes(1, "op" + std::to_string(id))
                        .bytes(2, "fusion")
                        .message(3, Message().number(2, kF32))
                        .message(7, Message().number(15, 1))
                        .number(35, id)
                        .number(36, id - 1)
                        .number(38, 9)
                        .number(38, 9));
  }
  self.number(5, 9).number(6, 8);
  std::string problem;
  const Module module(Message().message(3, self).text(), &problem);
  CHECK(problem.empty());
  CHECK(weights(module, 7, Known::kByStack).size() <= 8);
}
