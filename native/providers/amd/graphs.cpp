#include "providers/amd/graphs.h"

namespace leadline::amd {

void Graphs::captured(std::uint64_t graph, const std::vector<leadline_context>& places) {
  const std::lock_guard lock(mutex_);
  const Executable made{next_++, static_cast<std::uint32_t>(places.size())};
  for (std::uint32_t i = 0; i < made.nodes; ++i) nodes_.created(node(made.number, i), made.number, places[i]);
  graphs_[graph] = made;
}

void Graphs::instantiated(std::uint64_t graph, std::uint64_t executable, leadline_context place) {
  const std::lock_guard lock(mutex_);
  Slot& slot = slots_[index(executable)];
  slot.executable.store(0, std::memory_order_release);
  const auto found = graphs_.find(graph);
  if (found == graphs_.end()) return;
  const Executable made{next_++, found->second.nodes};
  for (std::uint32_t i = 0; i < made.nodes; ++i) {
    nodes_.cloned(node(made.number, i), node(found->second.number, i), made.number, {place, 0});
  }
  executables_[executable] = made.number;
  unequal_[made.number & (kSlots - 1)].store(false, std::memory_order_relaxed);
  counts_[made.number & (kSlots - 1)].store(made.nodes, std::memory_order_relaxed);
  slot.number_and_nodes.store(std::uint64_t{made.number} << 32 | made.nodes, std::memory_order_relaxed);
  slot.executable.store(executable, std::memory_order_release);
}

void Graphs::destroyed(std::uint64_t graph) {
  const std::lock_guard lock(mutex_);
  const auto found = graphs_.find(graph);
  if (found == graphs_.end()) return;
  nodes_.graph_destroyed(found->second.number);
  graphs_.erase(found);
}

void Graphs::executable_destroyed(std::uint64_t executable) {
  const std::lock_guard lock(mutex_);
  const auto found = executables_.find(executable);
  if (found == executables_.end()) return;
  nodes_.graph_destroyed(found->second);
  executables_.erase(found);
  Slot& slot = slots_[index(executable)];
  std::uint64_t same = executable;
  slot.executable.compare_exchange_strong(same, 0, std::memory_order_acq_rel);
}

Graphs::Executable Graphs::find(std::uint64_t executable) const noexcept {
  const Slot& slot = slots_[index(executable)];
  if (slot.executable.load(std::memory_order_acquire) != executable) return {};
  const std::uint64_t both = slot.number_and_nodes.load(std::memory_order_acquire);
  if (slot.executable.load(std::memory_order_relaxed) != executable) return {};
  return {static_cast<std::uint32_t>(both >> 32), static_cast<std::uint32_t>(both)};
}

void Graphs::launched(std::uint32_t correlation, std::uint32_t number) noexcept {
  launches_[correlation & (kSlots - 1)].correlation_and_number.store(std::uint64_t{correlation} << 32 | number,
                                                                     std::memory_order_release);
}

void Graphs::replayed(const Executable& executable, std::uint32_t dispatched) noexcept {
  if (executable.number != 0 && dispatched != executable.nodes) {
    unequal_[executable.number & (kSlots - 1)].store(true, std::memory_order_relaxed);
  }
}

std::uint32_t Graphs::of_launch(std::uint32_t correlation) const noexcept {
  const std::uint64_t both =
      launches_[correlation & (kSlots - 1)].correlation_and_number.load(std::memory_order_acquire);
  if (both >> 32 != correlation) return 0;
  const auto number = static_cast<std::uint32_t>(both);
  return unequal_[number & (kSlots - 1)].load(std::memory_order_relaxed) ? 0 : number;
}

}  // namespace leadline::amd
