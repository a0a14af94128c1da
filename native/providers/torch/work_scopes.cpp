#include "providers/torch/work_scopes.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "monitor/monitor.h"

namespace leadline::torch {
namespace {

constexpr size_t kMostInside = 8;  // open at once inside operators of one thread; further ones end as torch ends them
constexpr size_t kMostUnderWay = 1024;  // works that go on after their operator

struct Inside {
  std::array<const void*, kMostInside> tokens{};
  size_t count = 0;
  size_t operators = 0;
};
thread_local Inside t_inside;

std::array<std::atomic<const void*>, kMostUnderWay> g_under_way{};
std::atomic<size_t> g_count{0};

bool exchange(const void* from, const void* to) noexcept {
  return std::any_of(g_under_way.begin(), g_under_way.end(), [from, to](std::atomic<const void*>& one) {
    const void* expected = from;
    return one.load(std::memory_order_relaxed) == from &&
           one.compare_exchange_strong(expected, to, std::memory_order_acq_rel);
  });
}

bool remember(const void* token) noexcept {
  if (!exchange(nullptr, token)) return false;
  g_count.fetch_add(1, std::memory_order_release);
  return true;
}

bool forget(const void* token) noexcept {
  if (g_count.load(std::memory_order_acquire) == 0 || !exchange(token, nullptr)) return false;
  g_count.fetch_sub(1, std::memory_order_release);
  return true;
}

}  // namespace

size_t WorkScopes::enter() noexcept {
  if (t_inside.operators++ == 0) t_inside.count = 0;
  return t_inside.count;
}

void WorkScopes::leave(size_t entered) noexcept {
  if (t_inside.operators > 0) --t_inside.operators;
  while (t_inside.count > entered) {
    const void* const token = t_inside.tokens[--t_inside.count];
    if (!remember(token)) continue;
    leadline_event event{};
    event.domain = LEADLINE_DOMAIN_REGION;
    event.phase = LEADLINE_END;
    event.token = token;
    Monitor::instance().emit(event);
  }
}

void WorkScopes::began(const void* token) noexcept {
  forget(token);  // of one whose end was not heard: torch uses its memory again
  if (t_inside.operators == 0 || t_inside.count == kMostInside) return;
  t_inside.tokens[t_inside.count++] = token;
}

bool WorkScopes::ended(const void* token) noexcept {
  auto* const end = t_inside.tokens.begin() + t_inside.count;
  auto* const found = std::find(t_inside.tokens.begin(), end, token);
  if (found != end) {
    std::copy(found + 1, end, found);
    --t_inside.count;
    return true;
  }
  return !forget(token);
}

}  // namespace leadline::torch
