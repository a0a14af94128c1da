#include "gpu/activity_fold.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "base/ids.h"
#include "gpu/measure.h"

namespace leadline::gpu {

// Measures of one piece of work, on the stack; only those added are ever read.
struct ActivityFold::Measures {
  std::array<leadline_measure, 16> values;
  std::uint32_t count = 0;
  void add(MetricKind kind, std::int64_t value) { values[count++] = {number(kind), value}; }
};

ActivityFold::ActivityFold(CorrelationMap& launches, const GraphMap& graphs, const KernelSources& sources,
                           const Vendor& vendor)
    : launches_(launches), graphs_(graphs), vendor_(vendor), names_(sources) {}

void ActivityFold::describe(const std::vector<DeviceInfo>& devices) {
  for (const DeviceInfo& info : devices) device(info.index).info = info;
}

ActivityFold::Device& ActivityFold::device(std::int32_t index) {
  if (last_device_ != nullptr && last_device_->info.index == index) return *last_device_;
  auto found = devices_.find(index);
  if (found == devices_.end()) {
    Device made;
    made.info.index = index;
    made.timeline =
        std::make_unique<DeviceTimeline>([this, index](std::int64_t from, std::int64_t to, const Interval& next) {
          charge_idle(index, from, to, next);
        });
    found = devices_.emplace(index, std::move(made)).first;
  }
  last_device_ = &found->second;
  return *last_device_;
}

void ActivityFold::add_or_lose(const Work& work) noexcept {
  try {
    add(work);
  } catch (...) {
    count_loss(LossKind::kGpuRecordsDropped, 1, "There was no memory to fold a record of GPU work.");
  }
}

void ActivityFold::add(const Work& work) {
  ++counters_.records;
  if (work.kind == WorkKind::kOverhead) {
    counters_.vendor_overhead_ns += work.end_ns - work.start_ns;
    if (work.correlation == 0) return;  // the library's own, of no call
  }
  const bool is_device_work = work.kind != WorkKind::kOverhead && work.kind != WorkKind::kWait;
  const auto record = !is_device_work                 ? CorrelationMap::Record::kOther
                      : work.kind == WorkKind::kGraph ? CorrelationMap::Record::kWholeGraph
                                                      : CorrelationMap::Record::kWork;
  const std::optional<Launch> launch = launches_.get(work.correlation, record);
  if (launch && launch->outer != 0) launches_.get(launch->outer, record);  // whose work has come under this id
  if (launch && launch->paused) return pass_over(work);
  if (!is_device_work) {
    if (launch) add_wait(work, *launch);
    return;
  }
  if (!launch) ++counters_.unattributed;
  if (work.kind == WorkKind::kKernel && work.graph_node == 0) {
    ++counters_.kernels;
    if (!launch) ++counters_.kernels_unattributed;
  }
  add_device_work(work, launch.value_or(Launch{}));
}

void ActivityFold::add_wait(const Work& work, const Launch& launch) {
  if (work.kind == WorkKind::kWait) {
    // A stream that waits for an event does not hold up the thread that asked for it.
    if (!work.holds_thread || work.end_ns <= work.start_ns) return;
    emit_measure(launch.context, MetricKind::kSyncTime, work.end_ns - work.start_ns, -1, work.end_ns);
    return;
  }
  leadline_event event = activity_event(launch.context, work.end_ns);
  leadline_gpu_activity_event& activity = event.of.gpu_activity;
  activity.frame_kind = static_cast<std::uint8_t>(FrameKind::kApi);
  activity.event_kind = static_cast<std::uint8_t>(EventKind::kOverhead);
  activity.name = work.name;
  activity.device = -1;
  activity.stream = -1;
  activity.start_ns = work.start_ns;
  activity.duration_ns = work.end_ns - work.start_ns;
  activity.correlation = work.correlation;
  // The thread's time, in the call that it is told with; no device works meanwhile.
  const leadline_measure measure{number(MetricKind::kCallTime), activity.duration_ns};
  activity.measures = &measure;
  activity.measure_count = 1;
  leadline_monitor_emit(&event);
}

void ActivityFold::name_kernel(const char* mangled, leadline_gpu_activity_event& activity) {
  KernelName& name = names_.get(mangled);
  const KernelFrame& frame = name.frame_at(activity.via != 0 ? activity.via : activity.context);
  activity.frame_kind = static_cast<std::uint8_t>(name.collective ? FrameKind::kCollective : FrameKind::kKernel);
  activity.event_kind = static_cast<std::uint8_t>(name.collective ? EventKind::kCollective : EventKind::kKernel);
  activity.name = name.text.c_str();
  activity.detail = frame.detail.empty() ? nullptr : frame.detail.c_str();
  activity.file = frame.file.empty() ? nullptr : frame.file.c_str();
  activity.line = frame.line;
  activity.frame = frame.number;
}

void ActivityFold::tell_instructions(const KernelRun& run, const std::string& mangled,
                                     const std::vector<leadline_activity_child>& instructions) {
  tell_more(run, mangled, &instructions, nullptr);
}

void ActivityFold::tell_counters(const KernelRun& run, const std::string& mangled,
                                 const std::vector<leadline_measure>& measures) {
  tell_more(run, mangled, nullptr, &measures);
}

void ActivityFold::tell_unrecorded(const KernelRun& run, std::int64_t began_ns, const std::string& mangled,
                                   const std::vector<leadline_measure>& measures) {
  tell_more(run, mangled, nullptr, &measures, run.end_ns - run.start_ns);
  device(run.device).timeline->add({began_ns, run.end_ns, WorkClass::kUnmeasured, 0, 0});
}

void ActivityFold::tell_scratch(const ScratchChange& change, const KernelRun* run, const std::string* mangled) {
  using Kind = ScratchChange::Kind;
  const KernelRun at = run != nullptr ? *run : KernelRun{};
  leadline_event event = activity_event(at.context, change.end_ns);
  leadline_gpu_activity_event& activity = event.of.gpu_activity;
  activity.frame_kind = static_cast<std::uint8_t>(FrameKind::kApi);
  activity.event_kind = static_cast<std::uint8_t>(EventKind::kScratch);
  activity.name = change.kind == Kind::kTaken       ? "Scratch memory taken"
                  : change.kind == Kind::kGivenBack ? "Scratch memory given back"
                                                    : "Scratch memory reclaimed";
  activity.device = change.device;
  activity.device_type = vendor_.device_type;
  activity.stream = at.stream;
  activity.start_ns = change.start_ns;
  activity.duration_ns = change.end_ns - change.start_ns;
  activity.correlation = at.correlation;
  activity.bytes = change.bytes;
  const bool is_taken = change.kind == Kind::kTaken;
  const std::vector<leadline_measure> measures =
      is_taken ? std::vector<leadline_measure>{{number(MetricKind::kScratchAllocBytes), change.bytes},
                                               {number(MetricKind::kScratchTime), activity.duration_ns}}
               : std::vector<leadline_measure>{{number(MetricKind::kScratchFreeBytes), change.bytes}};
  if (run != nullptr && mangled != nullptr) {
    leadline_monitor_emit(&event);
    return tell_more(*run, *mangled, nullptr, &measures);
  }
  activity.measures = measures.data();
  activity.measure_count = static_cast<std::uint32_t>(measures.size());
  leadline_monitor_emit(&event);
}

void ActivityFold::tell_more(const KernelRun& run, const std::string& mangled,
                             const std::vector<leadline_activity_child>* children,
                             const std::vector<leadline_measure>* measures, std::int64_t duration_ns) {
  leadline_event event = activity_event(run.context, run.end_ns);
  leadline_gpu_activity_event& activity = event.of.gpu_activity;
  activity.via = run.via;
  activity.via_kind = run.via_kind;
  activity.graph_node = run.graph_node;
  activity.device = run.device;
  activity.device_type = vendor_.device_type;
  activity.stream = run.stream;
  activity.start_ns = run.start_ns;
  activity.duration_ns = duration_ns;
  activity.correlation = run.correlation;
  name_kernel(mangled.c_str(), activity);
  if (children != nullptr) {
    activity.children = children->data();
    activity.child_count = static_cast<std::uint32_t>(children->size());
  }
  if (measures != nullptr) {
    activity.measures = measures->data();
    activity.measure_count = static_cast<std::uint32_t>(measures->size());
  }
  leadline_monitor_emit(&event);
}

void ActivityFold::describe_kernel(const Work& work, Device& device, leadline_gpu_activity_event& activity,
                                   Measures& measures) {
  name_kernel(work.name, activity);
  if (vendor_.occupancy == nullptr) return;
  const LaunchShape shape{
      work.blocks,          work.block_threads,         work.registers, work.static_shared, work.dynamic_shared,
      work.shared_executed, work.accumulation_registers};
  if (shape != device.shape) {
    device.shape = shape;
    device.occupancy = vendor_.occupancy(shape, device.info);
  }
  if (device.occupancy.blocks_per_multiprocessor > 0) {
    measures.add(MetricKind::kOccupancy, device.occupancy.occupancy_millionths);
    measures.add(MetricKind::kWaves, device.occupancy.waves_thousandths);
  }
  measures.add(MetricKind::kGridBlocks, work.blocks);
  measures.add(MetricKind::kBlockThreads, work.block_threads);
  measures.add(MetricKind::kRegisters, work.registers);
  if (vendor_.has_scalar_registers) {
    measures.add(MetricKind::kAccumulationRegisters, work.accumulation_registers);
    measures.add(MetricKind::kScalarRegisters, work.scalar_registers);
    measures.add(MetricKind::kScratchBytes, work.scratch);
  }
  measures.add(MetricKind::kStaticSharedBytes, work.static_shared);
  measures.add(MetricKind::kDynamicSharedBytes, work.dynamic_shared);
}

void ActivityFold::place_graph_node(const Work& work, leadline_gpu_activity_event& activity) {
  ++counters_.graph_nodes;
  // Newer releases put the graph's number into the node's id; both halves are shown apart.
  const std::uint64_t graph = work.graph != 0 ? work.graph : work.graph_node >> 32;
  activity.graph_node = graph << 32 | static_cast<std::uint32_t>(work.graph_node);
  const GraphMap::Found found = graphs_.find(work.graph_node);
  activity.via = found.place;
  switch (found.origin) {
    case GraphMap::Origin::kCaptured:
      return;
    case GraphMap::Origin::kGivenUp:
      ++counters_.graph_nodes_unknown;
      count_loss(LossKind::kNodesDropped, 1,
                 "Graphs with more nodes than are kept hang under their launch, without the path of "
                 "their capture.");
      return;
    case GraphMap::Origin::kWithin:
      activity.via_kind = LEADLINE_VIA_INSTANTIATE;
      ++counters_.graph_nodes_unknown;
      count_loss(LossKind::kNodesDropped, 1,
                 "Nodes of graphs inside of graphs that the GPU's library does not report are below the place that "
                 "made the whole executable, without the path of their capture.");
      return;
    case GraphMap::Origin::kInstantiated:
      activity.via_kind = LEADLINE_VIA_INSTANTIATE;
      break;
    case GraphMap::Origin::kBefore:
      activity.via_kind = LEADLINE_VIA_BEFORE;
      break;
  }
  ++counters_.graph_nodes_unknown;
  count_loss(LossKind::kGraphCapturedBefore, 1,
             "Kernels of a graph that was captured before measuring began hang under its launch by the "
             "number of their node, or under the place that made it executable; start measuring before the "
             "capture to see the code that made them.");
}

void ActivityFold::add_device_work(const Work& work, const Launch& launch) {
  Device& device = this->device(work.device);
  const bool known = launch.context != 0;
  const bool replayed = launch.kind == LEADLINE_GPU_GRAPH_LAUNCH;
  // From the host's memory to the host's memory: threads of the driver copy, and the device does nothing.
  const bool is_on_host = work.kind == WorkKind::kCopy && work.direction == Direction::kHtoH;

  leadline_event event = activity_event(launch.context, work.end_ns);
  leadline_gpu_activity_event& activity = event.of.gpu_activity;
  activity.device = is_on_host ? -1 : work.device;
  activity.device_type = vendor_.device_type;
  activity.stream = is_on_host ? -1 : work.stream;
  activity.start_ns = work.start_ns;
  activity.duration_ns = is_on_host ? LEADLINE_TOLD_BEFORE : work.end_ns - work.start_ns;
  activity.correlation = work.correlation;
  activity.bytes = work.bytes;

  if (work.graph_node != 0) place_graph_node(work, activity);

  Measures measures;
  WorkClass work_class = WorkClass::kCopy;
  switch (work.kind) {
    case WorkKind::kCopy:
      activity.frame_kind = static_cast<std::uint8_t>(FrameKind::kCopy);
      activity.event_kind = static_cast<std::uint8_t>(EventKind::kCopy);
      if (const PeerCopies::Named* named = peer_copies_.of(work)) {
        activity.name = named->name.c_str();
        activity.detail = named->detail.c_str();
        activity.frame = named->frame;
      } else {
        activity.name = copy_name(work);
        activity.detail = copy_detail(work);
        activity.frame = frames_.copy(work);
      }
      measures.add(MetricKind::kCopyBytes, work.bytes);
      break;
    case WorkKind::kSet:
      activity.frame_kind = static_cast<std::uint8_t>(FrameKind::kCopy);
      activity.event_kind = static_cast<std::uint8_t>(EventKind::kSet);
      activity.name = set_name(work);
      activity.frame = frames_.set(work);
      measures.add(MetricKind::kSetBytes, work.bytes);
      break;
    case WorkKind::kGraph:
      activity.frame_kind = static_cast<std::uint8_t>(FrameKind::kKernel);
      activity.event_kind = static_cast<std::uint8_t>(EventKind::kGraphLaunch);
      activity.name = vendor_.graph;
      work_class = WorkClass::kCompute;
      break;
    default:
      describe_kernel(work, device, activity, measures);
      if (samples_ != nullptr || counters_read_ != nullptr || replayed_ != nullptr ||
          (scratch_ != nullptr && work.scratch > 0)) {
        const std::uint32_t call = launch.outer != 0 ? launch.outer : work.correlation;
        const KernelRun run{activity.context,    activity.via,     activity.via_kind, work.device, work.stream,
                            activity.graph_node, work.correlation, work.start_ns,     work.end_ns, call};
        if (replayed_ != nullptr) replayed_->ran(run, work.name);
        if (samples_ != nullptr) samples_->ran(run, work.name);
        if (counters_read_ != nullptr) counters_read_->ran(run, work.name);
        if (scratch_ != nullptr && work.scratch > 0) scratch_->ran(run, work.name, work.queue);
      }
      work_class = activity.frame_kind == static_cast<std::uint8_t>(FrameKind::kCollective) ? WorkClass::kCommunication
                                                                                            : WorkClass::kCompute;
  }
  const std::uint64_t stream_key =
      static_cast<std::uint64_t>(work.context) << 32 | static_cast<std::uint32_t>(work.stream);
  // Of a replayed graph only the launch as a whole was queued, so its nodes have no latency or depth of their own.
  if (known && !replayed && !is_on_host) {
    const std::int64_t depth = queues_.add(stream_key, launch.start_ns, work.end_ns);
    measures.add(MetricKind::kQueueDepth, depth);
    if (work.start_ns >= launch.start_ns) measures.add(MetricKind::kLaunchLatency, work.start_ns - launch.start_ns);
  }
  activity.measures = measures.values.data();
  activity.measure_count = measures.count;
  leadline_monitor_emit(&event);

  if (is_on_host) return;
  device.timeline->add({work.start_ns, work.end_ns, work_class, launch.context, launch.thread, launch.start_ns});
}

void ActivityFold::charge_idle(std::int32_t device, std::int64_t from_ns, std::int64_t to_ns, const Interval& next) {
  Launch launch;
  launch.context = next.context;
  launch.thread = next.thread;
  launch.start_ns = next.launched_ns;
  launches_.split(from_ns, to_ns, launch, [&](leadline_context context, std::int64_t ns) {
    if (context != 0) emit_measure(context, MetricKind::kGpuIdleTime, ns, device, to_ns, vendor_.device_type);
  });
}

void ActivityFold::pass_over(const Work& work) {
  if (work.kind == WorkKind::kOverhead || work.kind == WorkKind::kWait) return;
  Device& device = this->device(work.device);
  if (paused_since_ns_ == 0) {
    device.timeline->add({work.start_ns, work.end_ns, WorkClass::kUnmeasured, 0, 0});
  } else {
    device.unmeasured_until_ns = std::max(device.unmeasured_until_ns, work.end_ns);
  }
}

void ActivityFold::pause(std::int64_t time_ns) {
  if (paused_since_ns_ == 0) paused_since_ns_ = time_ns;
}

void ActivityFold::resume(std::int64_t time_ns) {
  if (paused_since_ns_ == 0) return;
  for (auto& [index, device] : devices_) {
    const std::int64_t until = std::max(time_ns, device.unmeasured_until_ns);
    device.timeline->add({paused_since_ns_, until, WorkClass::kUnmeasured, 0, 0});
    device.unmeasured_until_ns = 0;
  }
  paused_since_ns_ = 0;
}

void ActivityFold::settle_before(std::int64_t time_ns) {
  if (paused_since_ns_ != 0) time_ns = std::min(time_ns, paused_since_ns_);  // the pause itself is told at its end
  for (auto& [index, device] : devices_) {
    const std::uint64_t late = device.timeline->totals().late;
    device.timeline->sweep_before(time_ns);
    count_loss(
        LossKind::kGpuRecordsDropped, device.timeline->totals().late - late,
        "Records of GPU work came so late that the time of the device in which they lie had been reported as idle; "
        "the work itself is in the profile.");
  }
  launches_.forget_places_before(time_ns);
}

void ActivityFold::finish() noexcept {
  try {
    resume(std::numeric_limits<std::int64_t>::max());
    launches_.watermark();  // what was written last is read as well
    for (auto& [index, device] : devices_) device.timeline->finish();
  } catch (...) {
    count_loss(LossKind::kInternalError, 1, "There was no memory to compute until when devices were busy.");
  }
  count_loss(LossKind::kInternalError, launches_.forgotten(),
             "There was no room to keep all launches and regions until the records of their work came, so some work "
             "is reported without its place, and idle time at the launch that ended it.");
}

std::map<std::int32_t, DeviceTotals> ActivityFold::totals() const {
  std::map<std::int32_t, DeviceTotals> totals;
  for (const auto& [index, device] : devices_) {
    if (device.timeline->totals().last_ns > 0) totals[index] = device.timeline->totals();
  }
  return totals;
}

}  // namespace leadline::gpu
