#include "offline/snapshot.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace leadline::offline {

namespace {

using Kind = Plain::Kind;

// Texts that the reader looks for, by their rows in `texts_`.
enum Known : uint64_t { kAction, kAddress, kSize, kTime, kFrames };
constexpr std::string_view kNames[] = {"action", "addr", "size", "time_us", "frames"};

constexpr uint64_t kLongestText = 256 << 20;
constexpr size_t kLargestShared = 4'096;  // items: what is longer is no stack and no frame

[[noreturn]] void damaged(const char* why) { throw DamagedPickle(why); }

uint64_t mixed(uint64_t hash, const Plain& value) noexcept {
  constexpr uint64_t kMix = 0x9E3779B97F4A7C15;
  hash = (hash ^ (value.bits + static_cast<uint64_t>(value.kind))) * kMix;
  return hash ^ (hash >> 29);
}

}  // namespace

SnapshotReader::SnapshotReader() {
  for (const std::string_view name : kNames) texts_.row(name);
  contents_.emplace_back();  // kEmpty
  contents_[kEmpty].is_shared = true;
}

Plain SnapshotReader::read(const More& more) {
  more_ = &more;
  while (step(static_cast<uint8_t>(*take(1)))) {
  }
  if (stack_.size() != 1 || !marks_.empty()) damaged("it ends with more than one value");
  const Plain made = stack_.back();
  memo_ = {};
  known_ = {};
  return made;
}

bool SnapshotReader::is_action(const Plain& value) const noexcept {
  return value.kind == Kind::kMapping && slots_[value.bits] < 0;
}

size_t SnapshotReader::content(const Plain& value) const noexcept {
  const bool is_slot = value.kind == Kind::kList || value.kind == Kind::kMapping;
  return is_slot ? static_cast<size_t>(slots_[value.bits]) : value.bits;
}

// The next bytes as one; they hold until more are taken.
const char* SnapshotReader::take(size_t size) {
  if (piece_.size() >= size) {
    const char* at = piece_.data();
    piece_.remove_prefix(size);
    return at;
  }
  joined_.assign(piece_);
  while (joined_.size() < size) {
    piece_ = (*more_)();
    if (piece_.empty()) damaged("it is cut off");
    const size_t taken = std::min(piece_.size(), size - joined_.size());
    joined_.append(piece_.substr(0, taken));
    piece_.remove_prefix(taken);
  }
  return joined_.data();
}

template <typename T>
T SnapshotReader::little() {
  T value;
  std::memcpy(&value, take(sizeof value), sizeof value);
  return value;
}

