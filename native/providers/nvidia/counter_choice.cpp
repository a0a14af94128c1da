#include "providers/nvidia/counter_choice.h"

#include <algorithm>

namespace leadline::nvidia {
namespace {

using gpu::CountedMetric;
using M = MetricKind;
constexpr auto kOfInterval = gpu::CounterMeaning::kShareOfInterval;
constexpr auto kOfWork = gpu::CounterMeaning::kShareOfWork;
constexpr auto kAmount = gpu::CounterMeaning::kAmount;

// CUPTI's shares are percent.
void percent(const double* in, double* out) { out[0] = in[0] / 100; }
void two_percents(const double* in, double* out) {
  out[0] = in[0] / 100;
  out[1] = in[1] / 100;
}
void percent_and_amount(const double* in, double* out) {
  out[0] = in[0] / 100;
  out[1] = in[1];
}
void amount(const double* in, double* out) { out[0] = in[0]; }
// Room that is free while a multiprocessor works, of all cycles: what is taken, of those in which it works.
void from_free_room(const double* in, double* out) {
  const double active = in[1];
  out[0] = active > 0 ? std::max(0.0, active - in[0]) / active : 0;
  out[1] = active / 100;
}

void two_amounts(const double* in, double* out) {
  out[0] = in[0];
  out[1] = in[1];
}

constexpr const char* kActive = "sm__cycles_active.avg.pct_of_peak_sustained_elapsed";

// By the order of a result: what most people ask for first, since a chip may not count all of them at once.
const gpu::CounterRecipes& recipes() {
  using Metrics = std::vector<CountedMetric>;
  static const auto& occupancy = *new Metrics{{M::kOccupiedTime, kOfWork}, {M::kActiveTime, kOfInterval}};
  static const auto& tensor = *new Metrics{{M::kTensorTime, kOfInterval}};
  static const auto& issue = *new Metrics{{M::kIssueTime, kOfInterval}, {M::kWarpInstructions, kAmount}};
  static const auto& made = *new gpu::CounterRecipes{
      {"occupancy",
       {{{"sm__warps_active.avg.pct_of_peak_sustained_active", kActive}, occupancy, two_percents},
        {{"tpc__warps_inactive_sm_active_realtime.avg.pct_of_peak_sustained_elapsed", kActive},
         occupancy,
         from_free_room}}},
      {"dram",
       {{{"dram__throughput.avg.pct_of_peak_sustained_elapsed", "dram__bytes.sum"},
         {{M::kDramTime, kOfInterval}, {M::kDramBytes, kAmount}},
         percent_and_amount},
        {{"dram__bytes.sum"}, {{M::kDramBytes, kAmount}}, amount}}},
      {"tensor",
       {{{"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"}, tensor, percent},
        {{"sm__pipe_tensor_cycles_active_realtime.avg.pct_of_peak_sustained_elapsed"}, tensor, percent},
        // Turing counts them together with 16-bit arithmetic.
        {{"sm__pipe_shared_cycles_active.avg.pct_of_peak_sustained_elapsed"}, tensor, percent}}},
      {"l2", {{{"lts__t_sectors.avg.pct_of_peak_sustained_elapsed"}, {{M::kL2Time, kOfInterval}}, percent}}},
      {"issue",
       {{{"sm__inst_executed.avg.pct_of_peak_sustained_elapsed", "sm__inst_executed.sum"}, issue, percent_and_amount},
        {{"sm__inst_executed_realtime.avg.pct_of_peak_sustained_elapsed", "sm__inst_executed_realtime.sum"},
         issue,
         percent_and_amount}}},
      {"shared",
       {{{"l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"},
         {{M::kSharedWavefronts, kAmount}, {M::kBankConflicts, kAmount}},
         two_amounts}}},
      {"global",
       {{{"l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"},
         {{M::kGlobalRequests, kAmount}, {M::kGlobalSectors, kAmount}},
         two_amounts}}},
  };
  return made;
}

}  // namespace

const std::vector<std::string>& counter_names() {
  static const auto& names = *[] {
    auto* made = new std::vector<std::string>;
    for (const auto& [name, ways] : recipes()) made->push_back(name);
    return made;
  }();
  return names;
}

const std::vector<CounterRecipe>& counter_recipes(const std::string& name) { return gpu::recipes_of(recipes(), name); }

CounterChoice choose_counters(const std::vector<std::string>& asked,
                              const std::function<std::size_t(const std::vector<const char*>&)>& passes) {
  return gpu::choose_counters(recipes(), asked, passes);
}

}  // namespace leadline::nvidia
