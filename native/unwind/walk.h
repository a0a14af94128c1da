// The native frames of a thread, leaf first, by rules (rule.h). Signal-safe: reads the thread's own stack between its
// stack pointer and its end, and unwind information of loaded modules.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace leadline::unwind {

struct Registers {
  uintptr_t pc = 0;
  uintptr_t sp = 0;
  uintptr_t bp = 0;
};

// A frame lies in [sp, cfa); cfa is 0 where nothing is known of it.
struct NativeFrame {
  uintptr_t pc = 0;  // of the leaf and of what a signal interrupted the next instruction, of callers where they go on
  uintptr_t sp = 0;
  uintptr_t cfa = 0;
  friend bool operator==(const NativeFrame&, const NativeFrame&) = default;
};

enum class End : uint8_t {
  kOutermost,  // the whole stack
  kGap,        // the last frame has no unwind information
  kBroken,     // a frame that would lie outside of the stack
  kFull,       // more frames than there is room for
};

// `stack_end`: no frame lies at or beyond it. Returns how many frames there are in `out`.
// `last`: where it ended, or null.
size_t walk(Registers from, uintptr_t stack_end, NativeFrame* out, size_t room, End* end,
            Registers* last = nullptr) noexcept;

// Words of the stack that the steps of a walk rest on: while they are as they were, its frames are too.
struct WordsRead {
  struct Word {
    uintptr_t address;
    uintptr_t value;
  };
  std::array<Word, 256> words;
  size_t count = 0;
  bool whole = true;  // false: there was no room, or the walk rests on what is not among them
  // Of all steps; then the same registers and words give the same frames. Otherwise of those from the first frame
  // beyond `above` on: while that one is the same call, it was called from the same places.
  bool from_here = false;
  bool bp = false;      // the frame pointer that the walk began with matters
  uintptr_t floor = 0;  // where the first frame beyond `above` begins, once it is met
};

// Of frames that end beyond `above` and not beyond `stop`, the addresses of their calls (less one than where they go
// on), leaf first. `whole`: none is missing between those and `stop`, or the end of the stack.
size_t walk_between(Registers from, uintptr_t stack_end, uintptr_t above, uintptr_t stop, uintptr_t* out, size_t room,
                    bool* whole, WordsRead* read = nullptr) noexcept;

// The end of the stack that a thread of this address of `pthread_self()` runs on, when its stack pointer is `sp`; 0
// where that is another one (a coroutine's, an alternate one). `main`: the process's first thread.
uintptr_t stack_end(uintptr_t sp, bool main) noexcept;

}  // namespace leadline::unwind
