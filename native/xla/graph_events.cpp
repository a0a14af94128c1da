#include "xla/graph_events.h"

#include <algorithm>
#include <utility>

namespace leadline::xla {
namespace {

constexpr std::string_view kCall = "EagerLocalExecute: ";
constexpr std::string_view kFunctions[] = {"__inference_", "__forward_", "__backward_"};
constexpr std::string_view kStages = "Iterator::";
constexpr std::pair<std::string_view, GraphEvent> kWhole[] = {
    {"FunctionRun", GraphEvent::kRun},
    {"ExecutorState::Process", GraphEvent::kProcess},
    {"MemoryAllocation", GraphEvent::kAllocates},
    {"ThreadpoolListener::Record", GraphEvent::kPuts},
    {"ThreadpoolListener::StartRegion", GraphEvent::kTakes},
    {"ThreadpoolListener::StopRegion", GraphEvent::kLeaves},
};

bool is_ascii(char c) noexcept { return static_cast<unsigned char>(c) < 0x80; }

bool is_word(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || !is_ascii(c);
}

bool is_path(char c) noexcept { return is_word(c) || c == '.' || c == '\\' || c == '/' || c == '>' || c == '-'; }

// Where the type in `path:Type` begins, 0 for what is no node.
size_t type_in(std::string_view name) noexcept {
  const size_t colon = name.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || colon + 1 == name.size()) return 0;
  const std::string_view path = name.substr(0, colon);
  const std::string_view type = name.substr(colon + 1);
  const bool begins = (is_word(path[0]) || path[0] == '.') && is_ascii(path[0]);
  const bool named = (type[0] >= 'A' && type[0] <= 'Z') || type[0] == '_';
  if (!begins || !named || !std::ranges::all_of(path, is_path) || !std::ranges::all_of(type, is_word)) return 0;
  return colon + 1;
}

bool is_function(std::string_view name) noexcept {
  return std::ranges::any_of(kFunctions, [&](std::string_view beginning) {
    return name.starts_with(beginning) && name.size() > beginning.size();
  });
}

}  // namespace

NamedEvent graph_event(std::string_view name) noexcept {
  if (name.starts_with(kCall) && is_function(name.substr(kCall.size())))
    return {GraphEvent::kFunction, name.substr(kCall.size()), {}};
  if (name.starts_with(kStages)) return {GraphEvent::kStage, name, {}};
  for (const auto& [whole, what] : kWhole) {
    if (name == whole) return {what, {}, {}};
  }
  if (name.ends_with("Async::Start")) return {GraphEvent::kBegins, {}, {}};
  if (name.ends_with("Async::Done")) return {GraphEvent::kEnds, {}, {}};
  const size_t type = type_in(name);
  if (type == 0) return {};
  return {GraphEvent::kNode, name.substr(0, type - 1), name.substr(type)};
}

}  // namespace leadline::xla
