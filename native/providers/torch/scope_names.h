// torch marks optimizer steps and data loading by user scopes with agreed names; those become phases.
#pragma once

#include <cstdint>

namespace leadline::torch {

struct ScopeName {
  const char* name = "";  // the phase, or the scope's own name
  char detail[96] = {};   // JSON object, or empty
  bool is_phase = false;
  std::uint32_t flags = 0;  // leadline_region_flag of the phase
};

void read_scope_name(const char* full, ScopeName* out) noexcept;

}  // namespace leadline::torch
