// Waiting until the device has answered for what the program launched.
#pragma once

#include <chrono>
#include <cstdint>
#include <thread>

#include "gpu/correlation_map.h"

namespace leadline::gpu {

// `fetch` hands over the records that are there, at least once; false: no more can come. True: every launch has its
// record. False: some had none within `timeout_s`.
template <class Fetch>
bool await_records(const CorrelationMap& launches, double timeout_s, const Fetch& fetch) {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + std::chrono::duration<double>(timeout_s);
  do {
    if (!fetch()) return false;
    if (launches.outstanding() == 0) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  } while (Clock::now() < until);
  return false;
}

// The same while work keeps finishing: what does not end, or gives no record, must not hold up the program.
template <class Fetch>
bool await_work(const CorrelationMap& launches, double timeout_s, const Fetch& fetch) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kWithoutProgress{100};
  const auto until = Clock::now() + std::chrono::duration<double>(timeout_s);
  std::uint64_t outstanding = launches.outstanding();
  auto last_change = Clock::now();
  bool more = true;
  const auto fetch_more = [&] { return more = fetch(); };
  while (more && outstanding > 0 && Clock::now() < until && Clock::now() - last_change < kWithoutProgress) {
    await_records(launches, 0.002, fetch_more);
    const std::uint64_t now = launches.outstanding();
    if (now != outstanding) last_change = Clock::now();
    outstanding = now;
  }
  return outstanding == 0;
}

}  // namespace leadline::gpu
