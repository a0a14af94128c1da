// Where functions begin and end, by the symbols that a loaded library exports.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "providers/cpu/images.h"
#include "unwind/gap.h"

namespace leadline::cpu {

class Functions {
 public:
  // Of the function that an address of the image lies in; zeros where no symbol says so.
  unwind::FunctionRange at(const Image& image, uintptr_t pc);
  // Of libraries that may be gone.
  void forget() { of_image_.clear(); }

 private:
  struct Function {
    uint32_t begin;  // from the image's base
    uint32_t size;   // 0: up to the next
  };
  static std::vector<Function> read(const Image& image);

  std::unordered_map<uintptr_t, std::vector<Function>> of_image_;
};

}  // namespace leadline::cpu
