#include "providers/cpu/operator_frames.h"

#include <pthread.h>

#include <atomic>
#include <mutex>

#include "base/abandon.h"
#include "providers/cpu/images.h"
#include "unwind/rule_cache.h"
#include "unwind/walk.h"

namespace leadline::cpu {
namespace {

std::atomic<bool> g_all{false};
std::atomic<uintptr_t> g_interpreter{0};

struct Names {
  std::mutex busy;
  Images images;
};
Names& names() {
  static auto* const made = new Names();  // never destroyed: threads may outlive main
  return *made;
}

// Of the function that asks.
__attribute__((always_inline)) inline unwind::Registers registers_here() noexcept {
  unwind::Registers here;
#ifdef __x86_64__
  asm volatile("lea 0(%%rip), %0\n\tmov %%rsp, %1\n\tmov %%rbp, %2" : "=r"(here.pc), "=r"(here.sp), "=r"(here.bp));
#elif defined(__aarch64__)
  asm volatile("adr %0, .\n\tmov %1, sp\n\tmov %2, x29" : "=r"(here.pc), "=r"(here.sp), "=r"(here.bp));
#endif
  return here;
}

size_t walk_from(unwind::Registers here, uintptr_t above, uintptr_t stop, uintptr_t* out, size_t room, bool* whole,
                 unwind::WordsRead* read) {
  *whole = true;
  uintptr_t end = unwind::stack_end(here.sp, false);
  if (end == 0) end = unwind::stack_end(here.sp, true);
  if (above <= here.sp || above >= end) return 0;
  return unwind::walk_between(here, end, above, stop, out, room, whole, read);
}

// What was a return address may lie in another function's variables by now.
__attribute__((no_sanitize("address"))) bool words_hold(const NativeWords& words) {
  if (!words.known || words.libraries != unwind::renewals()) return false;
  for (const auto& [address, value] : words.words) {
    if (*reinterpret_cast<const volatile uintptr_t*>(address) != value) return false;
  }
  return true;
}

void keep(const unwind::WordsRead& read, NativeWords* words) {
  words->words.clear();
  for (size_t i = 0; i < read.count; ++i) words->words.emplace_back(read.words[i].address, read.words[i].value);
  words->known = read.whole && read.count > 0;
}

// Each takes its registers itself and is a function of its own: the frames of who asks are whole, whatever is inlined.
__attribute__((noinline)) size_t walk(uintptr_t above, uintptr_t stop, uintptr_t* out, size_t room, bool* whole) {
  const size_t count = walk_from(registers_here(), above, stop, out, room, whole, nullptr);
  asm volatile("");  // the call is no jump: this frame stays until it returns
  return count;
}

__attribute__((noinline)) size_t walk_noting(uintptr_t above, uintptr_t stop, uintptr_t* out, size_t room, bool* whole,
                                             NativeWords* words) {
  words->known = false;
  words->libraries = unwind::renewals();
  unwind::WordsRead read;
  const size_t count = walk_from(registers_here(), above, stop, out, room, whole, &read);
  keep(read, words);
  return count;
}

bool stands(const NativeWalk& walk, const unwind::Registers& here) {
  return walk.code == here.pc && walk.stack == here.sp && (!walk.on_base || walk.base == here.bp) &&
         words_hold(walk.words);
}

// Makes one that stands the latest; the one that followed on the latest is tried first.
bool find_standing(NativeWalks& known, const unwind::Registers& here) {
  const size_t count = known.walks.size();
  if (count == 0) return false;
  NativeWalk& latest = known.walks[known.latest];
  for (size_t i = 0, at = latest.followed_by; i < count; ++i, at = at + 1 == count ? 0 : at + 1) {
    if (!stands(known.walks[at], here)) continue;
    latest.followed_by = static_cast<uint8_t>(at);
    known.latest = at;
    return true;
  }
  return false;
}

// For a new one, which is the latest.
NativeWalk& room_for_one(NativeWalks& known) {
  const size_t before = known.latest;
  if (known.walks.size() < NativeWalks::kMost) {
    known.walks.emplace_back();
    known.latest = known.walks.size() - 1;
  } else {
    known.latest = (before + 1) % NativeWalks::kMost;
  }
  known.walks[before].followed_by = static_cast<uint8_t>(known.latest);
  return known.walks[known.latest];
}

__attribute__((noinline)) size_t walk_again(uintptr_t above, uintptr_t stop, uintptr_t* out, size_t room, bool* whole,
                                            NativeWalks* known) {
  const unwind::Registers here = registers_here();
  if (find_standing(*known, here)) return NativeSource::kAsBefore;
  NativeWalk& made = room_for_one(*known);
  made.found = nullptr;
  made.words.known = false;
  made.words.libraries = unwind::renewals();
  unwind::WordsRead read;
  read.from_here = true;
  const size_t count = walk_from(here, above, stop, out, room, whole, &read);
  keep(read, &made.words);
  made.code = here.pc;
  made.stack = here.sp;
  made.base = here.bp;
  made.on_base = read.bp;
  return count;
}

bool holds(const Image* image, uintptr_t address) noexcept {
  return image != nullptr && address >= image->begin && address < image->end;
}

bool describe(uintptr_t address, NativeText* out) {
  Names& known = names();
  const std::lock_guard lock(known.busy);
  const Image* const image = known.images.find(address);
  const auto threads = reinterpret_cast<uintptr_t>(&pthread_create);
  if (holds(image, threads)) return false;  // what begins a thread or the program says nothing
  if (holds(image, reinterpret_cast<uintptr_t>(&describe))) return false;  // calls that are followed pass through here
  if (!g_all.load(std::memory_order_relaxed) && holds(image, g_interpreter.load(std::memory_order_relaxed)))
    return false;
  *out = {};
  if (image == nullptr) {
    out->name = "[code made at run time]";
    return true;
  }
  out->name = name_in(*image, address);
  out->file = image->path;
  out->build_id = image->build_id;
  out->address = address - image->base;
  return true;
}

}  // namespace

void operator_frames_after_fork() noexcept {
  if (!renew(names().busy)) abandon(names().images);
}

const NativeSource* operator_frames(bool all, uintptr_t interpreter) {
  static constexpr NativeSource kSource{
      .walk = walk, .walk_noting = walk_noting, .walk_again = walk_again, .holds = words_hold, .describe = describe};
  if (!unwind::available()) return nullptr;
  g_all.store(all, std::memory_order_relaxed);
  g_interpreter.store(interpreter, std::memory_order_relaxed);
  return &kSource;
}

}  // namespace leadline::cpu
