// The instructions of unwind information (DWARF 5 section 6.4.2), run up to an address of code.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "unwind/section_bytes.h"

namespace leadline::unwind {

// DWARF numbers of the registers that frames are found with (System V ABI for x86-64, figure 3.36).
inline constexpr uint64_t kBp = 6;
inline constexpr uint64_t kSp = 7;
inline constexpr uint64_t kReturn = 16;
inline constexpr size_t kRemembered = 8;

// Where a register of the caller is.
enum class Where : uint8_t { kSame, kAtCfa, kAtBp, kUndefined, kElsewhere };
struct Saved {
  Where where = Where::kSame;
  int64_t offset = 0;
};
enum class Base : uint8_t { kSp, kBp, kAtBp, kElsewhere };
struct State {
  Base base = Base::kElsewhere;
  int64_t offset = 0;
  Saved bp;
  Saved ret;
};

struct Common {
  uint64_t code_factor = 1;
  int64_t data_factor = 1;
  uint8_t pointers = 0;  // encoding of the addresses in functions' entries
  bool augmented = false;
  bool signal = false;
  bool good = false;
  Bytes program{0, 0};
};

// DW_OP numbers of the two expressions that compilers use for frames, and of the entries of procedure linkage tables.
inline constexpr uint8_t kOpDeref = 0x06;
inline constexpr uint8_t kOpBreg6 = 0x76;
inline constexpr uint8_t kOpBreg7 = 0x77;

// `bregN offset`, alone or with a dereference; false for anything else.
inline bool simple_expression(Bytes bytes, uint8_t* base, int64_t* offset, bool* dereferenced) noexcept {
  *base = bytes.take<uint8_t>();
  *offset = bytes.signed_leb();
  *dereferenced = bytes.more() && bytes.take<uint8_t>() == kOpDeref;
  return !bytes.failed() && !bytes.more() && (*base == kOpBreg6 || *base == kOpBreg7);
}

// A linkage table's: rsp + 8 + ((rip & 15) >= n) * 8, where n is 11, or 9 or 10 for tables that begin with endbr64.
inline bool linkage_expression(Bytes bytes, uintptr_t pc, int64_t* offset) noexcept {
  constexpr std::array<uint8_t, 11> kShape = {0x77, 0x08, 0x80, 0x00, 0x3f, 0x1a, 0, 0x2a, 0x33, 0x24, 0x22};
  uint64_t least = 0;
  for (size_t i = 0; i < kShape.size(); ++i) {
    const auto byte = bytes.take<uint8_t>();
    if (i == 6) {
      if (byte < 0x30 || byte > 0x3f) return false;
      least = byte - 0x30u;
    } else if (byte != kShape[i]) {
      return false;
    }
  }
  if (bytes.failed() || bytes.more()) return false;
  *offset = 8 + ((pc & 15) >= least ? 8 : 0);
  return true;
}

class Machine {
 public:
  Machine(const Common& common, uintptr_t pc) noexcept : common_(common), pc_(pc) {}

  // False where something is not understood.
  bool run(Bytes program, uintptr_t location, bool stop_at_pc) noexcept {
    location_ = location;
    while (program.more()) {
      if (stop_at_pc && location_ > pc_) return true;
      if (!step(program)) return false;
    }
    return !program.failed();
  }
  void keep_initial() noexcept { initial_ = state_; }
  // The state at pc: what came with a later location does not count.
  const State& state() const noexcept { return state_; }

