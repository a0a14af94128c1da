// Every id of the native core has its own type, so that a node is never taken for a frame.
//
// Ids of ThreadTree are local to that tree; they become rows of the file's tables only when a segment is written.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "base/schema_generated.h"

namespace leadline {

enum class StringId : std::uint32_t {};
enum class FrameId : std::uint32_t {};
enum class NodeId : std::uint32_t {};
enum class ThreadIndex : std::uint32_t {};  // position of a ThreadTree in its TreeRegistry

// The number behind an id.
template <class Id>
requires std::is_enum_v<Id>
constexpr std::underlying_type_t<Id> raw(Id id) noexcept { return static_cast<std::underlying_type_t<Id>>(id); }

inline constexpr StringId kEmptyString{0};
inline constexpr FrameId kNoFrame{std::numeric_limits<std::uint32_t>::max()};
inline constexpr NodeId kNoNode{std::numeric_limits<std::uint32_t>::max()};
inline constexpr ThreadIndex kNoThread{std::numeric_limits<std::uint32_t>::max()};

inline constexpr std::int16_t kCpuDevice = -1;  // `device` of measurements that belong to no accelerator
inline constexpr std::int32_t kNoStream = -1;

}  // namespace leadline
