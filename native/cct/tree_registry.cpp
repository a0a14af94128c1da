#include "cct/tree_registry.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include "base/abandon.h"

namespace leadline {

TreeRegistry::TreeRegistry(std::uint64_t max_nodes, LossCounters& losses)
    : max_nodes_(max_nodes), losses_(&losses), budget_(max_nodes) {}

TreeRegistry::~TreeRegistry() = default;

namespace {

// A name without its numbers: pools number their threads, and CPython since 3.14 gives every thread a number.
std::string without_numbers(std::string_view name) {
  std::string pattern;
  for (const char letter : name) {
    if (letter < '0' || letter > '9') {
      pattern += letter;
    } else if (pattern.empty() || pattern.back() != '#') {
      pattern += '#';
    }
  }
  return pattern;
}

constexpr std::string_view kManyNames = "(ended threads)";

}  // namespace

// The tree of an ended thread that this one may go on with, named after all that it is of; nullptr when there is none.
ThreadTree* TreeRegistry::take_retired(std::uint64_t tid, std::string_view name) {
  if (trees_->size() < kDistinctThreads) return nullptr;
  const std::string pattern = without_numbers(name);
  const auto like = [&](const ThreadTree* tree) { return without_numbers(tree->name()) == pattern; };
  auto found = std::find_if(retired_.begin(), retired_.end(), like);
  const bool any = found == retired_.end() && trees_->size() >= kMostThreads;
  if (any) found = retired_.begin();
  if (found == retired_.end()) return nullptr;
  ThreadTree* tree = *found;
  const std::string_view shown = any ? kManyNames : tree->name() == name ? name : std::string_view(pattern);
  if (tree->name() != shown) tree->name_.store(tree->string(shown), std::memory_order_release);
  *found = retired_.back();
  retired_.pop_back();
  tree->tid_.store(tid, std::memory_order_relaxed);
  return tree;
}

ThreadTree& TreeRegistry::create(std::uint64_t tid, std::string_view name) {
  const std::lock_guard guard(lock_);
  if (ThreadTree* known = take_retired(tid, name); known != nullptr) return *known;
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max() / 2;
  const auto max_frames = static_cast<std::uint32_t>(std::min(max_nodes_, kMost)) + 1;  // and the thread's own
  const ThreadIndex index{trees_->size()};
  auto tree = std::make_unique<ThreadTree>(index, tid, name, budget_, max_frames, *losses_);
  retired_.reserve(trees_->size() + 1);  // so that retire() never allocates
  const auto* stored = trees_->emplace_back(std::move(tree));
  if (stored == nullptr) throw std::bad_alloc();
  return **stored;
}

void TreeRegistry::retire(ThreadTree& tree) noexcept {
  const std::lock_guard guard(lock_);
  retired_.push_back(&tree);
}

std::uint64_t TreeRegistry::node_count() const noexcept {
  std::uint64_t nodes = 0;
  for_each([&](const ThreadTree& tree) { nodes += tree.node_count(); });
  return nodes;
}

std::size_t TreeRegistry::held_bytes() const noexcept {
  std::size_t bytes = trees_->held_bytes();
  for_each([&](const ThreadTree& tree) { bytes += tree.held_bytes(); });
  return bytes;
}

void TreeRegistry::clear() noexcept {
  lock_.reset();
  abandon(retired_);
  abandon(trees_, std::in_place);
  budget_.reset(max_nodes_);
}

}  // namespace leadline
