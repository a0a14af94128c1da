#include "providers/torch/in_flight.h"

#include <array>
#include <atomic>
#include <cstring>

namespace leadline::torch {
namespace {

constexpr char kNamespace[] = "c10d::";

// Set by a thread for its own use.
thread_local uint64_t t_current = 0;
thread_local bool t_described = false;

struct Work {
  std::atomic<const void*> token{nullptr};
  std::atomic<uint64_t> number{0};
};
// More at once are recorded without an end.
std::array<Work, 64> g_works;
std::atomic<uint32_t> g_open{0};

}  // namespace

InFlight::InFlight(uint64_t number) noexcept : number_(number), around_(t_current) {
  if (number_ == 0) return;
  t_current = number_;
}

void InFlight::end() noexcept {
  if (number_ == 0) return;
  flight_recorder().returned(number_);
  t_current = around_;
}

uint64_t InFlight::current() noexcept { return t_current; }

uint64_t InFlight::begin(const char* operator_name) noexcept {
  if (std::strncmp(operator_name, kNamespace, sizeof kNamespace - 1) != 0) return 0;
  t_described = false;
  return flight_recorder().begin(operator_name);
}

uint64_t InFlight::describe(const FlightRecorder::Where& where) noexcept {
  const bool own = t_current == 0 || t_described;  // several in one call: each has its own number
  const uint64_t number = own ? flight_recorder().begin(where.collective) : t_current;
  flight_recorder().describe(number, where);
  t_described = true;
  return own ? number : 0;
}

void InFlight::work_began(const void* token) noexcept {
  if (t_current == 0) return;
  for (Work& work : g_works) {
    const void* none = nullptr;
    if (work.token.load(std::memory_order_relaxed) != nullptr) continue;
    if (!work.token.compare_exchange_strong(none, token, std::memory_order_acq_rel)) continue;
    work.number.store(t_current, std::memory_order_release);
    g_open.fetch_add(1, std::memory_order_release);
    return;
  }
}

void InFlight::work_ended(const void* token) noexcept {
  if (g_open.load(std::memory_order_acquire) == 0) return;
  for (Work& work : g_works) {
    if (work.token.load(std::memory_order_acquire) != token) continue;
    flight_recorder().done(work.number.load(std::memory_order_acquire));
    work.token.store(nullptr, std::memory_order_release);
    g_open.fetch_sub(1, std::memory_order_release);
    return;
  }
}

}  // namespace leadline::torch
