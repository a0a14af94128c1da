// Which operators compute what was computed before: value numbering while the program runs.
//
// A tensor's number follows from what made it: the operator, the numbers of its inputs and its other arguments. An
// operator that is called with arguments and numbers of an earlier call computes the same again. Values are not
// compared; of memory of the CPU some words are read too, since others (NumPy) may share it and write to it unseen.
//
// Memory that torch's allocators did not make (`torch.from_numpy`) is known by its address and more of its content,
// where it is the CPU's.
//
// A lower bound. A number of its own has what random numbers or uninitialised memory went into, and what was written in
// a way that is not seen (the version counts that). Tables have a fixed size; what falls out of them is not recognised,
// or by its content only. No lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "providers/torch/record_function.h"
#include "providers/torch/tensor_layout.h"

namespace leadline::torch {

// Of batches of token numbers that embeddings looked up: how many, and in millionths of each what is padding (see
// padding.h).
struct PaddingSums {
  uint64_t batches = 0;
  int64_t all = 0;
  int64_t common = 0;
};

class ValueNumbers {
 public:
  // What was made before is known by its content only. Without a layout there are none.
  static void begin(const TensorLayout& layout) noexcept;
  static void stop() noexcept { on_.store(false); }
  // Before that: torch.ones(1), which has a list of this one number among its arguments.
  static void learn(const RecordFunction& function, const char* text, uint32_t inputs_at) noexcept;
  static bool on() noexcept { return on_.load(std::memory_order_relaxed); }

  static void allocated(const void* address, size_t bytes, bool on_cpu) noexcept;
  static void freed(const void* address) noexcept;
  // Whether a tensor's memory is the CPU's, as far as it is known.
  static bool is_of_cpu(uint64_t data) noexcept;

  // An operator is about to begin on this thread. `text`: shapes and types of its inputs. 0, or for how many calls one
  // stands that was called so before: operators are numbered in some of the steps. 0 for those inside another one.
  static uint32_t begins(const Symbols& symbols, const RecordFunction& function, const char* name, const char* text,
                         uint32_t inputs_at) noexcept;
  static PaddingSums padding() noexcept;
  // One of which nothing is known: what it makes has numbers of its own.
  static void begins_unknown(const RecordFunction& function) noexcept;
  static void ends(const RecordFunction& function) noexcept;

 private:
  static inline std::atomic<bool> on_{false};
};

}  // namespace leadline::torch
