#include "providers/torch/launch_place.h"

#include <atomic>
#include <string_view>
#include <utility>

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
  std::atomic<leadline_context> place;
};

LaunchPlace::LaunchPlace(const Symbols& symbols) noexcept {
  if (symbols.push_debug_info == nullptr) return;
  const leadline_context place = leadline_monitor_context();
  if (place == 0) return;
  try {
    open(symbols, place);
  } catch (...) {
    before_.reset();  // for want of memory: the work stands where it ran
  }
}

void LaunchPlace::open(const Symbols& symbols, leadline_context place) {
  information_ = std::make_shared<Information>(place);
  before_ = symbols.current_debug_info();
  symbols.push_debug_info(our_kind(symbols), information_);
  restore_ = symbols.set_debug_info;
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
  if (restore_ != nullptr) std::exchange(restore_, nullptr)(std::move(before_));
}

leadline_context LaunchPlace::read(const Symbols& symbols) noexcept {
  if (symbols.push_debug_info == nullptr) return 0;
  const auto* information = static_cast<const Information*>(symbols.debug_info(our_kind(symbols)));
  return information == nullptr ? 0 : information->place.load(std::memory_order_relaxed);
}

}  // namespace leadline::torch
