// Calls, as the bytes before a return address show them (Intel SDM volume 2, CALL). Code is read through the kernel:
// its library may be unloaded meanwhile.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace leadline::unwind {

inline bool read_code(uintptr_t address, void* out, size_t bytes) noexcept {
  const iovec to{out, bytes};
  const iovec from{reinterpret_cast<void*>(address), bytes};
  return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == static_cast<ssize_t>(bytes);
}

struct Call {
  enum Kind : uint8_t { kNone, kDirect, kIndirect };
  Kind kind = kNone;
  uintptr_t target = 0;  // of a direct one
};

// Bytes of a `call` through a register or memory (FF /2); 0: it is none.
inline size_t indirect_call_bytes(const unsigned char* code) noexcept {
  size_t at = (code[0] & 0xf0) == 0x40 ? 1 : 0;  // REX
  if (code[at] != 0xff) return 0;
  const unsigned char modrm = code[at + 1];
  if ((modrm >> 3 & 7) != 2) return 0;
  const unsigned mode = modrm >> 6;
  const unsigned rm = modrm & 7;
  size_t bytes = at + 2;
  if (mode == 3) return bytes;
  if (rm == 4) {
    const unsigned base = code[bytes] & 7;
    bytes += mode == 0 && base == 5 ? 5 : 1;
  } else if (mode == 0 && rm == 5) {
    bytes += 4;
  }
  return bytes + (mode == 1 ? 1 : mode == 2 ? 4 : 0);
}

inline Call call_before(uintptr_t back) noexcept {
  constexpr size_t kLongest = 8;
  unsigned char code[kLongest + 8] = {};
  if (back < 4096 || !read_code(back - kLongest, code, kLongest)) return {};
  const unsigned char* const end = code + kLongest;
  if (end[-5] == 0xe8) {
    int32_t distance = 0;
    std::memcpy(&distance, end - 4, sizeof distance);
    return {Call::kDirect, back + static_cast<uintptr_t>(int64_t{distance})};
  }
  for (size_t bytes = 2; bytes <= kLongest; ++bytes) {
    if (indirect_call_bytes(end - bytes) == bytes) return {Call::kIndirect, 0};
  }
  return {};
}

// What a call of `target` comes to: itself, or where an entry of a linkage table leads.
inline uintptr_t resolve(uintptr_t target) noexcept {
  unsigned char code[16] = {};
  if (!read_code(target, code, sizeof code)) return target;
  size_t at = 0;
  constexpr unsigned char kLanding[] = {0xf3, 0x0f, 0x1e, 0xfa};  // endbr64
  if (std::memcmp(code, kLanding, sizeof kLanding) == 0) at += sizeof kLanding;
  if (code[at] == 0xf2) ++at;
  int32_t distance = 0;
  if (code[at] == 0xe9) {
    std::memcpy(&distance, code + at + 1, sizeof distance);
    return target + at + 5 + static_cast<uintptr_t>(int64_t{distance});
  }
  if (code[at] != 0xff || code[at + 1] != 0x25) return target;
  std::memcpy(&distance, code + at + 2, sizeof distance);
  uintptr_t there = 0;
  const uintptr_t slot = target + at + 6 + static_cast<uintptr_t>(int64_t{distance});
  return read_code(slot, &there, sizeof there) ? there : target;
}

}  // namespace leadline::unwind
