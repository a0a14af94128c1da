#include "providers/torch/launch_place.h"

#include <string_view>
#include <utility>

namespace leadline::torch {
namespace {

// c10::DebugInfoBase, for our own kind only: nobody else reads it.
struct Information {
  virtual ~Information() = default;
  leadline_context place = 0;
};

// Since torch 2.13 a kind is the address of its name, before that a number of one byte.
constexpr std::string_view kName = "LEADLINE_LAUNCH_PLACE";
constexpr uintptr_t kNumber = 201;

uintptr_t our_kind(const Symbols& symbols) noexcept {
  return symbols.kinds_are_addresses ? reinterpret_cast<uintptr_t>(&kName) : kNumber;
}

}  // namespace

LaunchPlace::LaunchPlace(const Symbols& symbols) noexcept {
  if (symbols.push_debug_info == nullptr) return;
  const leadline_context place = leadline_monitor_context();
  if (place == 0) return;
  try {
    auto information = std::make_shared<Information>();
    information->place = place;
    before_ = symbols.current_debug_info();
    symbols.push_debug_info(our_kind(symbols), std::move(information));
    restore_ = symbols.set_debug_info;
  } catch (...) {
    before_.reset();  // for want of memory: the work stands where it ran
  }
}

void LaunchPlace::close() noexcept {
  if (restore_ != nullptr) std::exchange(restore_, nullptr)(std::move(before_));
}

leadline_context LaunchPlace::read(const Symbols& symbols) noexcept {
  if (symbols.push_debug_info == nullptr) return 0;
  const auto* information = static_cast<const Information*>(symbols.debug_info(our_kind(symbols)));
  return information == nullptr ? 0 : information->place;
}

}  // namespace leadline::torch
