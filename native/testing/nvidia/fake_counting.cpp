#include "testing/nvidia/fake_counting.h"

#include <algorithm>

namespace leadline::testing {
namespace {

constexpr std::array<const char*, FakeCounting::kMetrics> kNames{
    "sm__cycles_active.avg.pct_of_peak_sustained_elapsed",
    "sm__warps_active.avg.pct_of_peak_sustained_active",
    "tpc__warps_inactive_sm_active_realtime.avg.pct_of_peak_sustained_elapsed",
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
    "sm__pipe_tensor_cycles_active_realtime.avg.pct_of_peak_sustained_elapsed",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "dram__bytes.sum",
    "lts__t_sectors.avg.pct_of_peak_sustained_elapsed",
    "sm__inst_executed.avg.pct_of_peak_sustained_elapsed",
    "sm__inst_executed.sum",
    "sm__inst_executed_realtime.sum",
};

}  // namespace

std::size_t fake_counter(const std::string& name) {
  return static_cast<std::size_t>(std::find(kNames.begin(), kNames.end(), name) - kNames.begin());
}

void FakeCounting::ran(std::int32_t device, const std::string& kernel, std::int64_t start_ns, std::int64_t end_ns) {
  if (const auto set = rates.find(kernel); set != rates.end()) ran_.push_back({device, start_ns, end_ns, set->second});
}

FakeCounting::Reading FakeCounting::reading(std::int32_t device, std::int64_t start_ns, std::int64_t end_ns) const {
  Reading made;
  const auto whole = static_cast<double>(end_ns - start_ns);
  double busy = 0;
  double room = 0;
  for (const Ran& one : ran_) {
    const auto ns =
        static_cast<double>(std::max<std::int64_t>(0, std::min(end_ns, one.end_ns) - std::max(start_ns, one.start_ns)));
    if (one.device != device || ns <= 0) continue;
    const FakeRates& r = one.rates;
    busy += ns;
    room += r.warps * ns;
    const double part = ns / whole;
    made.values[0] += r.active * part;
    made.values[2] += r.active * (100 - r.warps) / 100 * part;
    made.values[3] += r.tensor * part;
    made.values[4] += r.tensor * part;
    made.values[5] += r.dram * part;
    made.values[6] += r.bytes * ns;
    made.values[7] += r.l2 * part;
    made.values[8] += r.issue * part;
    made.values[9] += r.instructions * ns;
    made.values[10] += r.instructions * ns;
  }
  made.values[1] = busy > 0 ? room / busy : 0;
  return made;
}

std::size_t FakeCounting::passes(const std::vector<std::string>& names) const {
  std::size_t of_multiprocessors = 0;
  for (const std::string& name : names) {
    if (fake_counter(name) == kMetrics || unknown.contains(name)) return 0;
    if (name.starts_with("sm__") && name.find("realtime") == std::string::npos) ++of_multiprocessors;
  }
  return of_multiprocessors > multiprocessors ? 2 : 1;
}

}  // namespace leadline::testing
