// An assignment of buffers as XLA writes it: arguments, a result, and a temporary allocation of two places for three.
#include "xla/buffers.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "xla/proto_writer.h"

using namespace leadline::xla;
using test::Message;

namespace {

Message buffer(uint64_t id, uint64_t bytes, uint64_t instruction) {
  return Message().number(1, id).number(2, bytes).message(3, Message().number(4, instruction));
}

Message allocation(uint64_t index, uint64_t bytes, const std::vector<uint64_t>& buffers, uint32_t is = 0) {
  Message message;
  message.number(1, index).number(2, bytes);
  if (is != 0) message.number(is, 1);
  for (const uint64_t id : buffers) message.message(9, Message().number(1, id));
  return message;
}

Message buffers() {
  Message message;
  message.message(1, buffer(1, 500, 10)).message(1, buffer(2, 300, 11)).message(1, buffer(3, 200, 12));
  message.message(1, buffer(4, 250, 13)).message(1, buffer(5, 9000, 14));
  message.message(3, allocation(0, 500, {1}, 5)).message(3, allocation(1, 9000, {5}, 7));
  message.message(3, allocation(2, 550, {2, 3, 4}));
  return message;
}

std::vector<int64_t> instructions(const Temporaries& found) {
  std::vector<int64_t> all;
  for (const Buffer& buffer : found.buffers) all.push_back(buffer.instruction);
  return all;
}

Message event(uint64_t kind, uint64_t buffer) { return Message().number(1, kind).number(2, buffer); }

}  // namespace

TEST_CASE("what is alive at the peak is told by its buffers, and arguments and results are none of it") {
  Message message = buffers();
  const std::string text = message.message(5, Message().number(1, 2).bytes(2, "\2\4")).text();
  const Temporaries found = temporaries(text);
  CHECK(found.bytes == 550);
  CHECK(found.at_peak);
  CHECK(instructions(found) == std::vector<int64_t>{11, 13});
  CHECK(found.buffers[0].bytes == 300);
}

TEST_CASE("a trace of older releases says the same") {
  Message trace;
  trace.message(1, event(0, 2)).message(1, event(0, 3)).message(1, event(1, 3)).message(1, event(0, 4));
  trace.message(1, event(1, 2)).message(1, event(0, 3)).number(3, 2);
  Message message = buffers();
  const std::string text = message.message(4, trace).text();
  const Temporaries found = temporaries(text);
  CHECK(found.at_peak);
  CHECK(instructions(found) == std::vector<int64_t>{11, 13});
}

TEST_CASE("where nothing tells, the largest are named and not called alive together; older locations have names") {
  const std::string text = buffers().text();
  const Temporaries found = temporaries(text);
  CHECK_FALSE(found.at_peak);
  CHECK(instructions(found) == std::vector<int64_t>{11, 13, 12});
  Message old;
  old.message(1, Message().number(1, 1).number(2, 64).message(3, Message().bytes(2, "dot.3")));
  const std::string older = old.message(3, allocation(0, 64, {1})).text();
  CHECK(temporaries(older).buffers.at(0).name == "dot.3");
}

TEST_CASE("damaged bytes are read as far as they go, and sums of hostile sizes stay in range") {
  Message message = buffers();
  message.message(5, Message().number(1, 2).bytes(2, "\2\4"));
  message.message(4, Message().message(1, event(0, 2)).number(3, 2));
  const std::string whole = message.message(3, allocation(3, UINT64_MAX >> 1, {2})).text();
  CHECK(temporaries(whole).bytes > 0);
  for (size_t length = 0; length < whole.size(); ++length) CHECK(temporaries(whole.substr(0, length)).bytes >= 0);
  test::Damage damage;
  for (int round = 0; round < 20'000; ++round) {
    const std::string changed = damage.of(whole);
    for (const Buffer& each : temporaries(changed).buffers) CHECK(each.bytes > 0);
  }
}
