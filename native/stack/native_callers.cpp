// C that calls Python (an autograd function's backward, a hook, a callback) has native frames between the Python frame
// that called it and the one that it calls: they are entries of the path like those. Found when the inner Python frame
// comes to be shown; the words of the stack that this rests on tell whether they still are those.
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/hash.h"
#include "base/losses.h"
#include "stack/call_path.h"

namespace leadline {
namespace {

constexpr size_t kMostCalls = 128;
constexpr size_t kMostHomes = 512;
constexpr size_t kMostEvaluations = 128;  // each is walked to from here, so deep recursion would cost its square
constexpr PathFrameId kNotShown{UINT32_MAX};
constexpr size_t kCallersKept = 256;
constexpr uint32_t kMostNumbers = UINT32_MAX / kCallersKept - 1;
constexpr uint32_t kUnknown = 1;  // no native frames are shown, whoever called

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

void CallPath::find_homes(size_t wanted) {
  const size_t most = std::min(wanted, kMostEvaluations + 1);
  if (homes_.size() < most) homes_.resize(most);
  evaluations_ = python_->homes == nullptr ? 0 : python_->homes(homes_.data(), most);
}

// How many evaluations of the interpreter run walk_[0..end), and where they and the next one outwards are: homes_.
size_t CallPath::find_evaluations(size_t end) {
  const auto entered = [this](const RawFrame& raw) { return python_->entered_from_c(raw.frame); };
  const auto count =
      static_cast<size_t>(std::count_if(walk_.begin(), walk_.begin() + static_cast<std::ptrdiff_t>(end), entered));
  find_homes(count + 1);
  return count;
}

// Calls from an evaluation out to the next one, or to the operator between. Returns a number for them, which no others
// of this path have. Frames further out than kMostEvaluations have none.
uint32_t CallPath::append_callers(const NativeSource& source, size_t evaluation) {
  if (evaluation >= kMostEvaluations) {
    losses().count(LossKind::kPythonFramesTruncated, 1,
                   "a stack was so deep that native frames of its outer part were not looked for");
    return kUnknown;
  }
  if (evaluation >= evaluations_) return kUnknown;
  const uintptr_t home = homes_[evaluation];
  uintptr_t end = evaluation + 1 < evaluations_ ? homes_[evaluation + 1] : UINTPTR_MAX;
  for (const Scope& scope : scopes_) {
    const auto token = reinterpret_cast<uintptr_t>(scope.token);  // of operators it lies on the stack
    if (scope.kind == ScopeKind::kOperator && token > home && token < end) end = token;
  }
  if (end == UINTPTR_MAX && getpid() == gettid()) return kUnknown;  // what starts the program says nothing
  if (callers_.empty()) callers_.resize(kCallersKept);
  const size_t slot = hash_mix(home, end) % kCallersKept;
  Callers& callers = callers_[slot];
  if (callers.number == 0 || callers.home != home || callers.end != end || !source.holds(callers.words)) {
    callers = {};
    std::array<uintptr_t, kMostCalls> calls;
    bool whole = true;
    const size_t count = source.walk_noting(home, end, calls.data(), kMostCalls, &whole, &callers.words);
    for (size_t i = count; i-- > 1;) {  // the innermost is the evaluation itself
      const PathFrameId frame = native_frame(source, calls[i]);
      if (frame != kNotShown) callers.frames.push_back(frame);
    }
    callers.home = home;
    callers.end = end;
    callers_made_ = callers_made_ % kMostNumbers + 1;
    callers.number = static_cast<uint32_t>(callers_made_ * kCallersKept + slot);
  }
  for (const PathFrameId frame : callers.frames) entries_.push_back(PathEntry{frame});
  return callers.number;
}

// Whether the callers that a frame is shown with are those that it has now. The same function called from the same
// line of Python may have been called from another place in C.
bool CallPath::called_alike(const NativeSource& source, const ShownFrame& shown, bool entered,
                            size_t evaluation) const {
  if (entered != (shown.callers != 0)) return false;
  if (shown.callers == 0 || shown.callers == kUnknown) return true;
  if (evaluation >= kMostEvaluations) return true;  // it was looked at when less lay inside of it
  if (callers_.empty() || evaluation >= evaluations_) return false;
  const Callers& callers = callers_[shown.callers % kCallersKept];
  return callers.number == shown.callers && callers.home == homes_[evaluation] && source.holds(callers.words);
}

// How many of shown_[0..kept) have the callers that they are shown with; those outside of `from` have. What is further
// inside is in walk_[0..inside).
size_t CallPath::kept_of(const NativeSource& source, size_t from, size_t kept, size_t inside) {
  const auto entered = [this](size_t level) { return python_->entered_from_c(shown_[level].raw.frame); };
  size_t evaluations = 0;
  bool any = false;
  for (size_t level = from; level < kept; ++level) {
    const bool from_c = entered(level);
    evaluations += from_c ? 1 : 0;
    any = any || from_c || shown_[level].callers != 0;
  }
  if (!any) return kept;
  const auto end = walk_.begin() + static_cast<std::ptrdiff_t>(inside);
  const auto called = [this](const RawFrame& raw) { return python_->entered_from_c(raw.frame); };
  evaluations += static_cast<size_t>(std::count_if(walk_.begin(), end, called));
  find_homes(evaluations);
  for (size_t level = from; level < kept; ++level) {
    const bool from_c = entered(level);
    if (!called_alike(source, shown_[level], from_c, evaluations - 1)) return level;
    evaluations -= from_c ? 1 : 0;
  }
  return kept;
}

}  // namespace leadline
