#include "offline/line_program.h"

#include <array>
#include <cstring>
#include <utility>

namespace leadline::offline {
namespace {

// Standard operations.
enum : std::uint8_t {
  kExtended,
  kCopy,
  kAdvanceAddress,
  kAdvanceLine,
  kSetFile,
  kSetColumn,
  kNegateStatement,
  kBasicBlock,
  kAddConstant,
  kFixedAdvance,
};
// Extended operations; the last two are NVIDIA's.
constexpr std::uint8_t kEndSequence = 1;
constexpr std::uint8_t kSetAddress = 2;
constexpr std::uint8_t kDefineFile = 3;
constexpr std::uint8_t kInlinedCall = 0x90;
constexpr std::uint8_t kSetFunctionName = 0x91;
// Content types and forms of DWARF 5.
constexpr std::uint64_t kPath = 1;
constexpr std::uint64_t kDirectory = 2;
enum Form : std::uint64_t {
  kBlock2 = 0x03,
  kData2 = 0x05,
  kData4 = 0x06,
  kData8 = 0x07,
  kString = 0x08,
  kBlock = 0x09,
  kData1 = 0x0b,
  kStrp = 0x0e,
  kUdata = 0x0f,
  kData16 = 0x1e,
  kLineStrp = 0x1f,
};
constexpr std::size_t kMostFiles = 1u << 20;

// Reads forward; beyond the end everything is zero and `bad` is set for good.
class Cursor {
 public:
  Cursor(std::string_view bytes, std::size_t at, std::size_t end) : bytes_(bytes), at_(at), end_(end) {}
  bool bad() const { return bad_; }
  bool done() const { return bad_ || at_ >= end_; }
  std::size_t at() const { return at_; }
  void skip(std::uint64_t count) { take(count); }
  void go_to(std::size_t at) {
    bad_ = bad_ || at < at_ || at > end_;
    if (!bad_) at_ = at;
  }
  template <class T>
  T fixed() {
    T value{};
    if (const char* from = take(sizeof value)) std::memcpy(&value, from, sizeof value);
    return value;
  }
  std::uint64_t sized(std::uint64_t bytes) {
    std::uint64_t value = 0;
    const char* from = take(bytes);
    if (from != nullptr && bytes <= sizeof value) std::memcpy(&value, from, bytes);
    return value;
  }
  std::uint64_t unsigned_number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = fixed<std::uint8_t>();
      if (shift < 64) value |= std::uint64_t{byte & 0x7fu} << shift;
      if (bad_ || (byte & 0x80) == 0) return value;
    }
  }
  std::int64_t signed_number() {
    std::uint64_t value = 0;
    unsigned shift = 0;
    std::uint8_t byte = 0;
    do {
      byte = fixed<std::uint8_t>();
      if (shift < 64) value |= std::uint64_t{byte & 0x7fu} << shift;
      shift += 7;
    } while (!bad_ && (byte & 0x80) != 0);
    if (shift < 64 && (byte & 0x40) != 0) value |= ~std::uint64_t{0} << shift;
    return static_cast<std::int64_t>(value);
  }
  std::string_view text() {
    const std::string_view rest = bytes_.substr(at_, end_ - at_);
    const auto end = rest.find('\0');
    if (end == std::string_view::npos) bad_ = true;
    if (bad_) return {};
    at_ += end + 1;
    return rest.substr(0, end);
  }

 private:
  const char* take(std::uint64_t count) {
    if (bad_ || count > end_ - at_) {
      bad_ = true;
      return nullptr;
    }
    const char* from = bytes_.data() + at_;
    at_ += count;
    return from;
  }
  std::string_view bytes_;
  std::size_t at_;
  std::size_t end_;
  bool bad_ = false;
};

std::string joined(std::string_view folder, std::string_view name) {
  if (folder.empty() || name.starts_with('/')) return std::string(name);
  return std::string(folder) + (folder.ends_with('/') ? "" : "/") + std::string(name);
}

std::string_view text_at(std::string_view strings, std::uint64_t offset) {
  if (offset >= strings.size()) return {};
  const std::string_view rest = strings.substr(offset);
  const auto end = rest.find('\0');
  return end == std::string_view::npos ? std::string_view() : rest.substr(0, end);
}

struct Header {
  std::uint16_t version = 0;
  std::uint8_t instruction_bytes = 1;
  std::int8_t line_base = 0;
  std::uint8_t line_range = 1;
  std::uint8_t opcode_base = 1;
  std::uint32_t strings_begin = 0;  // what names of functions are counted from in .debug_str
  std::array<std::uint8_t, 256> operands{};
  std::vector<std::string> folders;
};

