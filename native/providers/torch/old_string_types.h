// Types of inputs from a torch that was built with the old std::string. No standard type may appear here: see the .cpp.
#pragma once

namespace leadline::torch {

// Calls `add` for every input; `input_types` is torch::profiler::impl::inputTypes.
void old_string_types(void* input_types, const void* record_function, void (*add)(void* to, const char* type),
                      void* to);

}  // namespace leadline::torch
