// The native frames of a thread of another process, from a copy of its stack: its files are mapped here for their
// unwind information, as the loader has mapped them there. Not for signal handlers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "unwind/eh_frame.h"
#include "unwind/walk.h"

namespace leadline::unwind {

class OtherProcess {
 public:
  OtherProcess() = default;
  ~OtherProcess();
  OtherProcess(const OtherProcess&) = delete;
  OtherProcess& operator=(const OtherProcess&) = delete;

  // A file whose beginning is mapped at `address` there. False where it is no ELF file of this kind, or cannot be read.
  bool add(const std::string& path, uintptr_t address);

  // The file that an address lies in, and the address as the file has it; nullptr: none of them.
  const std::string* file_of(uintptr_t address, uint64_t* in_file) const noexcept;
  // `stack`: its bytes from `from.sp` on. What `from.bp` is need not be known: 0.
  std::vector<NativeFrame> walk(Registers from, const unsigned char* stack, size_t bytes, End* end) const;

 private:
  struct File {
    uintptr_t begin;  // there
    uintptr_t end;
    uintptr_t here;   // where it begins here
    uint64_t lowest;  // where it begins by its own addresses
    std::string path;
    Sections sections;
  };
  struct Where;
  const File* find(uintptr_t pc) const noexcept;

  std::vector<File> files_;
};

}  // namespace leadline::unwind
