#include "unwind/walk.h"

#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>
#include <cstddef>

#include "unwind/libgcc_walk.h"
#include "unwind/rule_cache.h"
#include "unwind/walker.h"

namespace leadline::unwind {
namespace {

constexpr size_t kMostSteps = 8192;  // half a millisecond

// The calling thread's own stack.
struct Own {
  static Rule rule(uintptr_t pc) noexcept { return rule_at(pc); }
  static uintptr_t word(uintptr_t address) noexcept { return *reinterpret_cast<const uintptr_t*>(address); }
};

// The same, and what it rests on is written down.
struct Noted {
  WordsRead* read;
  static Rule rule(uintptr_t pc) noexcept { return rule_at(pc); }
  static uintptr_t word(uintptr_t address) noexcept { return Own::word(address); }
  void rests_on(uintptr_t address, uintptr_t value) const noexcept {
    if (read->from_here && address == 0) {
      read->bp = true;
    } else if (address >= read->floor && read->count < read->words.size()) {
      read->words[read->count++] = {address, value};
    } else {
      read->whole = false;  // no room, or of a frame inside, which will be another one
    }
  }
};

// What steps inside of `sp` rest on, or all of them where the frame there does not lie beyond, does not matter.
void forget_inside(WordsRead& read, uintptr_t sp, bool beyond) noexcept {
  const auto inside = [&](const WordsRead::Word& word) { return !beyond || word.address < sp; };
  const auto end = read.words.begin() + static_cast<std::ptrdiff_t>(read.count);
  read.count = static_cast<size_t>(std::remove_if(read.words.begin(), end, inside) - read.words.begin());
  if (beyond) read.floor = sp;
}

// `read` is null where nothing is noted.
template <typename Where>
size_t between(Walker<Where> walker, uintptr_t above, uintptr_t stop, uintptr_t* out, size_t room, bool* whole,
               WordsRead* read) noexcept {
  size_t count = 0;
  size_t steps = 0;
  *whole = true;
  for (bool over = false; !over;) {
    if (++steps > kMostSteps) {
      *whole = false;
      return count;
    }
    const Registers at = walker.at();
    End why = End::kFull;
    const uintptr_t cfa = walker.step(&over, &why);
    const bool beyond = cfa == 0 || cfa > above;
    if (read != nullptr && !read->from_here && count == 0) forget_inside(*read, at.sp, beyond);
    if (cfa > stop) return count;
    if (cfa == 0) {
      *whole = why == End::kOutermost;
      return count;
    }
    if (!beyond) continue;
    if (count == room) {
      *whole = false;
      return count;
    }
    out[count++] = at.pc - 1;
  }
  return count;
}

}  // namespace

size_t walk(Registers from, uintptr_t stack_end, NativeFrame* out, size_t room, End* end, Registers* last) noexcept {
  Walker<Own> walker(from, stack_end);
  size_t count = 0;
  *end = End::kFull;
  if (from.sp >= stack_end || from.sp % 8 != 0) {
    *end = End::kBroken;
    return 0;
  }
  for (bool over = false; !over && count < room; ++count) {
    NativeFrame& frame = out[count];
    frame.pc = walker.at().pc;
    frame.sp = walker.at().sp;
    End why = End::kFull;
    frame.cfa = walker.step(&over, &why);
    if (over) *end = why;
  }
  if (last != nullptr) *last = walker.at();
  return count;
}

size_t walk_between(Registers from, uintptr_t stack_end, uintptr_t above, uintptr_t stop, uintptr_t* out, size_t room,
                    bool* whole, WordsRead* read) noexcept {
#ifndef __x86_64__
  (void)from;
  (void)stack_end;
  if (read != nullptr) {
    read->count = 0;
    read->whole = false;  // what libgcc read it does not say
  }
  return walk_between_by_libgcc(above, stop, out, room, whole);
#else
  if (read == nullptr) return between(Walker<Own>(from, stack_end), above, stop, out, room, whole, read);
  read->count = 0;
  read->whole = true;
  read->bp = false;
  read->floor = 0;
  return between(Walker<Noted>(from, stack_end, Noted{read}), above, stop, out, room, whole, read);
#endif
}

uintptr_t stack_end(uintptr_t sp, bool main) noexcept {
  constexpr uintptr_t kMost = uintptr_t{1} << 32;  // larger stacks than this are somebody's mistake
  // Glibc puts a thread's own data at the end of its stack; of the first thread the loader knows where it began.
  static const auto* const first = static_cast<const uintptr_t*>(dlsym(RTLD_DEFAULT, "__libc_stack_end"));
  const uintptr_t end = main ? (first == nullptr ? 0 : *first) : static_cast<uintptr_t>(pthread_self());
  return sp < end && end - sp < kMost ? end : 0;
}

}  // namespace leadline::unwind
