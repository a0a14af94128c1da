#include "providers/torch/coming_node.h"

#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <memory>

using namespace leadline::torch;

namespace {

// An autograd node as torch 2.13 has it, with three owners: the engine's two, and the one that is handed out.
struct Node {
  std::array<uint64_t, 8> words{};
  Node(int64_t sequence, uint64_t thread, size_t sequence_at) {
    words[1] = 3;
    words[sequence_at / 8] = static_cast<uint64_t>(sequence);
    words[sequence_at / 8 + 3] = thread;
  }
};
Node* g_node = nullptr;

// Returned through memory, one word of it.
struct Counted {
  explicit Counted(void* object) : object(object) {}
  Counted(const Counted&) = delete;
  ~Counted() {}  // NOLINT(modernize-use-equals-default): not trivial
  void* object;
};
Counted current_node() { return Counted(g_node); }

void use(Node& node) {
  g_node = &node;
  ComingNode::set_source(reinterpret_cast<ComingNode::Source>(&current_node));
}

}  // namespace

TEST_CASE("A node that is what it is taken for is identified, and its owner given back") {
  Node node(17, 4, 16);
  use(node);
  ComingNode::check(17, 4);
  CHECK(node.words[1] == 2);
  int64_t sequence = 0;
  uint64_t thread = 0;
  node.words[1] = 3;
  CHECK(ComingNode::identify(&sequence, &thread) == 1);
  CHECK(sequence == 17);
  CHECK(thread == 4);
  CHECK(node.words[1] == 2);
}

TEST_CASE("A node of another shape is left as it is, and none is asked for again") {
  Node node(17, 4, 24);  // one word further on
  const auto before = node.words;
  use(node);
  ComingNode::check(17, 4);
  CHECK(node.words == before);
  int64_t sequence = 0;
  uint64_t thread = 0;
  CHECK(ComingNode::identify(&sequence, &thread) == 0);
  ComingNode::check(17, 4);
  CHECK(node.words == before);
  ComingNode::set_source(nullptr);
}
