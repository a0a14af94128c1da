// What operators need to know of native frames, as a table of functions: who has it sees neither unwinding nor files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace leadline {

// What a native frame is to a reader of the profile.
struct NativeText {
  std::string name;
  std::string file;
  std::string build_id;
  uint64_t address = 0;  // within the file
};

// What a walk rests on, beyond `above`: while it holds, the calls from there on are the same ones.
struct NativeWords {
  std::vector<std::pair<uintptr_t, uintptr_t>> words;  // addresses on the stack, and what is there
  uint64_t libraries = 0;                              // a number that changes when code may have been exchanged
  bool known = false;                                  // false: it never holds
};

// What a whole walk rests on: while all of it holds, the same walk finds the same calls.
struct NativeWalk {
  NativeWords words;
  uintptr_t code = 0;  // where it began, and the registers there
  uintptr_t stack = 0;
  uintptr_t base = 0;
  bool on_base = false;     // the last one matters
  uint8_t followed_by = 0;  // the walk that was the next one, the last time
  void* found = nullptr;    // the asker's
};

// Walks of one thread with the same arguments. Code that calls the same from several of its lines makes several.
struct NativeWalks {
  static constexpr size_t kMost = 8;
  std::vector<NativeWalk> walks;
  size_t latest = 0;
};

struct NativeSource {
  // Calls on the way to what runs now, innermost first, by the addresses of their code: of frames that end beyond
  // `above`, an address on this stack (what ends before it is the measuring's own), and not beyond `stop`. Returns how
  // many there are, at most `room`; `whole`: no frame between is missing. Signal-safe.
  size_t (*walk)(uintptr_t above, uintptr_t stop, uintptr_t* out, size_t room, bool* whole) = nullptr;
  // As walk(), and what it rests on.
  size_t (*walk_noting)(uintptr_t above, uintptr_t stop, uintptr_t* out, size_t room, bool* whole,
                        NativeWords* words) = nullptr;
  // As walk(), or kAsBefore where one of the known walks holds. The latest one is then that; else it is this one, and
  // the asker's word in it is null. Throws std::bad_alloc.
  size_t (*walk_again)(uintptr_t above, uintptr_t stop, uintptr_t* out, size_t room, bool* whole,
                       NativeWalks* known) = nullptr;
  static constexpr size_t kAsBefore = SIZE_MAX;
  // On the same thread, and where what lies at that `above` is of the same function as then.
  bool (*holds)(const NativeWords& words) = nullptr;
  // Slow path: false for what is not shown. Any thread.
  bool (*describe)(uintptr_t address, NativeText* out) = nullptr;
};

}  // namespace leadline
