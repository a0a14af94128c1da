#include "providers/torch/operator_names.h"

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "base/library.h"

namespace leadline::torch {
namespace {

// c10::OpRegistrationListener: its virtual table is what torch calls. Handles of operators are not looked at.
struct Listener {
  virtual ~Listener() = default;
  virtual void registered(const void* op) noexcept = 0;
  virtual void deregistered(const void* op) noexcept = 0;
};

// c10::RegistrationHandleRAII: its end would take the listener away.
struct Registration {
  std::function<void()> on_destruction;
};

// An address can mean another name only once an operator has gone and another has come since, and torch tells of that
// one before anybody can call it. So programs that only add operators never change the number.
struct Generations final : Listener {
  void registered(const void*) noexcept override {
    told.store(true, std::memory_order_relaxed);
    if (gone.load(std::memory_order_relaxed) && gone.exchange(false, std::memory_order_relaxed))
      OperatorNames::begin_generation();
  }
  void deregistered(const void*) noexcept override { gone.store(true, std::memory_order_relaxed); }

  std::atomic<bool> told{false};
  std::atomic<bool> gone{false};
};

// torch keeps the listener until the process ends, so it costs nothing to begin again.
bool register_listener() {
  const std::optional<Library> library = Library::find_loaded("libtorch_cpu.so");
  if (!library) return false;
  auto* const dispatcher = library->symbol<void*()>("_ZN3c1010Dispatcher13realSingletonEv");
  auto* const add = library->symbol<Registration(void*, std::unique_ptr<Listener>)>(
      "_ZN3c1010Dispatcher23addRegistrationListenerESt10unique_ptrINS_22OpRegistrationListenerESt14default_deleteIS2_"
      "EE");
  if (dispatcher == nullptr || add == nullptr) return false;
  auto generations = std::make_unique<Generations>();
  const Generations& kept = *generations;
  static auto* const registration = new Registration(add(dispatcher(), std::move(generations)));  // never destroyed
  // torch tells of all operators that there are at once: who was told of none is not listened to as is believed here.
  return registration->on_destruction != nullptr && kept.told.load(std::memory_order_relaxed);
}

}  // namespace

bool OperatorNames::follow() noexcept {
  try {
    static const bool followed = register_listener();
    return followed;
  } catch (...) {
    return false;
  }
}

}  // namespace leadline::torch
