// One machine instruction as far as the stack goes (Intel SDM volume 2): how long it is, where it leads, and what it
// does to registers. What an instruction computes is not looked at: a register that it writes is unknown afterwards.
#pragma once

#include <cstddef>
#include <cstdint>

namespace leadline::unwind {

// Numbers of the general registers in instructions; those of unwind information differ.
inline constexpr unsigned kAx = 0, kCx = 1, kDx = 2, kBx = 3, kSpNumber = 4, kBpNumber = 5, kSi = 6, kDi = 7;
inline constexpr size_t kGeneralRegisters = 16;
inline constexpr uint16_t kCallerSaved = 0x0fc7;  // what a call may change: ax, cx, dx, si, di, r8 to r11

enum class Does : uint8_t {
  kOther,    // writes the registers of `writes`
  kPush,     // `reg`, or what is not known where it is kNoRegister
  kPop,      // likewise
  kMove,     // reg = base
  kAdd,      // reg += value
  kAddress,  // reg = base + value
  kLoad,     // reg = word at base + value
  kStore,    // word at base + value = reg
  kLeave,    // stack pointer = frame pointer, which is then popped
  kJump,     // to `target`
  kBranch,   // to `target` or on
  kCall,     // and on, once it has returned
  kReturn,
  kStop,  // nobody knows where it leads: through a register, to the kernel for good
};
inline constexpr uint8_t kNoRegister = 255;
inline constexpr size_t kLongestInstruction = 15;

struct Instruction {
  uint8_t length = 0;  // 0: not understood
  Does does = Does::kOther;
  uint8_t reg = kNoRegister;
  uint8_t base = kNoRegister;
  bool computed = false;  // kStop: a jump to an address that code computes
  uint16_t writes = 0;    // a bit for each general register
  int64_t value = 0;
  uintptr_t target = 0;
};

// Of the instruction at `pc`, whose kLongestInstruction bytes lie at `code`.
Instruction read_instruction(const unsigned char* code, uintptr_t pc) noexcept;

}  // namespace leadline::unwind
