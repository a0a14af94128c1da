// Compiled with _GLIBCXX_USE_CXX11_ABI=0: wheels of torch before 2.6 pass std::string of the old kind, and only code
// built the same way may touch it. Nothing but plain pointers crosses the border of this file.
#include "providers/torch/old_string_types.h"

#include <string>
#include <vector>

namespace leadline::torch {

void old_string_types(void* input_types, const void* record_function, void (*add)(void* to, const char* type),
                      void* to) {
  using Function = std::vector<std::string> (*)(const void*);
  const std::vector<std::string> types = reinterpret_cast<Function>(input_types)(record_function);
  for (const std::string& type : types) add(to, type.c_str());
}

}  // namespace leadline::torch
