#include "writer/snapshot.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "writer/merged_tree.h"

namespace leadline {
namespace {

// The shares of one node on one device may come from several threads; the node's peak is one measurement of their sum.
void add_peak_shares(MergedTree& tree, MemoryLedger& ledger) {
  struct Share {
    NodeId node;
    std::int16_t device;
    std::int64_t bytes;
  };
  std::vector<Share> shares;
  for (const PeakShare& share : ledger.peak_shares()) {
    shares.push_back({tree.resolve(share.thread, share.node), share.device, share.bytes});
  }
  const auto place = [](const Share& share) { return std::tuple(raw(share.node), share.device); };
  std::sort(shares.begin(), shares.end(), [&](const Share& a, const Share& b) { return place(a) < place(b); });
  for (std::size_t i = 0; i < shares.size();) {
    std::int64_t bytes = 0;
    const Share first = shares[i];
    for (; i < shares.size() && place(shares[i]) == place(first); ++i) bytes += shares[i].bytes;
    tree.add(first.node, {MetricKind::kPeakLiveBytes, first.device, kNoStream}, MetricValues::of(bytes));
  }
}

// Frees whose size only the ledger knew, and only when their thread had gone on.
void add_freed_later(MergedTree& tree, MemoryLedger& ledger) {
  for (const FreedLater& freed : ledger.freed_later()) {
    tree.add(tree.resolve(freed.thread, freed.node), {MetricKind::kFreeBytes, freed.device, kNoStream}, freed.bytes);
  }
}

void fill_tree(Snapshot& snapshot, const MergedTree& tree) {
  const std::uint32_t nodes = tree.nodes().size();
  snapshot.nodes.parent.reserve(nodes);
  snapshot.nodes.frame.reserve(nodes);
  for (std::uint32_t i = 0; i < nodes; ++i) {
    const NodeId node{i};
    snapshot.nodes.parent.push_back(static_cast<std::int32_t>(raw(tree.nodes().parent(node))));  // kNoNode is -1
    snapshot.nodes.frame.push_back(raw(tree.nodes().frame(node)));
    tree.nodes().for_each_metric(node, [&](const MetricKey& key, const MetricValues& values) {
      if (values.count == 0) return;  // its thread is just making it
      tables::Metrics& table = snapshot.metrics;
      table.node.push_back(i);
      table.metric.push_back(static_cast<std::uint8_t>(key.metric));
      table.device.push_back(key.device);
      table.stream.push_back(key.stream);
      table.count.push_back(values.count);
      table.sum.push_back(values.sum);
      table.min.push_back(values.min);
      table.max.push_back(values.max);
      table.sum_squares.push_back(values.sum_squares);
    });
  }
  const std::uint32_t frames = tree.frames().size();
  for (std::uint32_t i = 0; i < frames; ++i) {
    const FrameKey& key = tree.frames()[FrameId{i}];
    tables::Frames& table = snapshot.frames;
    table.kind.push_back(static_cast<std::uint8_t>(key.kind));
    table.name.push_back(raw(key.name));
    table.file.push_back(raw(key.file));
    table.line.push_back(key.line);
    table.first_line.push_back(key.first_line);
    table.module.push_back(raw(key.module));
    table.address.push_back(key.address);
    table.detail.push_back(raw(key.detail));
  }
}

// Nodes of the threads' trees become nodes of this one, so before these are written.
std::optional<tables::OpenPlaces> open_places(MergedTree& tree, const SegmentSources& sources) {
  tables::OpenPlaces table;
  for (const OpenPlace& place : sources.open_places) {
    for (std::uint32_t i = tree.thread_count(); i-- > 0;) {  // the last one: the kernel gives a number again
      if (sources.trees[ThreadIndex{i}].tid() != place.tid) continue;
      tree.thread_node(ThreadIndex{i});  // its row is made when the thread is new
      table.thread.push_back(i);
      table.node.push_back(raw(tree.resolve(place.tree, place.node)));
      break;
    }
  }
  return table.thread.empty() ? std::nullopt : std::optional(std::move(table));
}

void fill_threads(Snapshot& snapshot, MergedTree& tree, const TreeRegistry& trees, std::uint32_t pid) {
  constexpr auto relaxed = std::memory_order_relaxed;
  for (std::uint32_t i = 0; i < tree.thread_count(); ++i) {
    const ThreadTree& thread = trees[ThreadIndex{i}];
    const ThreadStats& stats = thread.stats();
    tables::Threads& table = snapshot.threads;
    table.process.push_back(0);
    table.tid.push_back(thread.tid());
    if (thread.tid() == pid) {
      snapshot.main_threads.thread.push_back(i);
      snapshot.main_threads.count.push_back(1);
    }
    const StringId name = tree.string(thread.name());
    const NodeId node = tree.thread_node(ThreadIndex{i});
    table.name.push_back(raw(name));
    table.node.push_back(raw(node));
    snapshot.nodes.frame[raw(node)] = raw(tree.thread_frame(ThreadIndex{i}));
    table.operator_ns.push_back(stats.operator_ns.load(relaxed));
    table.data_ns.push_back(stats.data_ns.load(relaxed));
    const ThreadStats::Times times = stats.times();
    table.wall_ns.push_back(times.wall_ns);
    table.cpu_ns.push_back(times.cpu_ns);
  }
}

void add_steps(tables::Steps& table, std::uint32_t thread, std::uint8_t kind, const StepSums& sums) {
  table.thread.push_back(thread);
  table.kind.push_back(kind);
  table.first.push_back(sums.first);
  table.count.push_back(static_cast<std::uint64_t>(sums.count));
  table.wall_ns.push_back(sums.wall_ns);
  table.wall_min_ns.push_back(sums.wall_min_ns);
  table.wall_max_ns.push_back(sums.wall_max_ns);
  table.counted.push_back(static_cast<std::uint64_t>(sums.counted));
  const bool counted = sums.counted != 0;
  table.running_ns.push_back(counted ? sums.running_ns : -1);
  table.core_wait_ns.push_back(counted ? sums.core_wait_ns : -1);
  table.preemptions.push_back(counted ? sums.preemptions : -1);
  table.major_faults.push_back(counted ? sums.major_faults : -1);
  table.operators.push_back(sums.operators);
  table.operator_ns.push_back(sums.operator_ns);
  table.backward_ns.push_back(sums.backward_ns);
  table.data_ns.push_back(sums.data_ns);
  table.optimizer_ns.push_back(sums.optimizer_ns);
  table.compile_ns.push_back(sums.compile_ns);
  table.collection_ns.push_back(sums.collection_ns);
  table.saving_ns.push_back(sums.saving_ns);
  table.device_wait_ns.push_back(sums.device_wait_ns);
}

void fill_steps(Snapshot& snapshot, const MergedTree& tree, const TreeRegistry& trees) {
  tables::Steps steps;
  tables::StepWalls walls;
  StepTable::Rows rows;
  for (std::uint32_t thread = 0; thread < tree.thread_count(); ++thread) {
    const StepTable* const table = trees[ThreadIndex{thread}].step_table();
    if (table == nullptr || !table->read(rows)) continue;  // the next segment has what is just being written
    for (std::size_t i = 0; i < rows.span_count; ++i) add_steps(steps, thread, 0, rows.spans[i]);
    std::sort(rows.slowest.begin(), rows.slowest.begin() + rows.slowest_count, [](const auto& one, const auto& other) {
      return std::tuple(-one.wall_ns, one.first) < std::tuple(-other.wall_ns, other.first);
    });
    for (std::size_t i = 0; i < rows.slowest_count; ++i) add_steps(steps, thread, 1, rows.slowest[i]);
    for (std::size_t bin = 0; bin < rows.histogram.size(); ++bin) {
      if (rows.histogram[bin] == 0) continue;
      walls.thread.push_back(thread);
      walls.bin.push_back(static_cast<std::int32_t>(bin));
      walls.count.push_back(rows.histogram[bin]);
    }
  }
  if (steps.thread.empty()) return;
  snapshot.steps = std::move(steps);
  snapshot.step_walls = std::move(walls);
}

void fill_process(Snapshot& snapshot, MergedTree& tree, const ProcessInfo& process) {
  tables::Processes& table = snapshot.processes;
  table.pid.push_back(process.pid);
  table.parent_pid.push_back(process.parent_pid);
  table.rank.push_back(process.rank);
  table.local_rank.push_back(process.local_rank);
  table.node.push_back(raw(tree.process_node()));
  snapshot.nodes.frame[raw(tree.process_node())] = raw(tree.process_frame());
  table.name.push_back(raw(tree.string(process.name)));
  table.start_ns.push_back(process.start_ns);
  table.end_ns.push_back(process.end_ns);
  table.complete.push_back(process.complete ? 1 : 0);
}

// The JSON object of a device with the type whose numbers its index is of; CUDA's is left out.
std::string device_detail(const DeviceDescription& device) {
  if (device.type == DeviceType::kCuda) return device.detail;
  std::string detail = "{\"type\": \"";
  detail += kDeviceTypeNames[static_cast<std::size_t>(device.type)];
  detail += device.detail.size() <= 2 ? "\"}" : "\", " + device.detail.substr(1);
  return detail;
}

void fill_devices(Snapshot& snapshot, MergedTree& tree, const DeviceTable& devices) {
  for (const DeviceDescription& device : devices.rows()) {
    tables::Devices& table = snapshot.devices;
    table.process.push_back(0);
    table.index.push_back(device.index);
    table.name.push_back(raw(tree.string(device.name)));
    table.uuid.push_back(raw(tree.string(device.uuid)));
    table.memory_bytes.push_back(device.memory_bytes);
    table.detail.push_back(raw(tree.string(device_detail(device))));
  }
}

void fill_losses(Snapshot& snapshot, MergedTree& tree, const LossCounters& losses) {
  for (std::size_t number = 0; number < kLossKindCount; ++number) {
    const auto kind = static_cast<LossKind>(number);
    std::vector<LossCounters::Told> told = losses.told(kind);
    // Found anew in every snapshot, so it is no business of the counters.
    if (kind == LossKind::kInternalError && tree.broken_grafts() > 0) {
      LossCounters::Told& lost = told.emplace_back();
      lost.sentence = "a call path pointed at a place that does not exist; its work is shown under its thread";
      lost.count = tree.broken_grafts();
    }
    for (const LossCounters::Told& one : told) {
      snapshot.losses.process.push_back(0);
      snapshot.losses.kind.push_back(static_cast<std::uint8_t>(number));
      snapshot.losses.count.push_back(one.count);
      snapshot.losses.detail.push_back(raw(tree.string(one.sentence)));
    }
  }
}

tables::OwnCost own_cost_table(const OwnCost& cost) {
  tables::OwnCost table;
  table.callbacks_ns.push_back(cost.callbacks_ns);
  table.flush_ns.push_back(cost.flush_ns);
  table.events.push_back(cost.events);
  table.held_bytes.push_back(cost.held_bytes);
  return table;
}

// Last of all, when no table will ask for another string.
void fill_strings(Snapshot& snapshot, const StringTable& strings) {
  const std::uint32_t count = strings.size();
  snapshot.strings.offsets.reserve(count + std::size_t{1});
  snapshot.strings.offsets.push_back(0);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::string_view text = strings.text(StringId{i});
    snapshot.strings.bytes.insert(snapshot.strings.bytes.end(), text.begin(), text.end());
    snapshot.strings.offsets.push_back(snapshot.strings.bytes.size());
  }
}

std::string process_detail(const ProcessInfo& process) {
  std::string detail = "{\"pid\": " + std::to_string(process.pid);
  if (process.rank >= 0) detail += ", \"rank\": " + std::to_string(process.rank);
  return detail + "}";
}

}  // namespace

