// The node of the autograd graph that a thread is about to run, asked of the engine.
//
// The engine opens a range around each node, then runs hooks, and then the node's own backward operator, which alone
// says its sequence number. The engine also keeps the node itself for the thread; where in it number and thread stand
// is used only after a backward operator has confirmed both, and never again after one that did not.
#pragma once

#include <cstdint>

namespace leadline::torch {

class ComingNode {
 public:
  using Source = void (*)();  // torch::autograd::get_current_node; what it returns differs between releases

  // Whether a range, which has no schema, is the engine's around a node.
  static bool is_announced(const char* name) noexcept;
  static void set_source(Source current_node) noexcept;
  // A backward operator begins on this thread, and these are its numbers.
  static void check(int64_t sequence, uint64_t forward_thread) noexcept {
    if (is_unproven() && sequence > 0) [[unlikely]]
      prove(sequence, forward_thread);
  }
  // See leadline_wrapped.
  static int identify(int64_t* sequence, uint64_t* forward_thread) noexcept;

 private:
  static bool is_unproven() noexcept;
  static void prove(int64_t sequence, uint64_t forward_thread) noexcept;
};

}  // namespace leadline::torch
