// What the audit library and the provider share: which function each thunk stands for, and where it jumps.
#pragma once

#include <atomic>
#include <cstdint>

namespace leadline::audit {

inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::uint32_t kThunks = 256;
// Asked for by the provider with dlsym; the audit library answers with a function of its own in its place.
inline constexpr char kMailboxName[] = "leadline_audit_mailbox";
// Environment: the functions to be seen, as capture/accelerator.py writes them. Lines of words between tabs:
// `accelerator` begins one, `library PATTERN` names its files, `function NAME` a function in any of them. Functions are
// numbered from 0 over the whole text.
inline constexpr char kVariable[] = "LEADLINE_AUDIT";

struct Bound {
  std::atomic<void*> original{nullptr};  // null: the thunk is free, or is being made
  std::uint32_t function = 0;
};

// The thunks of one library, see thunks.h. Thunk i passes on number first + i and jumps to targets[i].
struct Thunks {
  std::uint32_t version = kVersion;
  std::uint32_t first = 0;
  const char* code = nullptr;
  std::atomic<void*>* targets = nullptr;
  std::atomic<std::uint32_t> taken{0};
  std::atomic<void*> hook{nullptr};  // where thunks of functions that are bound later are to jump
  const char* description = nullptr;
  Bound bound[kThunks];

  static constexpr std::uint32_t kThunkBytes = 16;
  void* thunk(std::uint32_t i) const noexcept { return const_cast<char*>(code + i * kThunkBytes); }
  bool holds(const void* address) const noexcept {
    const char* at = static_cast<const char*>(address);
    return at >= code && at < code + kThunks * kThunkBytes;
  }
  // The thunk of a function; the function itself where all thunks are taken.
  void* take(std::uint32_t function, void* original) noexcept {
    const std::uint32_t present = taken.load(std::memory_order_acquire);
    for (std::uint32_t i = 0; i < present && i < kThunks; ++i) {
      if (bound[i].function == function && bound[i].original.load(std::memory_order_acquire) == original) {
        return thunk(i);
      }
    }
    if (present >= kThunks) return original;
    const std::uint32_t i = taken.fetch_add(1, std::memory_order_acq_rel);
    if (i >= kThunks) return original;
    bound[i].function = function;
    targets[i].store(original, std::memory_order_release);
    bound[i].original.store(original, std::memory_order_seq_cst);
    // Who sets the hook sets it for all that it finds; one of the two sees the other.
    if (void* to = hook.load(std::memory_order_seq_cst)) targets[i].store(to, std::memory_order_release);
    return thunk(i);
  }
};

using Mailbox = Thunks* (*)();

}  // namespace leadline::audit
