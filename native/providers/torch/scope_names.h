// torch marks optimizer steps and data loading by user scopes with agreed names; those become phases.
#pragma once

namespace leadline::torch {

struct ScopeName {
  const char* name = "";  // the phase, or the scope's own name
  char detail[96] = {};   // JSON object, or empty
  bool is_phase = false;
};

void read_scope_name(const char* full, ScopeName* out) noexcept;

}  // namespace leadline::torch