class UnitReader {
 public:
  UnitReader(const LineSections& from, const Relocated& relocated, std::size_t begin, std::size_t end, bool wide)
      : from_(from), relocated_(relocated), cursor_(from.lines, begin, end), wide_(wide) {}

  LineUnit read() {
    if (read_header()) run();
    return std::move(unit_);
  }

 private:
  std::uint64_t offset() { return wide_ ? cursor_.fixed<std::uint64_t>() : cursor_.fixed<std::uint32_t>(); }

  bool read_header() {
    Header& h = header_;
    h.version = cursor_.fixed<std::uint16_t>();
    if (h.version < 2 || h.version > 5) return false;
    if (h.version >= 5) cursor_.skip(2);  // sizes of an address and of a segment's number
    const std::uint64_t length = offset();
    const std::size_t begin = cursor_.at();
    if (length > from_.lines.size() - begin) return false;
    const std::size_t program = begin + length;
    h.instruction_bytes = cursor_.fixed<std::uint8_t>();
    if (h.version >= 4) cursor_.skip(1);  // operations of one instruction
    cursor_.skip(1);                      // whether rows are statements at first
    h.line_base = cursor_.fixed<std::int8_t>();
    h.line_range = cursor_.fixed<std::uint8_t>();
    h.opcode_base = cursor_.fixed<std::uint8_t>();
    if (cursor_.bad() || h.line_range == 0 || h.opcode_base == 0) return false;
    for (unsigned i = 1; i < h.opcode_base; ++i) h.operands[i] = cursor_.fixed<std::uint8_t>();
    h.version >= 5 ? read_names() : read_old_names();
    // The vendor's compilers put one more number there, which no version of DWARF has.
    if (!cursor_.bad() && cursor_.at() + 4 == program) h.strings_begin = cursor_.fixed<std::uint32_t>();
    cursor_.go_to(program);
    return !cursor_.bad();
  }

  void read_old_names() {
    header_.folders.emplace_back();  // number 0 is where the compiler ran, which the program does not say
    while (!cursor_.done() && header_.folders.size() < kMostFiles) {
      const std::string_view folder = cursor_.text();
      if (folder.empty()) break;
      header_.folders.emplace_back(folder);
    }
    while (!cursor_.done() && unit_.files.size() < kMostFiles) {
      const std::string_view name = cursor_.text();
      if (name.empty()) break;
      add_file(name);
    }
  }

  void add_file(std::string_view name) {
    const std::uint64_t folder = cursor_.unsigned_number();
    cursor_.unsigned_number();  // when it was written
    cursor_.unsigned_number();  // how long it is
    unit_.files.push_back(joined(folder < header_.folders.size() ? header_.folders[folder] : std::string(), name));
  }

  void read_names() {
    unit_.first_file = 0;
    read_entries([&](std::string_view path, std::uint64_t) {
      header_.folders.push_back(header_.folders.empty() ? std::string(path) : joined(header_.folders[0], path));
    });
    read_entries([&](std::string_view path, std::uint64_t folder) {
      unit_.files.push_back(joined(folder < header_.folders.size() ? header_.folders[folder] : std::string(), path));
    });
  }

