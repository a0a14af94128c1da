// Who listens: coming, going, and waiting for those that are inside.
//
// The lock is held for a moment and never while waiting, so a callback may register and unregister whatever it likes.
// Who unregisters inside a callback does not wait: the other thread may be waiting for it in turn. Such a place is
// used again only after somebody has waited outside.
#include <unistd.h>

#include "base/membarrier.h"
#include "monitor/monitor.h"
#include "monitor/this_thread.h"

namespace leadline {
namespace {

bool inside_event() noexcept { return t_state != nullptr && (t_state->busy.load(std::memory_order_relaxed) & 1) != 0; }

}  // namespace

leadline_status Monitor::add(uint32_t domains, Subscriber* subscriber, leadline_callback callback, void* user,
                             leadline_subscription* out) noexcept {
  if (domains == 0 || out == nullptr || (subscriber == nullptr && callback == nullptr)) return LEADLINE_ERROR_INVALID;
  if (place(domains, subscriber, callback, user, out)) return LEADLINE_OK;
  if (!reclaim()) return LEADLINE_ERROR_FULL;
  return place(domains, subscriber, callback, user, out) ? LEADLINE_OK : LEADLINE_ERROR_FULL;
}

bool Monitor::place(uint32_t domains, Subscriber* subscriber, leadline_callback callback, void* user,
                    leadline_subscription* out) noexcept {
  const std::lock_guard lock(change_);
  for (const Slot& slot : slots_) {
    // Its state hangs on every thread and every level of the path: there is room for one.
    if (subscriber != nullptr && slot.subscriber != nullptr) return false;
  }
  for (uint32_t i = 0; i < kMaxSubscribers; ++i) {
    Slot& slot = slots_[i];
    if (slot.domains.load(std::memory_order_relaxed) != 0 || slot.leaving) continue;
    slot.subscriber = subscriber;
    slot.callback = callback;
    slot.user = user;
    ++slot.generation;
    slot.domains.store(domains, std::memory_order_release);
    if (used_.load(std::memory_order_relaxed) <= i) used_.store(i + 1, std::memory_order_release);
    refresh_active();
    *out = (slot.generation << 8) | (i + 1);
    return true;
  }
  return false;
}

leadline_status Monitor::subscribe(uint32_t domains, Subscriber* subscriber, leadline_subscription* out) noexcept {
  return add(domains, subscriber, nullptr, nullptr, out);
}

leadline_status Monitor::subscribe(uint32_t domains, leadline_callback callback, void* user,
                                   leadline_subscription* out) noexcept {
  return add(domains, nullptr, callback, user, out);
}

void Monitor::refresh_active() noexcept {
  uint32_t all = 0;
  for (const Slot& slot : slots_) all |= slot.domains.load(std::memory_order_relaxed);
  const auto sole = [this](uint32_t domain) {
    const Slot* found = nullptr;
    for (const Slot& slot : slots_) {
      if ((slot.domains.load(std::memory_order_relaxed) & domain) == 0) continue;
      if (found != nullptr) return static_cast<Subscriber*>(nullptr);
      found = &slot;
    }
    return found == nullptr ? nullptr : found->subscriber;
  };
  sole_.store(sole(LEADLINE_DOMAIN_OPERATOR), std::memory_order_seq_cst);
  sole_of_memory_.store(sole(LEADLINE_DOMAIN_MEMORY), std::memory_order_seq_cst);
  active_.store(all, std::memory_order_release);
}

bool Monitor::set_domains(leadline_subscription subscription, uint32_t domains) noexcept {
  const uint32_t index = (subscription & 0xff) - 1;
  if (index >= kMaxSubscribers) return false;
  const std::lock_guard lock(change_);
  Slot& slot = slots_[index];
  if (slot.generation != subscription >> 8 || slot.domains.load(std::memory_order_relaxed) == 0) return false;
  slot.leaving = domains == 0;
  slot.domains.store(domains, std::memory_order_seq_cst);
  refresh_active();
  return true;
}

leadline_status Monitor::change_domains(leadline_subscription subscription, uint32_t domains) noexcept {
  if (domains == 0 || !set_domains(subscription, domains)) return LEADLINE_ERROR_INVALID;
  if (!inside_event()) wait_until_idle();
  return LEADLINE_OK;
}

leadline_status Monitor::unsubscribe(leadline_subscription subscription) noexcept {
  if (!set_domains(subscription, 0)) return LEADLINE_ERROR_INVALID;
  reclaim();
  return LEADLINE_OK;
}

// Frees the places of subscriptions that have ended. False when that cannot be done now.
bool Monitor::reclaim() noexcept {
  if (inside_event()) return false;
  uint32_t left[kMaxSubscribers] = {};
  {
    const std::lock_guard lock(change_);
    for (uint32_t i = 0; i < kMaxSubscribers; ++i) left[i] = slots_[i].leaving ? slots_[i].generation : 0;
  }
  wait_until_idle();
  const std::lock_guard lock(change_);
  for (uint32_t i = 0; i < kMaxSubscribers; ++i) {
    Slot& slot = slots_[i];
    if (left[i] == 0 || !slot.leaving || slot.generation != left[i]) continue;
    slot.leaving = false;
    slot.subscriber = nullptr;
    slot.callback = nullptr;
  }
  return true;
}

void Monitor::wait_until_idle() noexcept {
  if (!fence_needed_) membarrier();
  for (ThreadState* state = threads_.load(std::memory_order_acquire); state != nullptr; state = state->next) {
    const uint32_t number =
        state->busy.load(std::memory_order_seq_cst);  // pairs with Busy where there is no membarrier
    if (state == t_state || (number & 1) == 0) continue;
    while (state->busy.load(std::memory_order_acquire) == number) usleep(50);
  }
}

void Monitor::forget_subscriber_state() noexcept {
  version_.fetch_add(kGenerations + kForgets, std::memory_order_seq_cst);
  if (!inside_event()) wait_until_idle();
}

void Monitor::finalize() noexcept {
  for (uint32_t i = 0; i < kMaxSubscribers; ++i) {
    leadline_subscription there = 0;
    {
      const std::lock_guard lock(change_);
      if (slots_[i].domains.load(std::memory_order_relaxed) != 0) there = (slots_[i].generation << 8) | (i + 1);
    }
    if (there != 0) unsubscribe(there);
  }
  forget_open_scopes();
}

}  // namespace leadline
