// What operators need to know of native frames, as a table of functions: who has it sees neither unwinding nor files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace leadline {

// What a native frame is to a reader of the profile.
struct NativeText {
  std::string name;
  std::string file;
  std::string build_id;
  uint64_t address = 0;  // within the file
};

struct NativeSource {
  // Calls on the way to what runs now, innermost first, by the addresses of their code: of frames that end beyond
  // `above`, an address on this stack (what ends before it is the measuring's own), and not beyond `stop`. Returns how
  // many there are, at most `room`; `whole`: no frame between is missing. Signal-safe.
  size_t (*walk)(uintptr_t above, uintptr_t stop, uintptr_t* out, size_t room, bool* whole) = nullptr;
  // Slow path: false for what is not shown. Any thread.
  bool (*describe)(uintptr_t address, NativeText* out) = nullptr;
};

}  // namespace leadline