Snapshot take_snapshot(MergedTree& tree, const SegmentSources& sources, WithEvents events) {
  Snapshot snapshot;
  tree.update(sources.process.name, process_detail(sources.process));
  if (sources.ledger != nullptr) {
    add_peak_shares(tree, *sources.ledger);
    add_freed_later(tree, *sources.ledger);
  }
  const bool with_events = events == WithEvents::kYes && sources.events != nullptr && sources.events->was_opened();
  if (with_events) snapshot.events.emplace(tree, *sources.events);
  snapshot.open_places = open_places(tree, sources);
  fill_tree(snapshot, tree);
  fill_threads(snapshot, tree, sources.trees, sources.process.pid);
  fill_steps(snapshot, tree, sources.trees);
  fill_process(snapshot, tree, sources.process);
  if (sources.devices != nullptr) fill_devices(snapshot, tree, *sources.devices);
  fill_losses(snapshot, tree, sources.losses);
  if (sources.own_cost != nullptr) snapshot.own_cost = own_cost_table(*sources.own_cost);
  fill_strings(snapshot, tree.strings());
  return snapshot;
}

Snapshot take_snapshot(const SegmentSources& sources) {
  MergedTree tree(sources.trees, sources.compiled);
  return take_snapshot(tree, sources, WithEvents::kYes);
}

}  // namespace leadline
