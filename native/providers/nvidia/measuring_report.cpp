// What a measuring says of itself and of the devices.
#include "providers/nvidia/measuring.h"

namespace leadline::nvidia {

void Measuring::describe_devices() const {
  if (!options_.describe_device) return;
  const bool mps = mps_in_use();
  const std::map<std::int32_t, gpu::DeviceTotals> totals = fold_.totals();
  for (const gpu::DeviceInfo& device : devices_) {
    std::string detail = gpu::with_totals(device_detail_json(device, mps), totals, device.index);
    options_.describe_device({device.index, device.name, device.uuid, device.memory_bytes, std::move(detail)});
  }
}

Details Measuring::details() const {
  const std::lock_guard lock(fold_mutex_);
  const gpu::FoldCounters& c = fold_.counters();
  Details details;
  details.cupti_path = library_.path();
  details.cupti_version = cupti_version_name(version_);
  details.driver_cuda =
      std::to_string(driver_.cuda_version() / 1000) + "." + std::to_string(driver_.cuda_version() % 1000 / 10);
  details.subscription = to_string(subscription_.mode());
  details.clock_uncertainty_ns = clock_.uncertainty_ns;
  details.calls_followed = calls_.followed();
  details.calls = callbacks_.calls();
  details.records = c.records;
  details.unattributed = c.unattributed;
  details.dropped = dropped_;
  details.outstanding = tables_.launches.outstanding();
  details.graph_nodes = c.graph_nodes;
  details.graph_nodes_unknown = c.graph_nodes_unknown;
  details.vendor_overhead_ns = c.vendor_overhead_ns;
  details.fold_ns = fold_ns_;
  details.held_bytes = (buffers_ ? buffers_->held_bytes() : 0) + tables_.launches.held_bytes();
  details.cupti_finalized = finalized_.load();
  details.device_lost = fatal_.load();
  if (sampler_) details.instructions = sampler_->details();
  if (counters_) details.counters = counters_->details();
  if (replay_) details.replay = replay_->details();
  return details;
}

}  // namespace leadline::nvidia
