#include "backends/sanitizer/selection.h"

#include <array>
#include <string_view>
#include <vector>

#include "base/schema_generated.h"
#include "leadline/monitor.h"

namespace leadline::sanitizer {
namespace {

// What Python's patterns have and those of the C library have not, or mean otherwise.
constexpr std::array<std::string_view, 7> kForeign{"(?", "*?", "+?", "??", "\\A", "\\Z", "\\D"};

std::string extended(const std::string& text) {
  std::string made;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) {
      const char next = text[++i];
      made += next == 'd' ? std::string("[0-9]") : std::string{'\\', next};
    } else {
      made += text[i];
    }
  }
  return made;
}

}  // namespace

Pattern::Pattern(const std::string& text, std::string* error) {
  if (text.empty()) return;
  bool foreign = false;
  for (const std::string_view one : kForeign) foreign = foreign || text.find(one) != std::string::npos;
  given_ = !foreign && regcomp(&compiled_, extended(text).c_str(), REG_EXTENDED | REG_NOSUB) == 0;
  if (!given_) *error = "it selects kernels as they start and can read simple patterns only, not '" + text + "'";
}

Pattern::~Pattern() {
  if (given_) regfree(&compiled_);
}

bool Pattern::found_in(const char* text) const noexcept {
  return !given_ || regexec(&compiled_, text, 0, nullptr, 0) == 0;
}

Selection::Selection(const Wanted& wanted, std::string* error)
    : wanted_(wanted), kernel_(wanted.kernel, error), layer_(wanted.layer, error) {}

bool Selection::launch(std::int64_t number, std::uint64_t at) noexcept {
  if (number < wanted_.first || (wanted_.end >= 0 && number >= wanted_.end)) return false;
  if ((!wanted_.layer.empty() || !wanted_.phase.empty()) && !place(at)) return false;
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
  const auto innermost = [&](FrameKind kind) -> const char* {
    for (std::size_t i = count; i-- > 0;) {
      if (frames[i].kind == static_cast<std::uint32_t>(kind)) return frames[i].name;
    }
    return "";
  };
  return layer_.found_in(innermost(FrameKind::kModule)) &&
         (wanted_.phase.empty() || innermost(FrameKind::kPhase) == wanted_.phase);
}

}  // namespace leadline::sanitizer
