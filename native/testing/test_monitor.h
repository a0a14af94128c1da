// The monitor's C functions for tests of providers: places are paths of names, measures are summed per path, losses
// kept.
//
// Time comes from a function a test sets. Everything is behind one mutex, so thread sanitizer sees only the provider's
// races.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "leadline/monitor.h"

namespace leadline::testing {

class TestMonitor {
 public:
  static void reset(std::int64_t (*clock)());
  // Events go nowhere: neither lock nor memory is taken for them, and losses are counted without their details.
  static void ignore_events(bool on);
  // One line per path, device, stream and metric: "a;b;kernel | device 0 stream 7 | gpu_time count 2 sum 2000", sorted.
  // Only the metrics named (all, when none is).
  static std::string folded(const std::vector<std::string>& metrics = {});
  static std::map<std::string, std::uint64_t> losses();
  static std::string loss_detail(const std::string& kind);
  // Single events in the order they came: "begin cudaLaunchKernel corr 1", "end ...", one per line.
  static std::vector<leadline_gpu_api_event> api_events(leadline_phase phase);
  static std::vector<std::string> module_events();
  // Details of activity by name, and of regions by name.
  static std::string detail_of(const std::string& name);
  static std::uint64_t activities();
  static std::size_t places();
  static std::size_t subscribers();
};

// The program's own regions, on the calling thread.
class Region {
 public:
  explicit Region(const char* name, leadline_region_kind kind = LEADLINE_REGION_USER);
  ~Region();
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

 private:
  const char* name_;
  leadline_region_kind kind_;
};

}  // namespace leadline::testing
