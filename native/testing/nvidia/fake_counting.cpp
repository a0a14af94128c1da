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
    "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "gpu__time_duration.sum",
};

}  // namespace

std::size_t fake_counter(const std::string& name) {
  return static_cast<std::size_t>(std::find(kNames.begin(), kNames.end(), name) - kNames.begin());
}

std::int64_t FakeCounting::ran(std::int32_t device, const std::string& kernel, std::int64_t start_ns,
                               std::int64_t end_ns, void* context) {
  if (const auto set = rates.find(kernel); set != rates.end()) ran_.push_back({device, start_ns, end_ns, set->second});
  return replay(context, kernel, end_ns - start_ns);
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
    made.values[11] += r.wavefronts * ns;
    made.values[12] += r.conflicts * ns;
  }
  made.values[1] = busy > 0 ? room / busy : 0;
  return made;
}

// A kernel alone on the device.
std::int64_t FakeCounting::replay(void* context, const std::string& kernel, std::int64_t duration_ns) {
  const auto found = contexts.find(context);
  if (found == contexts.end() || !found->second.open) return 0;
  Ranges& of = found->second;
  const auto set = rates.find(kernel);
  const FakeRates r = set == rates.end() ? FakeRates{} : set->second;
  const auto ns = static_cast<double>(duration_ns);
  Reading made;
  made.values = {r.active,
                 r.warps,
                 r.active * (100 - r.warps) / 100,
                 r.tensor,
                 r.tensor,
                 r.dram,
                 r.bytes * ns,
                 r.l2,
                 r.issue,
                 r.instructions * ns,
                 r.instructions * ns,
                 r.wavefronts * ns,
                 r.conflicts * ns,
                 r.requests * ns,
                 r.sectors * ns,
                 ns};
  if (of.ranges.size() < of.most) of.ranges.push_back(made);
  return static_cast<std::int64_t>(of.passes - 1) * duration_ns;
}

std::size_t FakeCounting::passes(const std::vector<std::string>& names, cupti::ProfilerType type) const {
  std::size_t of_multiprocessors = 0;
  std::size_t of_caches = 0;
  for (const std::string& name : names) {
    if (fake_counter(name) == kMetrics || unknown.contains(name)) return 0;
    if (name.starts_with("l1tex__")) ++of_caches;
    if (name.starts_with("l1tex__t_") && type == cupti::ProfilerType::kPmSampling) return 0;
    if (name.starts_with("sm__") && name.find("realtime") == std::string::npos) ++of_multiprocessors;
  }
  if (type == cupti::ProfilerType::kRanges) return 1 + of_caches;
  return of_multiprocessors > multiprocessors ? 2 : 1;
}

}  // namespace leadline::testing
