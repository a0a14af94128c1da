// The files that the process has loaded, for naming addresses of code. Not for signal handlers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace leadline::cpu {

struct Image {
  uintptr_t begin = 0;
  uintptr_t end = 0;
  uintptr_t base = 0;  // what addresses in the file are moved by
  std::string path;
  std::string build_id;  // hexadecimal; empty where the file has none
};

// As a frame is called until it has the name of its function: `libc.so.6+0x1f2a0`.
std::string name_in(const Image& image, uintptr_t address);

class Images {
 public:
  // The image that holds an address of code, nullptr where none does (code made at run time). Valid until the next
  // call.
  const Image* find(uintptr_t pc);
  bool is_program(const Image& image) const noexcept { return image.begin == program_; }

 private:
  const Image* among_known(uintptr_t pc) const noexcept;
  void list();

  std::vector<Image> images_;  // by address
  uintptr_t program_ = 0;
  uint64_t changes_ = 0;
};

}  // namespace leadline::cpu