// To the end of a line, as names of classes are written.
std::string_view SnapshotReader::line() {
  std::string found;
  for (char letter = *take(1); letter != '\n'; letter = *take(1)) {
    if (found.size() > 1'000) damaged("a name does not end");
    found += letter;
  }
  return texts_.text(static_cast<size_t>(texts_.row(found)));
}

bool SnapshotReader::step(uint8_t code) {
  switch (code) {
    case 0x80:  // PROTO
      take(1);
      return true;
    case 0x95:  // FRAME
      take(8);
      return true;
    case '.':  // STOP
      return false;
    default:
      if (number(code) || name(code) || container(code) || memory(code)) return true;
      damaged("it holds what no pickle of plain data does");
  }
}

bool SnapshotReader::number(uint8_t code) {
  switch (code) {
    case 'N':
      push(Kind::kNone);
      return true;
    case 0x88:  // NEWTRUE
    case 0x89:  // NEWFALSE
      push(Kind::kBoolean, code == 0x88);
      return true;
    case 'K':
      push(Kind::kInteger, little<uint8_t>());
      return true;
    case 'M':
      push(Kind::kInteger, little<uint16_t>());
      return true;
    case 'J':
      push(Kind::kInteger, static_cast<uint64_t>(int64_t{little<int32_t>()}));
      return true;
    case 0x8a:  // LONG1
      long_of(little<uint8_t>());
      return true;
    case 0x8b:  // LONG4
      long_of(little<uint32_t>());
      return true;
    case 'G': {  // BINFLOAT, the one number with its first byte first
      uint64_t bits = 0;
      const char* at = take(8);
      for (int i = 0; i < 8; ++i) bits = bits << 8 | static_cast<uint8_t>(at[i]);
      push(Kind::kReal, bits);
      return true;
    }
    default:
      return false;
  }
}

// Two's complement of `size` bytes.
void SnapshotReader::long_of(size_t size) {
  if (size > 9) damaged("a number has more than 64 bits");
  const char* at = take(size);
  const bool is_negative = size > 0 && (at[size - 1] & 0x80) != 0;
  uint64_t bits = is_negative ? ~uint64_t{0} : 0;
  std::memcpy(&bits, at, std::min<size_t>(size, 8));
  if (size == 9 && at[8] != 0) damaged("a number has more than 64 bits");
  push(size == 9 && bits >> 63 != 0 ? Kind::kUnsigned : Kind::kInteger, bits);
}

// Texts, and what names a class, which nothing here makes.
bool SnapshotReader::name(uint8_t code) {
  switch (code) {
    case 0x8c:  // SHORT_BINUNICODE
    case 'C':   // SHORT_BINBYTES
    case 'U':   // SHORT_BINSTRING
      text_of(little<uint8_t>());
      return true;
    case 'X':  // BINUNICODE
    case 'B':  // BINBYTES
      if (const auto size = little<uint32_t>(); size <= kLongestText) {
        text_of(size);
        return true;
      }
      damaged("a text is too long");
    case 0x8d:  // BINUNICODE8
    case 0x8e:  // BINBYTES8
      if (const auto size = little<uint64_t>(); size <= kLongestText) {
        text_of(size);
        return true;
      }
      damaged("a text is too long");
    case 'c': {  // GLOBAL
      const std::string module(line());
      throw ObjectInPickle(module + '.' + std::string(line()));
    }
    case 0x93: {  // STACK_GLOBAL
      need(2);
      const Plain& module = stack_[stack_.size() - 2];
      const Plain& named = stack_.back();
      if (module.kind != Kind::kText || named.kind != Kind::kText) damaged("a class has no name");
      throw ObjectInPickle(std::string(text(module.bits)) + '.' + std::string(text(named.bits)));
    }
    default:
      return false;
  }
}

bool SnapshotReader::container(uint8_t code) {
  switch (code) {
    case ']':
    case ')':
    case '}':
      push(code == '}' ? Kind::kMapping : Kind::kList, slots_.size());
      slots_.push_back(kEmpty);
      return true;
    case '(':
      marks_.push_back(stack_.size());
      return true;
    case 't':  // a tuple; read as a list
      list_of(marked());
      return true;
    case 0x85:  // TUPLE1 to TUPLE3
    case 0x86:
    case 0x87: {
      const size_t count = code - 0x84U;
      need(count);
      list_of(stack_.size() - count);
      return true;
    }
    case 'a':
      need(2);
      extend(stack_.size() - 1, false);
      return true;
    case 'e':
      extend(marked(), false);
      return true;
    case 's':
      need(3);
      extend(stack_.size() - 2, true);
      return true;
    case 'u':
      extend(marked(), true);
      return true;
    default:
      return false;
  }
}

bool SnapshotReader::memory(uint8_t code) {
  switch (code) {
    case 0x94:  // MEMOIZE
      remember(memo_.size());
      return true;
    case 'q':
      remember(little<uint8_t>());
      return true;
    case 'r':
      remember(little<uint32_t>());
      return true;
    case 'h':
      recall(little<uint8_t>());
      return true;
    case 'j':
      recall(little<uint32_t>());
      return true;
    case '0':  // POP
      need(1);
      stack_.pop_back();
      return true;
    default:
      return false;
  }
}

size_t SnapshotReader::marked() {
  if (marks_.empty()) damaged("a mark is missing");
  const size_t mark = marks_.back();
  marks_.pop_back();
  return mark;
}

void SnapshotReader::need(size_t count) const {
  if (stack_.size() < fence() + count) damaged("a value is missing");
}

// Places are given in order by every pickler, so none reserves more than the file has.
void SnapshotReader::remember(uint64_t place) {
  need(1);
  if (place > memo_.size()) damaged("a place is used before its turn");
  if (place == memo_.size()) memo_.emplace_back();
  memo_[place] = stack_.back();
}

void SnapshotReader::recall(uint64_t place) {
  if (place >= memo_.size()) damaged("a place is empty");
  stack_.push_back(memo_[place]);
}

void SnapshotReader::list_of(size_t from) {
  push(Kind::kList, slots_.size());
  std::rotate(stack_.begin() + static_cast<ptrdiff_t>(from), stack_.end() - 1, stack_.end());
  slots_.push_back(kEmpty);
  extend(from + 1, false);
}

// Puts what stands from a place of the stack on into the container below it.
void SnapshotReader::extend(size_t from, bool is_mapping) {
  if (from <= fence()) damaged("a container is missing");
  const Plain& to = stack_[from - 1];
  const size_t count = stack_.size() - from;
  if (to.kind != (is_mapping ? Kind::kMapping : Kind::kList) || (is_mapping && count % 2 != 0))
    damaged("something is put where it does not belong");
  int32_t& slot = slots_[to.bits];
  if (slot < 0) damaged("an action is changed");
  if (is_mapping && slot == kEmpty && is_row(from)) {
    slot = row(from);
  } else if (count > 0) {
    std::vector<Plain> items;
    const Content& old = contents_[static_cast<size_t>(slot)];
    const bool is_first = slot == kEmpty;
    const bool is_kept = is_first && count <= kLargestShared && !is_action(stack_[from]);
    if (old.is_shared) {
      items.reserve(old.items.size() + count);
      items = old.items;
    }
    std::vector<Plain>& into = old.is_shared ? items : contents_[static_cast<size_t>(slot)].items;
    for (size_t at = from; at < stack_.size(); ++at) into.push_back(settled(stack_[at]));
    if (is_kept) {
      slot = shared(std::move(items), is_mapping);
    } else if (old.is_shared) {
      slot = static_cast<int32_t>(contents_.size());
      contents_.push_back({std::move(items), is_mapping, false});
    }
  }
  stack_.resize(from);
}

// A container that no longer changes by its content; one that is still empty may be filled later.
Plain SnapshotReader::settled(const Plain& value) const noexcept {
  if (value.kind != Kind::kList && value.kind != Kind::kMapping) return value;
  const int32_t slot = slots_[value.bits];
  if (slot <= kEmpty || !contents_[static_cast<size_t>(slot)].is_shared) return value;
  return {value.kind == Kind::kList ? Kind::kSharedList : Kind::kSharedMapping, static_cast<uint64_t>(slot)};
}

bool SnapshotReader::is_row(size_t from) const noexcept {
  for (size_t at = from; at + 1 < stack_.size(); at += 2) {
    if (stack_[at] == Plain{Kind::kText, kAction} && stack_[at + 1].kind == Kind::kText) return true;
  }
  return false;
}

int32_t SnapshotReader::row(size_t from) {
  int32_t action = 0;
  int64_t values[] = {0, 0, -1};  // kAddress to kTime
  int32_t stack = kEmpty;
  for (size_t at = from; at + 1 < stack_.size(); at += 2) {
    const Plain& key = stack_[at];
    const Plain& value = stack_[at + 1];
    if (key.kind != Kind::kText || key.bits > kFrames) continue;
    const bool is_number = value.kind == Kind::kInteger || value.kind == Kind::kUnsigned;
    if (key.bits == kAction && value.kind == Kind::kText) {
      action = static_cast<int32_t>(value.bits);
    } else if (key.bits == kFrames && value.kind == Kind::kList) {
      stack = slots_[value.bits];
    } else if (key.bits != kAction && key.bits < kFrames && is_number) {
      values[key.bits - kAddress] = static_cast<int64_t>(value.bits);
    } else if (value.kind != Kind::kNone) {
      damaged("an action holds what it should not");
    }
  }
  actions_.action.push_back(action);
  actions_.address.push_back(values[0]);
  actions_.size.push_back(values[1]);
  actions_.time_us.push_back(values[2]);
  actions_.stack.push_back(stack);
  return ~static_cast<int32_t>(actions_.action.size() - 1);
}

int32_t SnapshotReader::shared(std::vector<Plain>&& items, bool is_mapping) {
  uint64_t hash = is_mapping ? 1 : 2;
  for (const Plain& item : items) hash = mixed(hash, item);
  const auto [first, last] = known_.equal_range(hash);
  for (auto at = first; at != last; ++at) {
    const Content& content = contents_[static_cast<size_t>(at->second)];
    if (content.is_mapping == is_mapping && content.items == items) return at->second;
  }
  const auto made = static_cast<int32_t>(contents_.size());
  contents_.push_back({std::move(items), is_mapping, true});
  known_.emplace(hash, made);
  return made;
}

}  // namespace leadline::offline
