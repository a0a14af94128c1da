// What measuring says of the devices and of itself.
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "providers/amd/measuring.h"

namespace leadline::amd {

void Measuring::describe_devices() const {
  if (!options_.describe_device || !agents_) return;
  const std::map<std::int32_t, gpu::DeviceTotals> totals = fold_.totals();
  for (const GpuAgent& gpu : agents_->gpus()) {
    std::string detail = gpu::with_totals(device_detail_json(gpu), totals, gpu.info.index);
    options_.describe_device({gpu.info.index, gpu.info.name, gpu.info.uuid, gpu.info.memory_bytes, std::move(detail)});
  }
}

Details Measuring::details() const {
  const std::lock_guard lock(fold_mutex_);
  const gpu::FoldCounters& c = fold_.counters();
  Details details;
  details.source = source_.name();
  details.sdk_path = source_.path();
  details.sdk_version = source_.version();
  details.late = source_.late();
  details.clock_uncertainty_ns = clock_.uncertainty_ns;
  details.calls_followed = source_.names().calls.followed().size();
  details.calls = callbacks_.calls().count();
  details.launches = callbacks_.launches();
  details.requests = callbacks_.requests();
  details.records = c.records;
  details.unattributed = c.unattributed;
  details.dropped = dropped_;
  details.outstanding = tables_.launches.outstanding();
  details.kernels = source_.kernels().size();
  details.graph_nodes = c.graph_nodes;
  details.graph_nodes_unknown = c.graph_nodes_unknown;
  details.fold_ns = fold_ns_;
  details.held_bytes = tables_.launches.held_bytes();
  describe_samples(details);
  return details;
}

}  // namespace leadline::amd
