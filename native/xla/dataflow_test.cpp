#include "xla/dataflow.h"

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

#include "xla/proto_writer.h"

using namespace leadline::xla;
using test::Message;

namespace {

struct Op {
  const char* name;
  const char* opcode;
  uint64_t id;
  std::vector<uint64_t> operands;
  std::vector<uint64_t> called;
};

Message computation(const char* name, uint64_t id, uint64_t root, const std::vector<Op>& ops) {
  Message message;
  message.bytes(1, name);
  for (const Op& op : ops) {
    Message one;
    one.bytes(1, op.name).bytes(2, op.opcode).number(35, op.id);
    for (const uint64_t operand : op.operands) one.number(36, operand);
    for (const uint64_t called : op.called) one.number(38, called);
    message.message(2, one);
  }
  return message.number(5, id).number(6, root);
}

std::set<std::string> edges(const Module& module, size_t most = 100) {
  const Dataflow found = dataflow(module, most);
  const auto name = [&](uint32_t place) { return std::string(module.instructions()[found.operations[place]].name); };
  std::set<std::string> text;
  for (size_t i = 0; i + 1 < found.edges.size(); i += 2)
    text.insert(name(found.edges[i]) + " > " + name(found.edges[i + 1]));
  return text;
}

std::string program() {
  Message message;
  message.bytes(1, "jit_f");
  message.message(3, computation("fused", 1, 11, {{"in", "parameter", 10, {}, {}}, {"neg", "negate", 11, {10}, {}}}));
  message.message(3, computation("body", 2, 24,
                                 {{"state", "parameter", 20, {}, {}},
                                  {"part", "get-tuple-element", 21, {20}, {}},
                                  {"sine", "sine", 22, {21}, {}},
                                  {"dot.2", "dot", 23, {22, 21}, {}},
                                  {"next", "tuple", 24, {23}, {}}}));
  message.message(3, computation("main", 3, 37,
                                 {{"x", "parameter", 30, {}, {}},
                                  {"fusion", "fusion", 31, {30}, {1}},
                                  {"same", "bitcast", 32, {31}, {}},
                                  {"dot.1", "dot", 33, {32, 31}, {}},
                                  {"init", "tuple", 34, {33, 31}, {}},
                                  {"while", "while", 35, {34}, {2}},
                                  {"result", "get-tuple-element", 36, {35}, {}},
                                  {"add", "add", 37, {36, 33}, {}}}));
  message.number(5, 7).number(6, 3);
  return message.text();
}

}  // namespace

TEST_CASE(
    "who waits for whom, through names for what is there already, in loops too, and not inside of what is fused") {
  std::string problem;
  const Module module(program(), &problem);
  REQUIRE(problem.empty());
  CHECK(edges(module) == std::set<std::string>{"fusion > dot.1", "dot.1 > while", "fusion > while", "while > add",
                                               "dot.1 > add", "sine > dot.2"});
  CHECK(dataflow(module).operations.size() == 6);
}

TEST_CASE("of a program with too many edges there are none, and none of what is no program") {
  std::string problem;
  const Module module(program(), &problem);
  CHECK(edges(module, 5).empty());
  CHECK(edges(module, 6).size() == 6);
  const Module none("no program", &problem);
  CHECK(dataflow(none).operations.empty());
}