 private:
  bool advance(uint64_t units) noexcept {
    location_ += units * common_.code_factor;
    return true;
  }
  Saved* saved(uint64_t reg) noexcept { return reg == kBp ? &state_.bp : reg == kReturn ? &state_.ret : nullptr; }
  bool save(uint64_t reg, Where where, int64_t offset = 0) noexcept {
    if (Saved* const to = saved(reg)) *to = {where, offset};
    return true;
  }
  bool restore(uint64_t reg) noexcept {
    if (Saved* const to = saved(reg)) *to = reg == kBp ? initial_.bp : initial_.ret;
    return true;
  }
  bool base(uint64_t reg) noexcept {
    state_.base = reg == kSp ? Base::kSp : reg == kBp ? Base::kBp : Base::kElsewhere;
    return true;
  }
  bool cfa_expression(Bytes& program) noexcept {
    const uint64_t length = program.unsigned_leb();
    const Bytes body(program.at(), program.at() + length);
    program.skip(length);
    if (program.failed()) return false;
    uint8_t reg = 0;
    int64_t offset = 0;
    bool dereferenced = false;
    if (simple_expression(body, &reg, &offset, &dereferenced)) {
      state_.offset = offset;
      state_.base =
          dereferenced ? (reg == kOpBreg6 ? Base::kAtBp : Base::kElsewhere) : (reg == kOpBreg6 ? Base::kBp : Base::kSp);
    } else if (linkage_expression(body, pc_, &offset)) {
      state_.base = Base::kSp;
      state_.offset = offset;
    } else {
      state_.base = Base::kElsewhere;
    }
    return true;
  }
  bool register_expression(Bytes& program, bool is_value) noexcept {
    const uint64_t reg = program.unsigned_leb();
    const uint64_t length = program.unsigned_leb();
    const Bytes body(program.at(), program.at() + length);
    program.skip(length);
    if (program.failed()) return false;
    uint8_t from = 0;
    int64_t offset = 0;
    bool dereferenced = false;
    const bool simple = simple_expression(body, &from, &offset, &dereferenced) && !dereferenced && from == kOpBreg6;
    return save(reg, simple && !is_value ? Where::kAtBp : Where::kElsewhere, offset);
  }

  bool step(Bytes& program) noexcept {
    const auto code = program.take<uint8_t>();
    const uint8_t low = code & 0x3f;
    switch (code & 0xc0) {
      case 0x40:
        return advance(low);
      case 0x80:
        return save(low, Where::kAtCfa, static_cast<int64_t>(program.unsigned_leb()) * common_.data_factor);
      case 0xc0:
        return restore(low);
      default:
        break;
    }
    switch (low) {
      case 0x00:  // nop
        return true;
      case 0x01:  // set_loc
        location_ = program.pointer(common_.pointers, 0);
        return !program.failed();
      case 0x02:
        return advance(program.take<uint8_t>());
      case 0x03:
        return advance(program.take<uint16_t>());
      case 0x04:
        return advance(program.take<uint32_t>());
      case 0x05: {  // offset_extended
        const uint64_t reg = program.unsigned_leb();
        return save(reg, Where::kAtCfa, static_cast<int64_t>(program.unsigned_leb()) * common_.data_factor);
      }
      case 0x06:  // restore_extended
        return restore(program.unsigned_leb());
      case 0x07:  // undefined
        return save(program.unsigned_leb(), Where::kUndefined);
      case 0x08:  // same_value
        return save(program.unsigned_leb(), Where::kSame);
      case 0x09: {  // register
        const uint64_t reg = program.unsigned_leb();
        program.unsigned_leb();
        return save(reg, Where::kElsewhere);
      }
      case 0x0a:  // remember_state
        if (remembered_ == kRemembered) return false;
        memory_[remembered_++] = state_;
        return true;
      case 0x0b:  // restore_state
        if (remembered_ == 0) return false;
        state_ = memory_[--remembered_];
        return true;
      case 0x0c: {  // def_cfa
        base(program.unsigned_leb());
        state_.offset = static_cast<int64_t>(program.unsigned_leb());
        return true;
      }
      case 0x0d:  // def_cfa_register
        return base(program.unsigned_leb());
      case 0x0e:  // def_cfa_offset
        state_.offset = static_cast<int64_t>(program.unsigned_leb());
        return true;
      case 0x0f:
        return cfa_expression(program);
      case 0x10:
        return register_expression(program, false);
      case 0x11: {  // offset_extended_sf
        const uint64_t reg = program.unsigned_leb();
        return save(reg, Where::kAtCfa, program.signed_leb() * common_.data_factor);
      }
      case 0x12:  // def_cfa_sf
        base(program.unsigned_leb());
        state_.offset = program.signed_leb() * common_.data_factor;
        return true;
      case 0x13:  // def_cfa_offset_sf
        state_.offset = program.signed_leb() * common_.data_factor;
        return true;
      case 0x14:
      case 0x15: {  // val_offset, val_offset_sf
        const uint64_t reg = program.unsigned_leb();
        program.unsigned_leb();
        return save(reg, Where::kElsewhere);
      }
      case 0x16:
        return register_expression(program, true);
      case 0x2e:  // GNU_args_size
        program.unsigned_leb();
        return true;
      default:
        return false;
    }
  }

  const Common& common_;
  uintptr_t pc_;
  uintptr_t location_ = 0;
  State state_;
  State initial_;
  std::array<State, kRemembered> memory_;
  size_t remembered_ = 0;
};

}  // namespace leadline::unwind
