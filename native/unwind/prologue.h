// How far a function of assembly has moved the stack pointer, read from its first instructions as they are usual in
// kernels: pushes, one `sub`, a frame pointer. What follows them is taken to leave the stack pointer where it is, which
// is for the caller to check.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "unwind/call_before.h"

namespace leadline::unwind {

struct Prologue {
  bool good = false;
  bool in_bp = false;         // offsets are from the frame pointer, else from the stack pointer
  int32_t return_offset = 0;  // of the return address
  bool saves_bp = false;
  int32_t bp_offset = 0;  // of the caller's frame pointer
};

// Of the function that begins at `start`, for an address in it.
inline Prologue read_prologue(uintptr_t start, uintptr_t pc) noexcept {
  constexpr size_t kMost = 192;
  unsigned char code[kMost + 16] = {};
  size_t size = kMost;
  while (size >= 16 && !read_code(start, code, size)) size /= 2;
  if (size < 16) return {};
  int32_t depth = 0;      // bytes between the stack pointer and the return address
  int32_t bp_depth = -1;  // where the frame pointer was pushed
  int32_t frame = -1;     // depth that the frame pointer marks
  bool aligned = false;   // the stack pointer was moved by an amount that is not in the code
  for (size_t at = 0; at + 12 < size && start + at < pc;) {
    const unsigned char* const c = code + at;
    const bool rex = (c[0] & 0xf0) == 0x40;
    const unsigned char op = rex ? c[1] : c[0];
    const size_t prefix = rex ? 1 : 0;
    const unsigned char modrm = c[prefix + 1];
    if (c[0] == 0xf3 && c[1] == 0x0f && c[2] == 0x1e && c[3] == 0xfa) {  // endbr64
      at += 4;
    } else if (op >= 0x50 && op <= 0x57) {  // push
      depth += 8;
      if (op == 0x55 && !(rex && (c[0] & 1) != 0)) bp_depth = depth;
      at += prefix + 1;
    } else if (rex && (op == 0x83 || op == 0x81) && (modrm == 0xec || modrm == 0xe4)) {  // sub or and rsp, n
      int32_t amount = c[3] < 0x80 ? c[3] : c[3] - 0x100;
      if (op == 0x81) std::memcpy(&amount, c + 3, sizeof amount);
      if (modrm == 0xe4) {
        aligned = true;
      } else {
        depth += amount;
      }
      at += op == 0x83 ? 4 : 7;
    } else if (rex && ((op == 0x89 && modrm == 0xe5) || (op == 0x8b && modrm == 0xec))) {  // mov rbp, rsp
      frame = depth;
      at += 3;
    } else if (rex && op == 0x8d && modrm == 0x64 && c[3] == 0x24) {  // lea rsp, [rsp + n]
      depth -= static_cast<signed char>(c[4]);
      at += 5;
    } else if (rex && op == 0x8d && modrm == 0xa4 && c[3] == 0x24) {
      int32_t amount = 0;
      std::memcpy(&amount, c + 4, sizeof amount);
      depth -= amount;
      at += 8;
    } else if ((op == 0x89 || op == 0x8b || op == 0x31 || op == 0x33 || op == 0x85) && modrm >> 6 == 3) {
      if ((op == 0x8b && (modrm >> 3 & 7) == 4 && rex && (c[0] & 4) == 0) ||
          (op == 0x89 && (modrm & 7) == 4 && rex && (c[0] & 1) == 0)) {
        break;  // the stack pointer from another register
      }
      at += prefix + 2;
    } else if ((op == 0x89 || op == 0x8b) && (modrm & 7) == 4 && modrm >> 6 == 1) {  // registers in the frame
      at += prefix + 4;
    } else if ((op == 0x89 || op == 0x8b) && (modrm & 7) == 4 && modrm >> 6 == 2) {
      at += prefix + 7;
    } else {
      break;
    }
  }
  if (depth < 0) return {};
  Prologue found;
  found.good = true;
  if (frame >= 0 && aligned) {
    found.in_bp = true;
    found.return_offset = frame;
    found.saves_bp = bp_depth >= 0;
    found.bp_offset = frame - bp_depth;
    return found;
  }
  if (aligned) return {};
  found.return_offset = depth;
  found.saves_bp = bp_depth >= 0;
  found.bp_offset = depth - bp_depth;
  return found;
}

}  // namespace leadline::unwind
