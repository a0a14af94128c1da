// Device work in, monitor events out: joins each record with its launch, computes what belongs to it, hands it over.
//
// Runs on one thread. Memory is bounded by the number of devices, streams and distinct kernel names, never by records.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "gpu/correlation_map.h"
#include "gpu/counter_samples.h"
#include "gpu/device.h"
#include "gpu/device_timeline.h"
#include "gpu/graph_map.h"
#include "gpu/instruction_samples.h"
#include "gpu/kernel_names.h"
#include "gpu/peer_copies.h"
#include "gpu/replayed_launches.h"
#include "gpu/scratch_memory.h"
#include "gpu/stream_queue.h"
#include "gpu/work.h"
#include "leadline/monitor.h"

namespace leadline::gpu {

struct FoldCounters {
  std::uint64_t records = 0;
  std::uint64_t unattributed = 0;
  std::uint64_t kernels = 0;  // but nodes of graphs
  std::uint64_t kernels_unattributed = 0;
  std::uint64_t graph_nodes = 0;
  std::uint64_t graph_nodes_unknown = 0;
  std::int64_t vendor_overhead_ns = 0;  // of the vendor's profiling library
};

// Numbers of the frames whose names are literals, for the monitor.
class FrameNumbers {
 public:
  std::uint64_t copy(const Work& work) noexcept {
    const auto direction = static_cast<std::size_t>(work.direction);
    const auto source = static_cast<std::size_t>(work.source);
    return number((direction * kMemories + source) * kMemories + static_cast<std::size_t>(work.destination));
  }
  std::uint64_t set(const Work& work) noexcept { return number(kCopies + static_cast<std::size_t>(work.destination)); }

 private:
  static constexpr std::size_t kCopies = kDirections * kMemories * kMemories;
  std::uint64_t number(std::size_t at) noexcept {
    if (numbers_[at] == 0) numbers_[at] = leadline_monitor_new_frame();
    return numbers_[at];
  }
  std::array<std::uint64_t, kCopies + kMemories> numbers_{};
};

class ActivityFold {
 public:
  ActivityFold(CorrelationMap& launches, const GraphMap& graphs, const KernelSources& sources, const Vendor& vendor);

  // What is known of the devices; before their first record, for occupancy.
  void describe(const std::vector<DeviceInfo>& devices);
  void add(const Work& work);
  // The same; what finds no memory is lost, and counted.
  void add_or_lose(const Work& work) noexcept;
  // Tells these from now on which kernels ran; null: nobody asks.
  void follow_kernels(InstructionSamples* samples, CounterSamples* counters, ReplayedLaunches* replayed) noexcept {
    samples_ = samples;
    counters_read_ = counters;
    replayed_ = replayed;
  }
  // The same of kernels that use scratch memory.
  void follow_scratch(ScratchMemory* scratch) noexcept { scratch_ = scratch; }
  // What was taken or given back, at its kernel, which was told before; `run` and `mangled` null: at none.
  void tell_scratch(const ScratchChange& change, const KernelRun* run, const std::string* mangled);
  // Of a kernel that was told before: samples of instructions below its frame, and what counters said of it.
  void tell_instructions(const KernelRun& run, const std::string& mangled,
                         const std::vector<leadline_activity_child>& instructions);
  void tell_counters(const KernelRun& run, const std::string& mangled, const std::vector<leadline_measure>& measures);
  // A kernel that no record comes of, as its launch and the counters have it; what else ran for it since `began_ns` is
  // nothing of the program's.
  void tell_unrecorded(const KernelRun& run, std::int64_t began_ns, const std::string& mangled,
                       const std::vector<leadline_measure>& measures);
  // Charges idle time up to `time_ns`; call now and then, with CorrelationMap::watermark().
  void settle_before(std::int64_t time_ns);
  // Work launched from `time_ns` on belongs nowhere, until resume: its launches say so (Launch::paused). Devices are
  // neither busy nor idle meanwhile, but for work of before.
  void pause(std::int64_t time_ns);
  void resume(std::int64_t time_ns);
  // Nothing more will come.
  void finish() noexcept;

  const FoldCounters& counters() const noexcept { return counters_; }
  std::map<std::int32_t, DeviceTotals> totals() const;

 private:
  struct Device {
    DeviceInfo info;
    std::unique_ptr<DeviceTimeline> timeline;
    std::int64_t unmeasured_until_ns = 0;  // end of what was launched while paused, as far as known
    // The shape of the last launch and what it gives: kernels are launched in the same shape again and again.
    LaunchShape shape;
    Occupancy occupancy;
  };
  struct Measures;
  Device& device(std::int32_t index);
  void add_device_work(const Work& work, const Launch& launch);
  void tell_more(const KernelRun& run, const std::string& mangled, const std::vector<leadline_activity_child>* children,
                 const std::vector<leadline_measure>* measures, std::int64_t duration_ns = LEADLINE_TOLD_BEFORE);
  void name_kernel(const char* mangled, leadline_gpu_activity_event& activity);
  void describe_kernel(const Work& work, Device& device, leadline_gpu_activity_event& activity, Measures& measures);
  void place_graph_node(const Work& work, leadline_gpu_activity_event& activity);
  void pass_over(const Work& work);
  void add_wait(const Work& work, const Launch& launch);
  void charge_idle(std::int32_t device, std::int64_t from_ns, std::int64_t to_ns, const Interval& next);

  CorrelationMap& launches_;
  const GraphMap& graphs_;
  const Vendor vendor_;
  KernelNames names_;
  StreamQueues queues_;
  std::map<std::int32_t, Device> devices_;  // its elements stay where they are
  Device* last_device_ = nullptr;
  std::int64_t paused_since_ns_ = 0;  // 0: not paused
  FrameNumbers frames_;
  PeerCopies peer_copies_;
  InstructionSamples* samples_ = nullptr;
  CounterSamples* counters_read_ = nullptr;
  ReplayedLaunches* replayed_ = nullptr;
  ScratchMemory* scratch_ = nullptr;
  FoldCounters counters_;
};

}  // namespace leadline::gpu
