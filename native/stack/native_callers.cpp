// C that calls Python (an autograd function's backward, a hook, a callback) has native frames between the Python frame
// that called it and the one that it calls: they are entries of the path like those. Found when the inner Python frame
// comes to be shown, and kept as long as it is.
#include <unistd.h>

#include <algorithm>
#include <array>

#include "stack/call_path.h"

namespace leadline {
namespace {

constexpr size_t kMostCalls = 128;
constexpr size_t kMostHomes = 512;
constexpr PathFrameId kNotShown{UINT32_MAX};

}  // namespace

std::atomic<const NativeSource*> CallPath::native_{nullptr};

void CallPath::show_native(const NativeSource* source) noexcept { native_.store(source, std::memory_order_release); }

uintptr_t CallPath::evaluation_around(uintptr_t address) {
  const uintptr_t innermost = innermost_evaluation();
  if (innermost == 0 || innermost > address) return innermost;
  homes_.resize(kMostHomes);
  const size_t found = python_->homes == nullptr ? 0 : python_->homes(homes_.data(), kMostHomes);
  const auto end = homes_.begin() + static_cast<std::ptrdiff_t>(found);
  const auto around = std::find_if(homes_.begin(), end, [address](uintptr_t home) { return home > address; });
  return around == end ? 0 : *around;
}

PathFrameId CallPath::native_frame(const NativeSource& source, uintptr_t address) {
  const auto known = native_known_.find(address);
  if (known != native_known_.end()) return known->second;
  NativeText text;
  const PathFrameId frame = source.describe(address, &text) ? frames_.native(text) : kNotShown;
  native_known_.emplace(address, frame);
  return frame;
}

// Of walk_[index]: from the evaluation that runs it out to the next one, or to the operator between.
void CallPath::append_callers(const NativeSource& source, size_t index) {
  if (python_->homes == nullptr || !python_->entered_from_c(walk_[index].frame)) return;
  const auto entered = [this](const RawFrame& raw) { return python_->entered_from_c(raw.frame); };
  const auto first = walk_.begin();
  const auto inside = static_cast<size_t>(std::count_if(first, first + static_cast<std::ptrdiff_t>(index), entered));
  if (inside >= kMostHomes) return;
  homes_.resize(inside + 2);
  const size_t found = python_->homes(homes_.data(), inside + 2);
  if (found <= inside) return;
  const uintptr_t home = homes_[inside];
  uintptr_t end = found > inside + 1 ? homes_[inside + 1] : UINTPTR_MAX;
  for (const Scope& scope : scopes_) {
    const auto token = reinterpret_cast<uintptr_t>(scope.token);  // of operators it lies on the stack
    if (scope.kind == ScopeKind::kOperator && token > home && token < end) end = token;
  }
  if (end == UINTPTR_MAX && getpid() == gettid()) return;  // what starts the program says nothing
  std::array<uintptr_t, kMostCalls> calls;
  bool whole = true;
  const size_t count = source.walk(home, end, calls.data(), kMostCalls, &whole);
  for (size_t i = count; i-- > 1;) {  // the innermost is the evaluation itself
    const PathFrameId frame = native_frame(source, calls[i]);
    if (frame != kNotShown) entries_.push_back(PathEntry{frame});
  }
}

}  // namespace leadline
