#include "providers/torch/launch_place.h"

#include <atomic>
#include <string_view>
#include <utility>

#include "base/losses.h"

namespace leadline::torch {
namespace {

// Since torch 2.13 a kind is the address of its name, before that a number of one byte.
constexpr std::string_view kName = "LEADLINE_LAUNCH_PLACE";
constexpr uintptr_t kNumber = 201;

uintptr_t our_kind(const Symbols& symbols) noexcept {
  return symbols.kinds_are_addresses ? reinterpret_cast<uintptr_t>(&kName) : kNumber;
}

}  // namespace

// c10::DebugInfoBase, for our own kind only: nobody else reads it.
struct LaunchPlace::Information {
  explicit Information(leadline_context where) noexcept : place(where) {}
  virtual ~Information() = default;
  std::atomic<leadline_context> place;  // 0: void
  // How its own thread takes it away again.
  const void* entry = nullptr;         // the thread's information while this is on top
  std::shared_ptr<void> before;        // what it was before
  std::shared_ptr<Information> below;  // the latest of ours that lay there already
};

thread_local std::shared_ptr<LaunchPlace::Information> LaunchPlace::t_latest;

LaunchPlace::LaunchPlace(const Symbols& symbols) noexcept {
  if (symbols.push_debug_info == nullptr) return;
  const leadline_context place = leadline_monitor_context();
  if (place == 0) return;
  try {
    open(symbols, place);
  } catch (...) {
    losses().count(LossKind::kInternalError, 1,
                   "there was no memory to keep where a collective was launched, so its work is shown where it ran");
  }
}

void LaunchPlace::open(const Symbols& symbols, leadline_context place) {
  drop_void(symbols);
  information_ = std::make_shared<Information>(place);
  information_->before = symbols.current_debug_info();
  information_->below = t_latest;
  symbols.push_debug_info(our_kind(symbols), information_);
  information_->entry = symbols.current_debug_info().get();
  t_latest = information_;
  restore_ = symbols.set_debug_info;
}

void LaunchPlace::drop_void(const Symbols& symbols) {
  while (t_latest != nullptr && t_latest->place.load(std::memory_order_relaxed) == 0) {
    // The innermost of our kind, unless the program has taken it away; an address alone may be somebody else's by now.
    const bool there = symbols.debug_info(our_kind(symbols)) == t_latest.get();
    if (there && symbols.current_debug_info().get() != t_latest->entry) return;  // below something of the program's
    const std::shared_ptr<Information> dropped = std::move(t_latest);
    t_latest = dropped->below;
    if (there) symbols.set_debug_info(std::move(dropped->before));
  }
}

bool LaunchPlace::self_test(const Symbols& symbols) noexcept try {
  constexpr leadline_context kProbe = 0x1ead11e;
  const std::shared_ptr<void> before = symbols.current_debug_info();
  if (read(symbols) != 0) return false;
  LaunchPlace place;
  place.open(symbols, kProbe);
  // Compared before it is looked into: what torch gives back may be anything.
  const bool found = symbols.debug_info(our_kind(symbols)) == place.information_.get() && read(symbols) == kProbe;
  place.close();
  return found && symbols.current_debug_info() == before && symbols.debug_info(our_kind(symbols)) == nullptr;
} catch (...) {
  return false;
}

void LaunchPlace::void_elsewhere() noexcept {
  if (information_ != nullptr) information_->place.store(0, std::memory_order_relaxed);
  restore_ = nullptr;
}

void LaunchPlace::close() noexcept {
  if (restore_ == nullptr) return;
  std::exchange(restore_, nullptr)(std::move(information_->before));
  t_latest = std::move(information_->below);  // with it went what lay above
}

leadline_context LaunchPlace::read(const Symbols& symbols) noexcept {
  if (symbols.push_debug_info == nullptr) return 0;
  const auto* information = static_cast<const Information*>(symbols.debug_info(our_kind(symbols)));
  return information == nullptr ? 0 : information->place.load(std::memory_order_relaxed);
}

}  // namespace leadline::torch
