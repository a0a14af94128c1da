#include "unwind/instruction.h"

#include <cstring>
#include <string_view>

namespace leadline::unwind {
namespace {

// The form of each opcode:
//   .  nothing follows            m  registers or memory follow (ModRM)      r  and the register there is written
//   g  and the other one is       x  and both are                            X  and what `a` writes
//   M  R  G: with a byte          Z  H: like R and G with a number           b  z: a byte or a number follows
//   A  B: and ax is written       a  registers that calls do not keep        s  by itself, below      !  not understood
constexpr std::string_view kOneByte =
    "rrggAB!!rrggAB!!rrggAB!!rrggAB!!"
    "rrggAB!!rrggAB!!rrggAB!!mmmmbz!!"
    "!!!!!!!!!!!!!!!!ssssssssssssssss"
    "!!!g!!!!sHsGaaaassssssssssssssss"
    "ss!smmxxrsgsrsmsoooooooo"
    "aa!.ss.a"
    "ssssaaaabzaaaaaassssssssssssssss"
    "RRss!!RZ!s!!sb!!rrrr!!!ammmmmmmm"
    "ssssAAAAss!saaaa!!!!s.ss..!!..ss";
constexpr std::string_view kTwoBytes =
    "rXgg!a!!..!s!m.!mmmmmmmmmmmmmmmm"
    "rrrr!!!!mmmmggmm!a!!!!!!!!!!!!!!"
    "gggggggggggggggggmmmmmmmmmmmmmmm"
    "mmmmmmmmmmmmmmmmMMMMmmm.mm!!mmsm"
    "ssssssssssssssssrrrrrrrrrrrrrrrr"
    "sssmRr!!ss!rRrrgXXgrggggg!RrggggxxMmMGMXssssssss"
    "mmmmmmmgmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm!";
static_assert(kOneByte.size() == 256 && kTwoBytes.size() == 256);

class Decoder {
 public:
  Decoder(const unsigned char* code, uintptr_t pc) noexcept : begin_(code), at_(code), pc_(pc) {}

  Instruction read() noexcept {
    prefixes();
    if (map_ > 1) {
      long_opcode();
    } else if (vector_) {
      vector_opcode();
    } else {
      by_form((map_ == 0 ? kOneByte : kTwoBytes)[op_]);
    }
    const auto length = static_cast<size_t>(at_ - begin_);
    if (failed_ || length > kLongestInstruction) return {};
    found_.length = static_cast<uint8_t>(length);
    if (found_.does == Does::kJump || found_.does == Does::kBranch)
      found_.target = pc_ + length + static_cast<uintptr_t>(found_.value);
    return found_;
  }

 private:
  static constexpr uint16_t kScratch = kCallerSaved;

