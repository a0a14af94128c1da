// For the child of a fork: what other threads may have been in the middle of changing is not looked at again.
#pragma once

#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

namespace leadline {

// A new object in the place of one that may be torn, so that it can be neither used nor destroyed. What it held is
// given up, but stays reachable, so that leak checkers know that it is meant.
template <class T, class... Args>
void abandon(T& object, Args&&... args) noexcept {
  struct Grave {
    Grave* next;
    alignas(T) unsigned char remains[sizeof(T)];
  };
  static Grave* graves = nullptr;
  if (auto* grave = new (std::nothrow) Grave{graves, {}}; grave != nullptr) {
    std::memcpy(grave->remains, static_cast<const void*>(std::addressof(object)), sizeof(T));
    graves = grave;
  }
  std::construct_at(std::addressof(object), std::forward<Args>(args)...);
}

// A lock that another thread may have held. False: one did, and what it guards may be torn.
inline bool renew(std::mutex& mutex) noexcept {
  if (mutex.try_lock()) {
    mutex.unlock();
    return true;
  }
  std::construct_at(std::addressof(mutex));
  return false;
}

}  // namespace leadline
