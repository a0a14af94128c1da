// Without CUPTI: GPU time of regions, from CUDA events on the default stream around each region.
//
// Measures what the default stream did between begin and end. Work on streams that do not synchronise with it is not in
// it, and the detail of the time says so. Regions inside a stream capture are left alone. Bounded: at most kOpen
// regions wait for their events; more are counted as a loss.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <vector>

#include "leadline/monitor.h"
#include "providers/nvidia/driver.h"

namespace leadline::nvidia {

class RegionTimer {
 public:
  static constexpr std::size_t kOpen = 4096;

  explicit RegionTimer(const Driver& driver) : driver_(driver) {}
  ~RegionTimer();
  RegionTimer(const RegionTimer&) = delete;
  RegionTimer& operator=(const RegionTimer&) = delete;

  bool start();
  // Reads the events that have completed; others wait for the next call.
  void collect();
  void stop();
  std::uint64_t timed() const noexcept { return timed_; }

 private:
  struct Pending {
    cuda::Event begin = nullptr;
    cuda::Event end = nullptr;
    leadline_context context = 0;
    std::int64_t begin_ns = 0;
    std::int32_t device = 0;
  };
  static void on_region(const leadline_event* event, void* user);
  void begin(const leadline_event& event);
  void end();
  cuda::Event record();
  void give_back(cuda::Event event);

  const Driver& driver_;
  leadline_subscription subscription_ = 0;
  std::mutex mutex_;
  std::vector<Pending> pending_;
  std::vector<cuda::Event> spare_;
  std::uint64_t timed_ = 0;
};

}  // namespace leadline::nvidia
