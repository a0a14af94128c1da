#include "providers/accelerator/places.h"

#include <dlfcn.h>
#include <link.h>

#include <array>
#include <atomic>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "audit/mailbox.h"
#include "audit/thunks.h"
#include "base/library.h"
#include "leadline/monitor.h"
#include "providers/accelerator/frame.h"

#ifdef LEADLINE_HAS_THUNKS
LEADLINE_THUNKS(256);
#endif

// The audit library answers with its own in its place.
extern "C" LEADLINE_EXPORT void* leadline_audit_mailbox() { return nullptr; }

namespace leadline::accelerator {
namespace {

constexpr std::uint32_t kFirstOwn = audit::kThunks;
constexpr std::uint32_t kMostFunctions = 4096;  // of all descriptions of this process

struct Registry {
  std::array<std::atomic<const Function*>, kMostFunctions> functions{};
  std::atomic<std::uint32_t> used{0};
  std::atomic<std::uint32_t> audited_base{0};
  audit::Thunks own;
  audit::Thunks* audited = nullptr;
  bool looked = false;
};

Registry& registry() noexcept {
  static_assert(std::is_trivially_destructible_v<Registry>, "calls may come until the very end");
  static Registry made;
  return made;
}

// This module's own file and a handle of it.
void* own_handle(Dl_info* info) noexcept {
  if (dladdr(reinterpret_cast<void*>(&own_handle), info) == 0 || info->dli_fname == nullptr) return nullptr;
  return dlopen(info->dli_fname, RTLD_NOLOAD | RTLD_NOW);
}

[[maybe_unused]] audit::Thunks* find_audit() noexcept {
  Dl_info info{};
  void* handle = own_handle(&info);
  if (handle == nullptr) return nullptr;
  const auto mailbox = reinterpret_cast<audit::Mailbox>(dlsym(handle, audit::kMailboxName));
  audit::Thunks* thunks = mailbox != nullptr ? mailbox() : nullptr;
  dlclose(handle);
  return thunks != nullptr && thunks->version == audit::kVersion ? thunks : nullptr;
}

Registry& made_registry() noexcept {
  Registry& all = registry();
  if (all.looked) return all;
  all.looked = true;
#ifdef LEADLINE_HAS_THUNKS
  all.own.first = kFirstOwn;
  all.own.code = leadline_thunk_code;
  all.own.targets = leadline_thunk_targets;
  all.audited = find_audit();
#endif
  return all;
}

void aim(audit::Thunks& thunks, bool at_entry) noexcept {
  void* const entry = at_entry ? reinterpret_cast<void*>(&leadline_accelerator_entry) : nullptr;
  thunks.hook.store(entry, std::memory_order_seq_cst);
  for (std::uint32_t i = 0; i < audit::kThunks; ++i) {
    void* original = thunks.bound[i].original.load(std::memory_order_seq_cst);
    if (original != nullptr) thunks.targets[i].store(at_entry ? entry : original, std::memory_order_release);
  }
}

std::uint64_t libraries_loaded() noexcept {
  std::uint64_t loads = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t size, void* out) {
        if (size >= offsetof(dl_phdr_info, dlpi_subs)) *static_cast<std::uint64_t*>(out) = info->dlpi_adds;
        return 1;
      },
      &loads);
  return loads;
}

}  // namespace

std::string Places::why_not() {
#ifdef LEADLINE_HAS_THUNKS
  return {};
#else
  return "Functions of accelerators can be followed on x86-64 only, so nothing of theirs is measured.";
#endif
}

Places::Places(const Description& description) : description_(description) {
  Registry& all = made_registry();
  const auto count = static_cast<std::uint32_t>(description.functions.size());
  base_ = all.used.fetch_add(count, std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < count && base_ + i < kMostFunctions; ++i) {
    all.functions[base_ + i].store(description.functions[i].get(), std::memory_order_release);
  }
  audited_ =
      all.audited != nullptr && all.audited->description != nullptr && description.text == all.audited->description;
}

void Places::open() {
  Registry& all = made_registry();
  if (audited_) {
    all.audited_base.store(base_, std::memory_order_release);
    aim(*all.audited, true);
  }
  if (all.own.code != nullptr) aim(all.own, true);
  open_ = true;
  look();
}

void Places::look() {
  const std::uint64_t loads = libraries_loaded();
  if (!open_ || loads == loads_) return;
  loads_ = loads;
  for (const LoadedLibrary& library : loaded_libraries()) {
    if (library.path.empty()) continue;
    for (const auto& accelerator : description_.accelerators) {
      for (const std::string& pattern : accelerator->libraries) {
        if (!matches(pattern, library.path)) continue;
        patch(*accelerator, library.path);
        break;
      }
    }
  }
}

void Places::patch(const Accelerator& accelerator, const std::string& path) {
  void* handle = dlopen(path.c_str(), RTLD_NOLOAD | RTLD_NOW);
  if (handle == nullptr) return;
  Dl_info self{};
  void* own = own_handle(&self);
  const std::string own_path = self.dli_fname != nullptr ? self.dli_fname : "";
  std::vector<std::string>& missing = missing_[path];
  missing.clear();
  for (std::uint32_t i = 0; i < description_.functions.size(); ++i) {
    const Function& function = *description_.functions[i];
    if (function.of != &accelerator) continue;
    void* definition = dlsym(handle, function.name.c_str());
    if (definition == nullptr) {
      missing.push_back(function.name);
      continue;
    }
    if (base_ + i >= kMostFunctions) continue;
    void* thunk = registry().own.take(base_ + i, definition);
    if (thunk == definition) continue;
    GotPatch patch =
        GotPatch::install(function.name.c_str(), thunk, [&](std::string_view at) { return at != own_path; },
                          {.bound_to = definition, .unbound = !audited_});
    if (patch.replaced() > 0) patches_.push_back(std::move(patch));
  }
  if (own != nullptr) dlclose(own);
  dlclose(handle);
}

void Places::close() noexcept {
  if (!open_) return;
  open_ = false;
  Registry& all = registry();
  patches_.clear();
  if (audited_) aim(*all.audited, false);
  if (all.own.code != nullptr) aim(all.own, false);
}

void Places::abandon() noexcept {
  if (!open_) return;
  open_ = false;
  Registry& all = registry();
  if (audited_) aim(*all.audited, false);
  if (all.own.code != nullptr) aim(all.own, false);
}

std::uint64_t Places::functions_bound() const noexcept {
  const Registry& all = registry();
  std::uint64_t bound = 0;
  for (std::uint32_t i = 0; i < description_.functions.size(); ++i) {
    bool found = false;
    for (std::uint32_t at = 0; at < audit::kThunks && !found; ++at) {
      const audit::Bound& own = all.own.bound[at];
      found = own.original.load(std::memory_order_acquire) != nullptr && own.function == base_ + i;
      if (found || !audited_) continue;
      const audit::Bound& seen = all.audited->bound[at];
      found = seen.original.load(std::memory_order_acquire) != nullptr && seen.function == i;
    }
    bound += found ? 1 : 0;
  }
  return bound;
}

Places::Target Places::target(std::uint64_t thunk) noexcept {
  Registry& all = registry();
  const bool own = thunk >= kFirstOwn;
  const audit::Bound& bound = own ? all.own.bound[thunk - kFirstOwn] : all.audited->bound[thunk];
  const std::uint32_t at = bound.function + (own ? 0 : all.audited_base.load(std::memory_order_acquire));
  return {at < kMostFunctions ? all.functions[at].load(std::memory_order_acquire) : nullptr,
          bound.original.load(std::memory_order_acquire)};
}

}  // namespace leadline::accelerator
