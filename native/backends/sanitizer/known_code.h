// Functions and modules that launches have met: which kernels are chosen, and code patched when one of them is about to
// run first.
//
// The vendor wants patching done by one thread at a time. A thread that finds another one at it does not wait, since it
// may hold what that one needs: its launch is not measured, and counted. Memory is taken when a function is new.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "backends/sanitizer/library.h"
#include "backends/sanitizer/losses.h"
#include "backends/sanitizer/sanitizer_abi.h"
#include "backends/sanitizer/selection.h"
#include "base/spin_lock.h"

namespace leadline::sanitizer {

// One place in the code that is patched, and the text's function that is called from there.
struct Patch {
  abi::Point point;
  const char* function;
  bool newer;  // releases of the library before 13.3 have no such point
};

struct KnownFunction {
  abi::Module module = nullptr;
  std::uint64_t pc = 0;
  std::uint32_t name = 0;
  bool chosen = false;
};

class KnownCode {
 public:
  // `image`: the text, compiled, as the driver loads it. `with_pc`: instructions are told by their offset.
  KnownCode(const SanitizerLibrary& library, const Selection& selection, std::string image, std::vector<Patch> patches,
            bool with_pc);

  // False where memory is short.
  bool find(const abi::LaunchData& launch, KnownFunction* known) noexcept;
  // Whether launches of this module call the patches; asks for it where it does not yet.
  bool patched(const abi::LaunchData& launch, Lost* why) noexcept;
  bool was_patched(abi::Module module) noexcept;
  void unloaded(abi::Module module) noexcept;
  void context_gone(abi::Context context) noexcept;
  // As it was; only where no launch is under way.
  void unpatch_all() noexcept;

  std::string name(std::uint32_t number);
  // Why something could not be patched, in the vendor's words; empty: nothing failed.
  std::string problem();
  bool without_tma() const noexcept { return without_tma_.load(std::memory_order_relaxed); }

 private:
  enum class State : std::uint8_t { kPatched, kFailed };
  abi::Result patch(const abi::LaunchData& launch, const char** at) noexcept;
  bool remember(abi::Module module, State state) noexcept;

  const SanitizerLibrary& library_;
  const Selection& selection_;
  const std::string image_;
  const std::vector<Patch> patches_;
  const bool with_pc_;
  SpinLock lock_;
  std::unordered_map<abi::Function, KnownFunction> functions_;
  std::unordered_map<abi::Module, State> modules_;
  std::unordered_set<abi::Context> loaded_;  // contexts with the text
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::vector<std::string> names_;
  std::string problem_;
  std::atomic<bool> patching_{false};
  std::atomic<bool> without_tma_{false};
};

}  // namespace leadline::sanitizer
