#include "backends/sanitizer/selection.h"

#include <array>
#include <string_view>
#include <vector>

#include "base/schema_generated.h"
#include "leadline/monitor.h"

namespace leadline::sanitizer {
namespace {

std::optional<std::regex> compile(const std::string& pattern, std::string* error) {
  if (pattern.empty()) return std::nullopt;
  try {
    return std::regex(pattern, std::regex::ECMAScript | std::regex::optimize);
  } catch (const std::regex_error&) {
    *error = "the pattern '" + pattern + "' cannot be read here, where patterns are those of ECMAScript";
    return std::nullopt;
  }
}

}  // namespace

Selection::Selection(const Wanted& wanted, std::string* error)
    : wanted_(wanted), kernel_(compile(wanted.kernel, error)), layer_(compile(wanted.layer, error)) {}

bool Selection::kernel(const std::string& name) const noexcept {
  if (!kernel_) return true;
  try {
    return std::regex_search(name, *kernel_);
  } catch (...) {  // too deep, or no memory
    return false;
  }
}

bool Selection::launch(std::int64_t number, std::uint64_t at) noexcept {
  if (number < wanted_.first || (wanted_.end >= 0 && number >= wanted_.end)) return false;
  if ((layer_ || !wanted_.phase.empty()) && !place(at)) return false;
  if (wanted_.every <= 1) return true;
  return matched_.fetch_add(1, std::memory_order_relaxed) % static_cast<std::uint64_t>(wanted_.every) == 0;
}

bool Selection::place(std::uint64_t at) noexcept {
  try {
    {
      const std::lock_guard lock(mutex_);
      const auto known = places_.find(at);
      if (known != places_.end()) return known->second;
    }
    const bool answer = look_at(at);
    const std::lock_guard lock(mutex_);
    places_.emplace(at, answer);
    return answer;
  } catch (...) {
    return false;
  }
}

bool Selection::look_at(std::uint64_t at) const {
  std::vector<leadline_frame> frames(128);
  std::size_t count = frames.size();
  leadline_status status = leadline_monitor_path(at, frames.data(), &count);
  if (status == LEADLINE_ERROR_FULL) {
    frames.resize(count);
    status = leadline_monitor_path(at, frames.data(), &count);
  }
  if (status != LEADLINE_OK) return false;
  const auto innermost = [&](FrameKind kind) -> std::string_view {
    for (std::size_t i = count; i-- > 0;) {
      if (frames[i].kind == static_cast<std::uint32_t>(kind)) return frames[i].name;
    }
    return "";
  };
  const std::string_view module = innermost(FrameKind::kModule);
  return (!layer_ || std::regex_search(module.begin(), module.end(), *layer_)) &&
         (wanted_.phase.empty() || innermost(FrameKind::kPhase) == wanted_.phase);
}

}  // namespace leadline::sanitizer