  template <class Told>
  void read_entries(Told&& told) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> format(cursor_.fixed<std::uint8_t>());
    for (auto& [type, form] : format) {
      type = cursor_.unsigned_number();
      form = cursor_.unsigned_number();
    }
    const std::uint64_t count = cursor_.unsigned_number();
    for (std::uint64_t i = 0; i < count && i < kMostFiles && !cursor_.done(); ++i) {
      std::string_view path;
      std::uint64_t folder = 0;
      for (const auto& [type, form] : format) {
        std::string_view text;
        const std::uint64_t number = value(form, &text);
        if (type == kPath) path = text;
        if (type == kDirectory) folder = number;
      }
      if (format.empty()) return;
      told(path, folder);
    }
  }

  std::uint64_t value(std::uint64_t form, std::string_view* text) {
    switch (form) {
      case kString:
        *text = cursor_.text();
        return 0;
      case kStrp:
        *text = text_at(from_.strings, offset());
        return 0;
      case kLineStrp:
        *text = text_at(from_.line_strings, offset());
        return 0;
      case kUdata:
        return cursor_.unsigned_number();
      case kData1:
        return cursor_.fixed<std::uint8_t>();
      case kData2:
        return cursor_.fixed<std::uint16_t>();
      case kData4:
        return cursor_.fixed<std::uint32_t>();
      case kData8:
        return cursor_.fixed<std::uint64_t>();
      case kData16:
        cursor_.skip(16);
        return 0;
      case kBlock:
        cursor_.skip(cursor_.unsigned_number());
        return 0;
      case kBlock2:
        cursor_.skip(cursor_.fixed<std::uint16_t>());
        return 0;
      default:
        cursor_.skip(UINT64_MAX);  // its length is not known, so nothing after it is
        return 0;
    }
  }

  void run() {
    begin_sequence();
    while (!cursor_.done()) {
      const auto operation = cursor_.fixed<std::uint8_t>();
      if (operation >= header_.opcode_base) {
        const int adjusted = operation - header_.opcode_base;
        advance(static_cast<std::uint64_t>(adjusted / header_.line_range));
        add_lines(header_.line_base + adjusted % header_.line_range);
        append();
      } else if (operation == kExtended) {
        if (!extended()) return;
      } else {
        standard(operation);
      }
    }
  }

  void standard(std::uint8_t operation) {
    switch (operation) {
      case kCopy:
        return append();
      case kAdvanceAddress:
        return advance(cursor_.unsigned_number());
      case kAdvanceLine:
        return add_lines(cursor_.signed_number());
      case kSetFile:
        row_.file = static_cast<std::uint32_t>(cursor_.unsigned_number());
        return;
      case kAddConstant:
        return advance(static_cast<std::uint64_t>((255 - header_.opcode_base) / header_.line_range));
      case kFixedAdvance:
        row_.address += cursor_.fixed<std::uint16_t>();
        return;
      case kSetColumn:
      case kNegateStatement:
      case kBasicBlock:
      default:
        for (unsigned i = 0; i < header_.operands[operation]; ++i) cursor_.unsigned_number();
    }
  }

  bool extended() {
    const std::uint64_t length = cursor_.unsigned_number();
    const std::size_t begin = cursor_.at();
    if (cursor_.bad() || length == 0 || length > from_.lines.size() - begin) return false;
    switch (cursor_.fixed<std::uint8_t>()) {
      case kEndSequence:
        row_.ends = true;
        append();
        begin_sequence();
        break;
      case kSetAddress: {
        const std::uint64_t place = cursor_.at();
        row_.address = cursor_.sized(length - 1);
        if (!relocated_(place, &row_.section, &row_.address)) row_.section = 0;
        break;
      }
      case kDefineFile:
        if (const std::string_view name = cursor_.text(); unit_.files.size() < kMostFiles) add_file(name);
        break;
      case kInlinedCall:
        row_.context = static_cast<std::uint32_t>(cursor_.unsigned_number());
        name_function();
        break;
      case kSetFunctionName:
        name_function();
        break;
      default:
        break;
    }
    cursor_.go_to(begin + length);
    return !cursor_.bad();
  }

  void name_function() {
    const std::uint64_t at = cursor_.unsigned_number() + header_.strings_begin;
    row_.function = at < from_.strings.size() ? static_cast<std::uint32_t>(at) + 1 : 0;
  }

  void advance(std::uint64_t operations) { row_.address += operations * header_.instruction_bytes; }
  // A line beyond 32 bits is damage, and any number will do for it.
  void add_lines(std::int64_t count) {
    row_.line = static_cast<std::int32_t>(static_cast<std::uint32_t>(row_.line) + static_cast<std::uint32_t>(count));
  }
  void append() { unit_.rows.push_back(row_); }
  void begin_sequence() {
    row_ = {};
    row_.file = 1;
    row_.line = 1;
  }

  const LineSections& from_;
  const Relocated& relocated_;
  Cursor cursor_;
  bool wide_;
  Header header_;
  LineRow row_;
  LineUnit unit_;
};

}  // namespace

void read_line_programs(const LineSections& from, const Relocated& relocated,
                        const std::function<void(LineUnit&&)>& told) {
  constexpr std::uint32_t kWide = 0xffffffff;
  Cursor cursor(from.lines, 0, from.lines.size());
  while (!cursor.done()) {
    std::uint64_t length = cursor.fixed<std::uint32_t>();
    const bool wide = length == kWide;
    if (wide) length = cursor.fixed<std::uint64_t>();
    const std::size_t begin = cursor.at();
    if (cursor.bad() || length > from.lines.size() - begin) return;
    told(UnitReader(from, relocated, begin, begin + length, wide).read());
    cursor.skip(length);
  }
}

}  // namespace leadline::offline
