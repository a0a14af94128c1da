// Owns the trees of all threads of the process.
//
// Reading (size, operator[], for_each) is lock-free; create() and retire() take a short spin lock against each other.
// A program that starts threads without end stays bounded: beyond kDistinctThreads a new thread continues the tree of
// an ended one whose name differs by numbers at most, and beyond kMostThreads that of any ended one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/chunked_array.h"
#include "base/ids.h"
#include "base/losses.h"
#include "base/spin_lock.h"
#include "cct/node_table.h"
#include "cct/thread_tree.h"

namespace leadline {

class TreeRegistry {
 public:
  static constexpr std::uint32_t kDistinctThreads = 256;
  static constexpr std::uint32_t kMostThreads = 1024;

  explicit TreeRegistry(std::uint64_t max_nodes, LossCounters& losses = leadline::losses());
  ~TreeRegistry();

  // A tree for a thread that begins; the caller becomes its only writer. Throws std::bad_alloc.
  ThreadTree& create(std::uint64_t tid, std::string_view name);

  // The thread has ended and will never write again.
  void retire(ThreadTree& tree) noexcept;

  std::uint32_t size() const noexcept { return trees_->size(); }
  ThreadTree& operator[](ThreadIndex index) noexcept { return *(*trees_)[raw(index)]; }
  const ThreadTree& operator[](ThreadIndex index) const noexcept { return *(*trees_)[raw(index)]; }

  // Calls f(const ThreadTree&) in order of creation, for the trees there are when it begins.
  template <class F>
  void for_each(F&& f) const {
    const std::uint32_t count = size();
    for (std::uint32_t i = 0; i < count; ++i) f(static_cast<const ThreadTree&>(*(*trees_)[i]));
  }

  std::uint64_t node_count() const noexcept;
  std::size_t held_bytes() const noexcept;

  // For a fork child (where the other threads do not exist): forgets every tree, whatever the parent was doing.
  void clear() noexcept;

 private:
  ThreadTree* take_retired(std::uint64_t tid, std::string_view name);

  using Trees = ChunkedArray<std::unique_ptr<ThreadTree>, 16>;

  std::uint64_t max_nodes_;
  LossCounters* losses_;
  NodeBudget budget_;
  std::optional<Trees> trees_{std::in_place};  // always there; clear() puts a new one in its place
  std::vector<ThreadTree*> retired_;
  SpinLock lock_;
};

}  // namespace leadline
