#include "providers/torch/coming_node.h"

#include <atomic>
#include <cstring>
#include <memory>
#include <new>

namespace leadline::torch {
namespace {

// torch::autograd::Node: virtual table, counts of its owners, sequence number, depth, a flag, thread. Until torch 2.12
// it has a weak pointer to itself and is held by std::shared_ptr; since 2.13 it counts its owners itself, in the low
// half of one word.
constexpr size_t kOwners = 8;
constexpr size_t kSequenceIfCounted = 16;
constexpr size_t kSequenceIfShared = 24;
constexpr size_t kToThread = 24;

enum class Layout : uint8_t { kNone, kUnproven, kProven, kRefuted };
std::atomic<Layout> g_layout{Layout::kNone};
std::atomic<ComingNode::Source> g_source{nullptr};

// The pointer that the engine returns: two words of std::shared_ptr, or one word and a second that stays as it was.
struct ReturnedPointer {
  void* object;
  void* control;
  ReturnedPointer(const ReturnedPointer&) = delete;  // so that it is returned through memory, as those are
  ~ReturnedPointer() {}                              // NOLINT(modernize-use-equals-default): as above
};
static_assert(sizeof(ReturnedPointer) == sizeof(std::shared_ptr<void>));

// Gives back one of three owners or more; the engine's two outlive the callback.
bool give_back(void* object) noexcept {
  auto* const owners = reinterpret_cast<uint64_t*>(static_cast<char*>(object) + kOwners);
  if (static_cast<uint32_t>(__atomic_load_n(owners, __ATOMIC_RELAXED)) < 3) return false;
  __atomic_fetch_sub(owners, 1, __ATOMIC_ACQ_REL);
  return true;
}

// `is_right`: whether the object is what it is taken for. Only then is the count given back: in an object of another
// shape that word means something else, and the one owner too many keeps it alive for ever.
template <typename Check>
bool read(int64_t* sequence, uint64_t* thread, const Check& is_right) noexcept {
  const ComingNode::Source source = g_source.load(std::memory_order_relaxed);
  if (source == nullptr) return false;
  alignas(ReturnedPointer) unsigned char memory[sizeof(ReturnedPointer)];
  void* const untouched = memory;
  auto* const words = reinterpret_cast<void* volatile*>(memory);
  words[0] = nullptr;
  words[1] = untouched;
  new (memory) ReturnedPointer(reinterpret_cast<ReturnedPointer (*)()>(source)());
  auto* const node = static_cast<char*>(words[0]);
  const bool counted = words[1] == untouched;
  bool found = node != nullptr;
  if (found) {
    const size_t at = counted ? kSequenceIfCounted : kSequenceIfShared;
    std::memcpy(sequence, node + at, sizeof *sequence);
    std::memcpy(thread, node + at + kToThread, sizeof *thread);
    if (counted) found = !is_right() || give_back(node);
  }
  if (!counted) reinterpret_cast<std::shared_ptr<void>*>(memory)->~shared_ptr();
  return found;
}

}  // namespace

bool ComingNode::is_announced(const char* name) noexcept {
  constexpr char kPrefix[] = "autograd::engine::evaluate_function: ";
  return name[1] == 'u' && std::strncmp(name, kPrefix, sizeof kPrefix - 1) == 0;
}

void ComingNode::set_source(Source current_node) noexcept {
  g_source.store(current_node, std::memory_order_relaxed);
  g_layout.store(current_node == nullptr ? Layout::kNone : Layout::kUnproven, std::memory_order_relaxed);
}

bool ComingNode::is_unproven() noexcept { return g_layout.load(std::memory_order_relaxed) == Layout::kUnproven; }

void ComingNode::prove(int64_t sequence, uint64_t forward_thread) noexcept {
  int64_t found = -1;
  uint64_t thread = 0;
  const auto same = [&] { return found == sequence && thread == forward_thread; };
  // No node: a backward function that the program calls by itself, which says nothing.
  if (!read(&found, &thread, same)) return;
  Layout unproven = Layout::kUnproven;
  g_layout.compare_exchange_strong(unproven, same() ? Layout::kProven : Layout::kRefuted, std::memory_order_relaxed);
}

int ComingNode::identify(int64_t* sequence, uint64_t* forward_thread) noexcept {
  if (g_layout.load(std::memory_order_relaxed) != Layout::kProven) return 0;
  return read(sequence, forward_thread, [] { return true; }) ? 1 : 0;
}

}  // namespace leadline::torch
