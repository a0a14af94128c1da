#include "providers/torch/quiet_guards.h"

#include <atomic>
#include <cstddef>
#include <optional>
#include <string_view>
#include <type_traits>

#include "base/library.h"
#include "providers/torch/record_function.h"

namespace leadline::torch {
namespace {

constexpr const char* kSet = "_ZN2at24set_record_function_tls_ERKNS_17RecordFunctionTLSE";

// at::RecordFunctionTLS of torch 2.4 to 2.14: a vector of callbacks, and whether this thread calls any.
struct ThreadCallbacks {
  const char* begin;
  const char* end;
  const char* end_of_storage;
  bool enabled;

  bool none() const noexcept { return begin == end; }
};

using Set = void (*)(const ThreadCallbacks&);
using Get = const ThreadCallbacks& (*)();

// Written before the first call is redirected, and kept: a caller may hold the replacement's address after detach().
std::atomic<Set> g_set{nullptr};
std::atomic<Get> g_get{nullptr};

void set_unless_same(const ThreadCallbacks& wanted) {
  if (wanted.none()) [[likely]] {
    const ThreadCallbacks& now = g_get.load(std::memory_order_relaxed)();
    if (now.none() && now.enabled == wanted.enabled) [[likely]]
      return;
  }
  g_set.load(std::memory_order_relaxed)(wanted);
}

std::unique_ptr<ObserverContext> hear_nothing(const RecordFunction&) { return nullptr; }

void hear_no_end(const RecordFunction&, ObserverContext*) {}

// Whether `Get` answers this thread's own state, laid out as above: seen by changing it, and changing it back.
bool self_test(const Library& torch, Get get) {
  auto* const is_enabled = torch.symbol<bool()>("_ZN2at23isRecordFunctionEnabledEv");
  auto* const enable = torch.symbol<void(bool)>("_ZN2at20enableRecordFunctionEb");
  auto* const add = torch.symbol<Handle(Callback)>("_ZN2at22addThreadLocalCallbackENS_22RecordFunctionCallbackE");
  auto* const remove = torch.symbol<void(Handle)>("_ZN2at14removeCallbackEm");
  if (is_enabled == nullptr || enable == nullptr || add == nullptr || remove == nullptr) return false;

  const ThreadCallbacks& now = get();
  const bool enabled = is_enabled();
  const auto length = [&] { return now.end - now.begin; };
  const auto before = length();
  bool right = before >= 0 && now.end <= now.end_of_storage && now.enabled == enabled;
  enable(!enabled);
  right = right && now.enabled != enabled && length() == before;
  enable(enabled);
  Callback callback;
  callback.start = hear_nothing;
  callback.end = hear_no_end;
  const Handle handle = add(callback);  // which is for no scope
  right = right && length() >= before + static_cast<std::ptrdiff_t>(sizeof(Callback)) && now.enabled == enabled;
  remove(handle);
  return right && length() == before && now.enabled == enabled && &get() == &now;
}

}  // namespace

bool QuietGuards::attach(std::string* why) {
  const std::optional<Library> torch = Library::find_loaded("libtorch_cpu.so");
  const Set set = torch ? torch->symbol<std::remove_pointer_t<Set>>(kSet) : nullptr;
  const Get get = torch ? torch->symbol<std::remove_pointer_t<Get>>("_ZN2at24get_record_function_tls_Ev") : nullptr;
  if (set == nullptr || get == nullptr || !self_test(*torch, get)) {
    *why = "this torch keeps the callbacks of a thread in another way than is known";
    return false;
  }
  g_set.store(set);
  g_get.store(get);
  patch_ = GotPatch::install(kSet, reinterpret_cast<void*>(&set_unless_same), [](std::string_view path) {
    return path.substr(path.rfind('/') + 1).starts_with("libtorch_cpu");
  });
  if (patch_.replaced() == 0) *why = "this torch does not call at::set_record_function_tls_ through its symbol table";
  return patch_.replaced() != 0;
}

void QuietGuards::change_nothing() {
  if (const Get get = g_get.load(); get != nullptr) set_unless_same(get());
}

}  // namespace leadline::torch
