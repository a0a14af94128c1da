// What the operations of compiled programs were made from.
//
// The runtime of a compiler (XLA) names what it launches by titles of its own: a program's number, an operation's
// name. Who has read the program (a provider in Python) says here what stands for them in a file: the frames of the
// user's lines. The threads' trees keep the titles; the writer puts the frames in their place.
//
// Any thread; short locks, never taken where events are folded. What was said once stays the same.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "cct/tree_registry.h"

namespace leadline {

struct CompiledFrame {
  FrameKind kind = FrameKind::kOperator;
  std::string name;
  std::string module;
  std::string file;
  std::string detail;
  std::int32_t line = 0;
};

// One of the operations that an executed one was made from: the frames below the program, outermost first, and its
// share of what was measured, in millionths. Shares of all parts add up to kWhole.
struct CompiledPart {
  static constexpr std::uint32_t kWhole = 1'000'000;
  std::vector<CompiledFrame> frames;
  std::uint32_t millionths = kWhole;
};
using CompiledParts = std::vector<CompiledPart>;

class CompiledOperations {
 public:
  // The frame that stands for the program itself, such as the operator `jit(train_step)`. Throws std::bad_alloc.
  void put_program(std::uint64_t program, CompiledFrame frame);
  // The parts of one of its operations; ignored without any, or where the parts are known. Throws std::bad_alloc.
  void put(std::uint64_t program, std::string operation, const CompiledParts& parts);

  // nullptr where nobody has said it. What is found stays.
  const CompiledFrame* program(std::uint64_t program) const;
  const CompiledParts* operation(std::uint64_t program, std::string_view operation) const;

  // In the child of a fork. What was found before stays.
  void after_fork() noexcept;

  // Another number whenever there is more to find.
  std::uint64_t version() const noexcept { return version_.load(std::memory_order_acquire); }

 private:
  struct Program {
    std::unique_ptr<const CompiledFrame> frame;
    std::map<std::string, CompiledParts, std::less<>> operations;
  };
  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, Program> programs_;
  std::atomic<std::uint64_t> version_{0};
};

// What the title of a range says, where it is one of XLA's: a program, or an operation of one.
struct CompiledTitle {
  enum class Of : std::uint8_t { kNothing, kProgram, kOperation };
  Of of = Of::kNothing;
  std::uint64_t program = 0;
  std::string_view module;  // of a program: its name
  std::string_view operation;
};
CompiledTitle read_title(std::string_view title) noexcept;
// That of a node of a thread's tree.
CompiledTitle title_of(const ThreadTree& tree, NodeId node) noexcept;

// The program that ran an operation: the node with its title. What a recorded graph runs stands below its launch with
// the path on which it was recorded, which has the program's title as well; then it is the one that launched.
struct ProgramAbove {
  ThreadIndex thread = kNoThread;
  NodeId node = kNoNode;
  std::uint64_t program = 0;
  explicit operator bool() const noexcept { return node != kNoNode; }
};
ProgramAbove program_above(const TreeRegistry& trees, ThreadIndex thread, NodeId operation) noexcept;

// How often programs ran below something that called them, by the ranges with their titles. May run while threads
// measure; throws std::bad_alloc.
std::map<std::uint64_t, std::uint64_t> titled_runs(const TreeRegistry& trees);

// Programs and their operations that ran, and of which nobody has said yet what they were made from; an empty name for
// a program itself. May run while threads measure; throws std::bad_alloc.
struct UnknownOperation {
  std::uint64_t program;
  std::string operation;
  std::string module;  // the name of a program itself
  friend auto operator<=>(const UnknownOperation&, const UnknownOperation&) = default;
};
std::set<UnknownOperation> unknown_operations(const TreeRegistry& trees, const CompiledOperations& known);

}  // namespace leadline