  template <typename T>
  T take() noexcept {
    T value{};
    if (at_ - begin_ > static_cast<ptrdiff_t>(kLongestInstruction - sizeof(T))) {
      failed_ = true;
      return value;
    }
    std::memcpy(&value, at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  int64_t number() noexcept { return small_ ? take<int16_t>() : take<int32_t>(); }
  void writes(unsigned reg) noexcept { found_.writes = static_cast<uint16_t>(found_.writes | 1u << (reg & 15)); }
  void writes_rm() noexcept {
    if (mode_ == 3) writes(rm_);
  }
  void writes_scratch() noexcept { found_.writes |= kScratch; }
  void does(Does what, uint8_t reg = kNoRegister, uint8_t base = kNoRegister, int64_t value = 0) noexcept {
    found_.does = what;
    found_.reg = reg;
    found_.base = base;
    found_.value = value;
  }
  uint8_t opcode_register() const noexcept { return static_cast<uint8_t>((op_ & 7) | base_high_); }

  void prefixes() noexcept {
    for (op_ = take<uint8_t>(); !failed_; op_ = take<uint8_t>()) {
      if (op_ == 0x66) {
        small_ = true;
      } else if (op_ == 0xf3) {
        repeat_ = true;
      } else if (op_ == 0x67) {
        short_address_ = true;
      } else if (std::string_view("\xf2\xf0\x2e\x36\x3e\x26\x64\x65").find(static_cast<char>(op_)) ==
                 std::string_view::npos) {
        break;
      }
    }
    if ((op_ & 0xf0) == 0x40) {
      wide_ = (op_ & 8) != 0;
      reg_high_ = (op_ & 4) != 0 ? 8 : 0;
      index_high_ = (op_ & 2) != 0 ? 8 : 0;
      base_high_ = (op_ & 1) != 0 ? 8 : 0;
      op_ = take<uint8_t>();
    }
    if (op_ == 0x0f) {
      map_ = 1;
      op_ = take<uint8_t>();
      if (op_ == 0x38 || op_ == 0x3a) {
        map_ = op_ == 0x38 ? 2 : 3;
        op_ = take<uint8_t>();
      }
    } else if (op_ == 0xc5 || op_ == 0xc4 || op_ == 0x62) {
      vector_prefix();
    }
  }

  // VEX of two and three bytes, EVEX.
  void vector_prefix() noexcept {
    vector_ = true;
    const uint8_t kind = op_;
    const auto first = take<uint8_t>();
    reg_high_ = (first & 0x80) == 0 ? 8 : 0;
    uint8_t fields = first;
    map_ = 1;
    if (kind != 0xc5) {
      index_high_ = (first & 0x40) == 0 ? 8 : 0;
      base_high_ = (first & 0x20) == 0 ? 8 : 0;
      map_ = kind == 0xc4 ? first & 0x1f : first & 7;
      fields = take<uint8_t>();
    }
    if (kind == 0x62) take<uint8_t>();
    other_ = static_cast<uint8_t>(15 - (fields >> 3 & 15));
    repeat_ = (fields & 3) == 2;
    if (map_ == 0 || map_ == 4 || map_ > 6) failed_ = true;
    op_ = take<uint8_t>();
  }

  void modrm() noexcept {
    const auto byte = take<uint8_t>();
    mode_ = byte >> 6;
    field_ = byte >> 3 & 7;
    reg_ = static_cast<uint8_t>(field_ | reg_high_);
    const unsigned low = byte & 7;
    rm_ = static_cast<uint8_t>(low | base_high_);
    if (mode_ == 3) return;
    plain_ = !short_address_;
    bool wide_offset = mode_ == 2;
    unsigned base = low;
    if (low == 4) {
      const auto scaled = take<uint8_t>();
      plain_ = plain_ && (scaled & 0x38) == 0x20 && index_high_ == 0;
      base = scaled & 7;
      rm_ = static_cast<uint8_t>(base | base_high_);
    }
    if (base == 5 && mode_ == 0) {  // no register, or the address of the code
      plain_ = false;
      wide_offset = true;
    }
    offset_ = wide_offset ? take<int32_t>() : mode_ == 1 ? take<int8_t>() : 0;
  }

  void by_form(char form) noexcept {
    if (std::string_view("mrgxXMRGZH").find(form) != std::string_view::npos) modrm();
    if (std::string_view("MRGbA").find(form) != std::string_view::npos) take<uint8_t>();
    if (std::string_view("ZHzB").find(form) != std::string_view::npos) number();
    if (std::string_view("rxXRZ").find(form) != std::string_view::npos) writes_rm();
    if (std::string_view("gxGH").find(form) != std::string_view::npos) writes(reg_);
    if (std::string_view("ABo").find(form) != std::string_view::npos) writes(kAx);
    if (form == 'a' || form == 'X') writes_scratch();
    if (form == 'o') writes(opcode_register());
    if (form == '!') failed_ = true;
    if (form != 's') return;
    if (map_ == 1) {
      special_of_two();
    } else if (op_ >= 0x80 && op_ < 0x90) {
      move();
    } else {
      special();
    }
  }

  void special_of_two() noexcept {
    if (op_ >> 4 == 8) {
      does(Does::kBranch, kNoRegister, kNoRegister, take<int32_t>());
      failed_ = failed_ || small_;
    } else if (op_ >= 0xc8) {  // bswap
      writes(opcode_register());
    } else if (op_ == 0x0b) {
      does(Does::kStop);
    } else if (op_ == 0x7e) {
      modrm();
      if (!repeat_) writes_rm();
    } else if (op_ == 0xa2) {
      writes_scratch();
      writes(kBx);
    } else {
      does((op_ & 1) == 0 ? Does::kPush : Does::kPop);
    }
  }

  void move() noexcept {
    modrm();
    const bool add = op_ <= 0x83;
    const int64_t value = !add ? 0 : op_ == 0x81 ? number() : take<int8_t>();
    const bool to_rm = op_ == 0x89;
    if (add) {
      if (field_ == 7) return;  // compares
      if (mode_ == 3 && wide_ && (field_ == 0 || field_ == 5)) {
        does(Does::kAdd, rm_, kNoRegister, field_ == 0 ? value : -value);
      } else {
        writes_rm();
      }
    } else if (op_ == 0x8f) {
      does(Does::kPop, mode_ == 3 ? rm_ : kNoRegister);
    } else if (wide_ && mode_ == 3 && op_ != 0x8d) {
      does(Does::kMove, to_rm ? rm_ : reg_, to_rm ? reg_ : rm_);
    } else if (wide_ && plain_) {
      does(to_rm ? Does::kStore : op_ == 0x8d ? Does::kAddress : Does::kLoad, reg_, rm_, offset_);
    } else if (to_rm) {
      writes_rm();
    } else {
      writes(reg_);
    }
  }

  void special() noexcept {
    switch (op_ >> 4) {
      case 0x5:
        does(op_ < 0x58 ? Does::kPush : Does::kPop, opcode_register());
        failed_ = failed_ || small_;
        return;
      case 0x6:
        op_ == 0x68 ? static_cast<void>(number()) : static_cast<void>(take<uint8_t>());
        does(Does::kPush);
        return;
      case 0x7:
        does(Does::kBranch, kNoRegister, kNoRegister, take<int8_t>());
        return;
      case 0x9:
        does(op_ == 0x9c ? Does::kPush : Does::kPop);
        return;
      case 0xa:
        short_address_ ? static_cast<void>(take<uint32_t>()) : static_cast<void>(take<uint64_t>());
        writes(kAx);
        return;
      case 0xb:
        if (op_ < 0xb8) {
          take<uint8_t>();
        } else if (wide_) {
          take<uint64_t>();
        } else {
          number();
        }
        writes(opcode_register());
        return;
      case 0xe:
        transfer();
        return;
      case 0xf:
        group();
        return;
      default:  // c
        if (op_ == 0xc2) take<uint16_t>();
        does(op_ == 0xc9 ? Does::kLeave : op_ == 0xcc ? Does::kStop : Does::kReturn);
    }
  }

  void transfer() noexcept {
    const int64_t distance = op_ == 0xe8 || op_ == 0xe9 ? take<int32_t>() : take<int8_t>();
    does(op_ == 0xe8 ? Does::kCall : op_ > 0xe8 ? Does::kJump : Does::kBranch, kNoRegister, kNoRegister, distance);
    if (op_ < 0xe8) writes(kCx);
  }

  void group() noexcept {
    if (op_ == 0xf4) return does(Does::kStop);
    modrm();
    if (op_ < 0xfe) {
      if (field_ >= 4) return writes_scratch();
      if (field_ >= 2) return writes_rm();
      op_ == 0xf6 ? static_cast<void>(take<uint8_t>()) : static_cast<void>(number());
    } else if (field_ < 2) {
      writes_rm();
    } else if (op_ == 0xfe || field_ == 3 || field_ == 5 || field_ == 7) {
      failed_ = true;
    } else {
      does(field_ == 2 ? Does::kCall : field_ == 4 ? Does::kStop : Does::kPush);
      found_.computed = field_ == 4;
    }
  }

  void vector_opcode() noexcept {
    if (op_ == 0x77) return;
    modrm();
    if ((op_ >= 0x70 && op_ <= 0x73) || op_ == 0xc2 || (op_ >= 0xc4 && op_ <= 0xc6)) take<uint8_t>();
    if (std::string_view("\x2c\x2d\x50\x78\x79\x93\xc5\xd7").find(static_cast<char>(op_)) != std::string_view::npos)
      writes(reg_);
    if (op_ == 0x7e && !repeat_) writes_rm();
  }

  void long_opcode() noexcept {
    modrm();
    if (map_ == 3) {
      take<uint8_t>();
      if (op_ >= 0x14 && op_ <= 0x17) writes_rm();
      if (op_ >= 0x60 && op_ <= 0x63) writes(kCx);
      if (op_ == 0xf0) writes(reg_);
    } else if (map_ == 2 && op_ >= 0xf0) {
      writes(reg_);
      writes_rm();
      if (vector_) writes(other_);
    }
  }

  const unsigned char* const begin_;
  const unsigned char* at_;
  const uintptr_t pc_;
  Instruction found_;
  bool failed_ = false;
  bool small_ = false;   // operands of 16 bits
  bool wide_ = false;    // of 64
  bool repeat_ = false;  // the prefix f3, which makes other instructions of vector opcodes
  bool vector_ = false;
  bool short_address_ = false;
  bool plain_ = false;  // memory at a register and an offset
  uint8_t map_ = 0;
  uint8_t op_ = 0;
  uint8_t other_ = 0;  // the third register of vector instructions
  uint8_t reg_high_ = 0, index_high_ = 0, base_high_ = 0;
  uint8_t mode_ = 3, field_ = 0, reg_ = 0, rm_ = 0;
  int32_t offset_ = 0;
};

}  // namespace

Instruction read_instruction(const unsigned char* code, uintptr_t pc) noexcept { return Decoder(code, pc).read(); }

}  // namespace leadline::unwind
