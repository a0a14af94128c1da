#include "unwind/walk.h"

#include <dlfcn.h>
#include <pthread.h>

#include "unwind/rule_cache.h"
#include "unwind/walker.h"

namespace leadline::unwind {
namespace {

// The calling thread's own stack.
struct Own {
  static Rule rule(uintptr_t pc) noexcept { return rule_at(pc); }
  static uintptr_t word(uintptr_t address) noexcept { return *reinterpret_cast<const uintptr_t*>(address); }
};

// The same, written down.
struct Noted {
  WordsRead* read;
  static Rule rule(uintptr_t pc) noexcept { return rule_at(pc); }
  uintptr_t word(uintptr_t address) const noexcept {
    const uintptr_t value = Own::word(address);
    if (read->count < read->words.size()) {
      read->words[read->count++] = {address, value};
    } else {
      read->whole = false;
    }
    return value;
  }
};

// `read` is null where nothing is noted.
template <typename Where>
size_t between(Walker<Where> walker, uintptr_t above, uintptr_t stop, uintptr_t* out, size_t room, bool* whole,
               WordsRead* read) noexcept {
  constexpr size_t kBoth = 2;  // the return address and the caller's frame pointer
  size_t count = 0;
  *whole = true;
  for (bool over = false; !over;) {
    const uintptr_t pc = walker.at().pc;
    End why = End::kFull;
    const uintptr_t cfa = walker.step(&over, &why);
    if (cfa > stop) return count;
    if (cfa == 0) {
      *whole = why == End::kOutermost;
      return count;
    }
    if (cfa <= above) {
      if (read != nullptr) read->count = 0;
      continue;
    }
    if (read != nullptr && count == 0 && read->count < kBoth) read->whole = false;
    if (count == room) {
      *whole = false;
      return count;
    }
    out[count++] = pc - 1;
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
  if (read == nullptr) return between(Walker<Own>(from, stack_end), above, stop, out, room, whole, read);
  read->count = 0;
  read->whole = true;
  return between(Walker<Noted>(from, stack_end, Noted{read}), above, stop, out, room, whole, read);
}

uintptr_t stack_end(uintptr_t sp, bool main) noexcept {
  constexpr uintptr_t kMost = uintptr_t{1} << 32;  // larger stacks than this are somebody's mistake
  // Glibc puts a thread's own data at the end of its stack; of the first thread the loader knows where it began.
  static const auto* const first = static_cast<const uintptr_t*>(dlsym(RTLD_DEFAULT, "__libc_stack_end"));
  const uintptr_t end = main ? (first == nullptr ? 0 : *first) : static_cast<uintptr_t>(pthread_self());
  return sp < end && end - sp < kMost ? end : 0;
}

}  // namespace leadline::unwind
