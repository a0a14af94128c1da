// One call on its way through the entry: what the caller passed, and what the function answered. Laid out as
// entry_x86_64.cpp writes it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace leadline::accelerator {

struct Vector {
  std::uint64_t low;
  std::uint64_t high;
};

struct Frame {
  std::uint64_t general[6];  // rdi, rsi, rdx, rcx, r8, r9
  std::uint64_t rax;         // how many vector registers a call with `...` uses
  std::uint64_t number;      // of the thunk
  Vector vector[8];
  std::uint64_t* stack;  // arguments that did not fit
  // Answers of leadline_accelerator_begin.
  void* original;
  std::uint64_t words;  // of `stack` to be passed on
  std::uint64_t state;  // for the end
  // What the function answered.
  std::uint64_t result[2];
  Vector vector_result[2];
  alignas(8) unsigned char kept[256];  // what `calls` knows of the call
};
static_assert(offsetof(Frame, number) == 56 && offsetof(Frame, vector) == 64 && offsetof(Frame, stack) == 192);
static_assert(offsetof(Frame, original) == 200 && offsetof(Frame, words) == 208 && offsetof(Frame, result) == 224);
static_assert(offsetof(Frame, vector_result) == 240 && offsetof(Frame, kept) == 272 && sizeof(Frame) == 528);

}  // namespace leadline::accelerator

extern "C" {
// What thunks jump to.
void leadline_accelerator_entry();
// The thunks that programs' callbacks are replaced by, 16 bytes each.
extern const char leadline_callback_code[];
void leadline_accelerator_begin(leadline::accelerator::Frame* frame);
void leadline_accelerator_end(leadline::accelerator::Frame* frame);
// A callback was called: the function itself.
void* leadline_accelerator_called_back(std::uint32_t number);
}
