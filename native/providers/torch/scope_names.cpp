#include "providers/torch/scope_names.h"

#include <cstdio>
#include <cstring>

#include "leadline/monitor.h"

namespace leadline::torch {
namespace {

struct Known {
  const char* prefix;
  const char* phase;
  const char* key;  // what the rest of the name tells
  std::uint32_t flags;
};

constexpr Known kKnown[] = {
    {"Optimizer.step#", "optimizer", "optimizer", LEADLINE_REGION_FLAG_ENDS_STEP},
    {"Optimizer.zero_grad#", "zero_grad", "optimizer", 0},
    {"enumerate(DataLoader)#", "data loading", "loader", LEADLINE_REGION_FLAG_DATA_WAIT},
};

// The class: up to the first dot, letters, digits and underscores only, so that it needs no escaping.
void write_detail(const char* key, const char* rest, char* out, size_t size) noexcept {
  char class_name[48] = {};
  size_t length = 0;
  for (; rest[length] != '\0' && rest[length] != '.' && length + 1 < sizeof class_name; ++length) {
    const char c = rest[length];
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    class_name[length] = plain ? c : '?';
  }
  std::snprintf(out, size, "{\"%s\": \"%s\"}", key, class_name);
}

}  // namespace

void read_scope_name(const char* full, ScopeName* out) noexcept {
  for (const Known& known : kKnown) {
    const size_t length = std::strlen(known.prefix);
    if (std::strncmp(full, known.prefix, length) != 0) continue;
    out->name = known.phase;
    out->is_phase = true;
    out->flags = known.flags;
    write_detail(known.key, full + length, out->detail, sizeof out->detail);
    return;
  }
  out->name = full;
}

}  // namespace leadline::torch
