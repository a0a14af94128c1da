#include "providers/cpu/operator_frames.h"

#include <pthread.h>

#include <atomic>
#include <mutex>

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

__attribute__((noinline)) size_t walk_reading(uintptr_t above, uintptr_t stop, uintptr_t* out, size_t room, bool* whole,
                                              unwind::WordsRead* read) {
  *whole = true;
#ifdef __x86_64__
  unwind::Registers here;
  asm volatile("lea 0(%%rip), %0\n\tmov %%rsp, %1\n\tmov %%rbp, %2" : "=r"(here.pc), "=r"(here.sp), "=r"(here.bp));
  uintptr_t end = unwind::stack_end(here.sp, false);
  if (end == 0) end = unwind::stack_end(here.sp, true);
  if (above <= here.sp || above >= end) return 0;
  return unwind::walk_between(here, end, above, stop, out, room, whole, read);
#else
  (void)above, (void)stop, (void)out, (void)room, (void)read;
  return 0;
#endif
}

size_t walk(uintptr_t above, uintptr_t stop, uintptr_t* out, size_t room, bool* whole) {
  return walk_reading(above, stop, out, room, whole, nullptr);
}

size_t walk_noting(uintptr_t above, uintptr_t stop, uintptr_t* out, size_t room, bool* whole, NativeWords* words) {
  words->known = false;
  words->libraries = unwind::renewals();
  unwind::WordsRead read;
  const size_t count = walk_reading(above, stop, out, room, whole, &read);
  words->words.clear();
  for (size_t i = 0; i < read.count; ++i) words->words.emplace_back(read.words[i].address, read.words[i].value);
  words->known = read.whole && read.count > 0;
  return count;
}

// What was a return address may lie in another function's variables by now.
__attribute__((no_sanitize("address"))) bool words_hold(const NativeWords& words) {
  if (!words.known || words.libraries != unwind::renewals()) return false;
  for (const auto& [address, value] : words.words) {
    if (*reinterpret_cast<const volatile uintptr_t*>(address) != value) return false;
  }
  return true;
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

const NativeSource* operator_frames(bool all, uintptr_t interpreter) {
  static constexpr NativeSource kSource{
      .walk = walk, .walk_noting = walk_noting, .holds = words_hold, .describe = describe};
  if (!unwind::available()) return nullptr;
  g_all.store(all, std::memory_order_relaxed);
  g_interpreter.store(interpreter, std::memory_order_relaxed);
  return &kSource;
}

}  // namespace leadline::cpu
