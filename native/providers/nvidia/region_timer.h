// Without CUPTI: GPU time of regions, from CUDA events on the default stream around each region.
//
// Measures what the default stream did between begin and end. Work on streams that do not synchronise with it is not in
// it, and the detail of the time says so. Regions inside a stream capture are left alone. Bounded: at most kOpen
// regions wait for their events; more are counted as a loss.
#pragma once

#include <array>
#include <atomic>
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

  bool start(bool paused);
  // Regions that begin or end in between are not timed; those that had ended are still read.
  void pause();
  void resume();
  // Reads the events that have completed; others wait for the next call.
  void collect();
  void stop();
  // In the child of a fork: calls neither the driver nor the monitor from now on, whatever regions begin. Its
  // subscription is handed over.
  leadline_subscription abandon() noexcept;
  std::uint64_t timed() const noexcept { return timed_; }

  struct OpenRegions;

 private:
  struct Pending {
    cuda::Event begin = nullptr;
    cuda::Event end = nullptr;
    leadline_context context = 0;
    std::int64_t begin_ns = 0;
    std::int32_t device = 0;
  };
  bool listen();
  static void on_region(const leadline_event* event, void* user);
  void begin(const leadline_event& event);
  void end();
  cuda::Event record();
  void forget(OpenRegions& of);
  void give_back(cuda::Event event);

  const Driver& driver_;
  std::atomic<bool> abandoned_{false};
  std::atomic<std::uint32_t> stretch_{0};  // between two pauses
  leadline_subscription subscription_ = 0;
  std::mutex mutex_;
  std::vector<Pending> pending_;
  std::vector<cuda::Event> spare_;
  std::uint64_t timed_ = 0;
};

}  // namespace leadline::nvidia
