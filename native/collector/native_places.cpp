// Native frames between an operator and what called it: Python code, or the operator around it.
#include <array>
#include <new>

#include "base/hash.h"
#include "base/losses.h"
#include "collector/collector.h"
#include "monitor/monitor.h"

namespace leadline {
namespace {

constexpr size_t kMostFrames = 192;
constexpr uintptr_t kGap = 1;  // as an address: frames are missing here

// Where frames belong to the operator around this one. Operators lie on the stack of who calls them.
uintptr_t end_of_inner(CallPath& path, uintptr_t above) noexcept {
  const StackOf<Scope>& scopes = path.scopes();
  for (size_t level = scopes.size(); level-- > 0;) {
    const auto token = reinterpret_cast<uintptr_t>(scopes[level].token);
    if (scopes[level].kind == ScopeKind::kOperator && token > above) return token;
  }
  return UINTPTR_MAX;
}

}  // namespace

FrameId Lane::native_frame(uintptr_t address, const NativeSource& source) {
  const auto known = native_frames_.find(address);
  if (known != native_frames_.end()) return known->second;
  NativeText text;
  FrameId made = kNoFrame;
  if (address == kGap) {
    text.name = "[no unwind information]";
  }
  if (address == kGap || source.describe(address, &text)) {
    leadline_path_frame named{};
    named.kind = static_cast<uint8_t>(FrameKind::kNative);
    named.name = text.name.c_str();
    named.file = text.file.c_str();
    named.module = text.build_id.c_str();
    named.address = text.address;
    made = frame(named);
  }
  native_frames_.emplace(address, made);
  return made;
}

// `above` itself where there are none, or no room.
ThreadTree::Place* Collector::below_native(Lane& lane, CallPath& path, ThreadTree::Place* above, const void* token,
                                           uint64_t kind) noexcept try {
  const NativeSource* const source = Monitor::instance().native();
  if (source == nullptr || token == nullptr) return above;
  const auto begin = reinterpret_cast<uintptr_t>(token);
  uintptr_t end = end_of_inner(path, begin);
  const uintptr_t evaluation = path.evaluation_around(begin);
  if (evaluation != 0 && evaluation < end) end = evaluation;
  std::array<uintptr_t, kMostFrames> calls;
  bool whole = true;
  NativeWalks& known = lane.walks[{above->id(), kind, begin, end}];
  size_t count = source->walk_again(begin, end, calls.data(), kMostFrames - 1, &whole, &known);
  void*& found = known.walks[known.latest].found;
  if (count == NativeSource::kAsBefore && found != nullptr) [[likely]]
    return static_cast<ThreadTree::Place*>(found);
  if (count == NativeSource::kAsBefore) return above;  // there was no memory when it was made
  if (!whole) calls[count++] = kGap;
  uint64_t key = hash_mix(raw(above->id()), count);
  for (size_t i = 0; i < count; ++i) key = hash_mix(key, calls[i]);
  ThreadTree::Place*& place = lane.native_places[key];
  if (place == nullptr) {
    NodeId node = above->id();
    for (size_t i = count; i-- > 0;) {
      const FrameId frame = lane.native_frame(calls[i], *source);
      if (frame != kNoFrame) node = lane.tree->child(node, frame);
    }
    place = lane.tree->place(node);
  }
  found = place;
  return place;
} catch (const std::bad_alloc&) {
  losses().count(LossKind::kInternalError, 1, "an operator has no native frames because memory ran out");
  return above;
}

// The place of one of the path's operators, with native frames between it and what is around it.
NodeId Collector::resolve_operator(Lane& lane, CallPath& path, const Scope& scope) noexcept {
  StackOf<PathEntry>& entries = path.entries();
  if (Monitor::instance().native() == nullptr || entries[scope.entry].slot != 0)
    return resolve(lane, path, size_t{scope.entry} + 1);
  const NodeId around = resolve(lane, path, scope.entry);
  ThreadTree::Place* const above = below_native(lane, path, lane.tree->place(around), scope.token,
                                                static_cast<uint32_t>(entries[scope.entry].frame));
  return settle(lane, entries[scope.entry], above->id());
}

// Autograd's wrapper around an operator that has no forward stands where it was called.
void Collector::place_wrapper(Lane& lane, CallPath& path, const Scope& wrapper) noexcept {
  if (Monitor::instance().native() != nullptr) resolve_operator(lane, path, wrapper);
}

}  // namespace leadline
