// Busy, idle and overlap of one device, computed while records arrive, in bounded memory.
//
// Records come in any order, so work waits until the watermark has passed its begin: whoever knows that nothing older
// is on its way any more sweeps up to there. What comes later than that all the same, or has to be swept because kMost
// pieces wait, is counted as late with its time, by which busy time is too short and idle time too long; its own GPU
// time is not concerned. Single-threaded.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "leadline/monitor.h"

namespace leadline::gpu {

// kUnmeasured: a pause, or work that was launched in one; neither busy nor idle where nothing measured runs.
enum class WorkClass : std::uint8_t { kCompute = 0, kCopy = 1, kCommunication = 2, kUnmeasured = 3 };
inline constexpr std::size_t kWorkClasses = 4;

struct DeviceTotals {
  std::int64_t first_ns = 0;  // begin of the first and end of the last piece of work
  std::int64_t last_ns = 0;
  std::int64_t busy_ns = 0;  // any work
  std::int64_t idle_ns = 0;  // no work, between the first and the last or a pause
  std::int64_t compute_ns = 0;
  std::int64_t copy_ns = 0;
  std::int64_t communication_ns = 0;
  std::int64_t copy_under_compute_ns = 0;           // copies hidden behind kernels
  std::int64_t communication_under_compute_ns = 0;  // collectives hidden behind kernels
  std::uint64_t late = 0;                           // pieces of work that came after their time was swept
  std::int64_t late_ns = 0;                         // of their time, what had been swept
};

// Its members as those of a JSON object, for the devices table; first and last work are left out.
std::string totals_json(const DeviceTotals& totals);
// A JSON object and the totals of a device among its members; as it is where the device has none.
std::string with_totals(std::string object, const std::map<std::int32_t, DeviceTotals>& totals, std::int32_t device);

struct Interval {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  WorkClass work_class = WorkClass::kCompute;
  leadline_context context = 0;  // of the launch
  std::uint32_t thread = 0;      // who launched
  std::int64_t launched_ns = 0;
};

class DeviceTimeline {
 public:
  static constexpr std::size_t kMost = 1u << 19;  // pieces that wait

  // Called with every gap [from_ns, to_ns) and the work that ended it; where a pause did, the work before it.
  using IdleGap = std::function<void(std::int64_t from_ns, std::int64_t to_ns, const Interval& next)>;
  explicit DeviceTimeline(IdleGap on_gap) : on_gap_(std::move(on_gap)) {}

  void add(const Interval& interval);
  // Sweeps what began before `time_ns`: nothing that old is on its way any more.
  void sweep_before(std::int64_t time_ns);
  // Sweeps everything, at the end of a run.
  void finish();
  const DeviceTotals& totals() const noexcept { return totals_; }

 private:
  void sort();
  void sweep(std::size_t count);
  void advance(std::int64_t to_ns);

  IdleGap on_gap_;
  std::vector<Interval> waiting_;
  std::size_t swept_ = 0;   // of waiting_, at its begin
  std::size_t sorted_ = 0;  // of waiting_, at its begin
  std::int64_t oldest_ns_ = INT64_MAX;
  DeviceTotals totals_;
  std::int64_t now_ns_ = 0;  // everything before is accounted for
  bool started_ = false;
  // Ends of the work running at now_ns_, per class: only the latest end counts for a union.
  std::array<std::int64_t, kWorkClasses> running_until_ns_{};
  Interval last_measured_;
};

}  // namespace leadline::gpu
