// Torch's memory snapshots: a pickle of plain data, read by a stack machine that makes no Python object and knows
// nothing that could run. Mappings with the key "action" become rows of columns, equal lists and mappings are kept
// once, so a snapshot takes a part of its size and not a multiple of it.
#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "offline/interner.h"

namespace leadline::offline {

// A value of a pickle. `bits`: of numbers; of others which text, which container (`kList`, `kMapping`) or which content
// (`kSharedList`, `kSharedMapping`).
struct Plain {
  enum class Kind : uint8_t {
    kNone,
    kBoolean,
    kInteger,
    kUnsigned,  // from 2^63 on
    kReal,
    kText,
    kList,
    kMapping,
    kSharedList,
    kSharedMapping,
  };
  Kind kind = Kind::kNone;
  uint64_t bits = 0;

  bool operator==(const Plain&) const = default;
};

// The file is cut off or damaged.
struct DamagedPickle : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// It holds an object; `what()` names its class.
struct ObjectInPickle : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// One action of the allocator's history. `address`, `size`: their 64 bits; `time_us`: -1 for none; `stack`: a content.
struct SnapshotActions {
  std::vector<int32_t> action;  // texts
  std::vector<int64_t> address;
  std::vector<int64_t> size;
  std::vector<int64_t> time_us;
  std::vector<int32_t> stack;
};

class SnapshotReader {
 public:
  // Gives the next piece of the file, empty at its end; a piece holds until the next is asked for.
  using More = std::function<std::string_view()>;

  SnapshotReader();

  // Throws DamagedPickle, ObjectInPickle and what `more` does.
  Plain read(const More& more);

  const SnapshotActions& actions() const noexcept { return actions_; }
  size_t texts() const noexcept { return texts_.size(); }
  std::string_view text(uint64_t row) const noexcept { return texts_.text(row); }
  // Whether a mapping became a row of `actions`, and which.
  bool is_action(const Plain& value) const noexcept;
  size_t action(const Plain& value) const noexcept { return static_cast<size_t>(~slots_[value.bits]); }
  // The content of a list or of a mapping that is no action: items, or keys and values by turns.
  size_t content(const Plain& value) const noexcept;
  size_t contents() const noexcept { return contents_.size(); }
  const std::vector<Plain>& items(size_t content) const noexcept { return contents_[content].items; }

 private:
  struct Content {
    std::vector<Plain> items;
    bool is_mapping = false;
    bool is_shared = false;
  };
  static constexpr int32_t kEmpty = 0;

  bool step(uint8_t code);
  bool number(uint8_t code);
  bool name(uint8_t code);
  bool container(uint8_t code);
  bool memory(uint8_t code);

  const char* take(size_t size);
  template <typename T>
  T little();
  std::string_view line();
  void push(Plain::Kind kind, uint64_t bits = 0) { stack_.push_back({kind, bits}); }
  void text_of(uint64_t size) { push(Plain::Kind::kText, static_cast<uint64_t>(texts_.row({take(size), size}))); }
  void long_of(size_t size);
  size_t fence() const noexcept { return marks_.empty() ? 0 : marks_.back(); }
  size_t marked();
  void need(size_t count) const;
  void remember(uint64_t place);
  void recall(uint64_t place);
  void list_of(size_t from);
  void extend(size_t from, bool is_mapping);
  bool is_row(size_t from) const noexcept;
  int32_t row(size_t from);
  int32_t shared(std::vector<Plain>&& items, bool is_mapping);
  Plain settled(const Plain& value) const noexcept;

  const More* more_ = nullptr;
  std::string_view piece_;
  std::string joined_;  // what lies over the end of a piece
  Interner texts_;
  std::vector<Plain> stack_;
  std::vector<size_t> marks_;
  std::vector<Plain> memo_;
  std::vector<int32_t> slots_;  // of each container its content, or ~row of an action
  std::vector<Content> contents_;
  std::unordered_multimap<uint64_t, int32_t> known_;
  SnapshotActions actions_;
};

}  // namespace leadline::offline
