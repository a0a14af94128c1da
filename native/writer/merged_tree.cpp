#include "writer/merged_tree.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>
#include <string>
#include <utility>

namespace leadline {
namespace {

// The number for `id`, looked up with grow-on-demand: the thread may have made more since the vector was sized.
std::uint32_t& entry(std::vector<std::uint32_t>& numbers, std::uint32_t id, std::uint32_t unknown) {
  if (id >= numbers.size()) numbers.resize(id + 1, unknown);
  return numbers[id];
}

// CPU time of all outermost operators, from those that were looked at; negative where none was.
std::int64_t operators_ran_ns(const ThreadStats& stats) noexcept {
  constexpr auto relaxed = std::memory_order_relaxed;
  const auto looked_ns = static_cast<double>(stats.looked_ns.load(relaxed));
  if (looked_ns <= 0) return -1;
  const double share = static_cast<double>(stats.looked_cpu_ns.load(relaxed)) / looked_ns;
  return static_cast<std::int64_t>(static_cast<double>(stats.operator_ns.load(relaxed)) * std::min(share, 1.0));
}

// What becomes of a measurement at a place that several operations share: work of the device is divided, what a launch
// has rather than takes is the same for each, and what the host did is one call, of the operation with the largest
// share.
enum class Shared : std::uint8_t { kDivided, kSame, kOnce };
Shared shared_how(MetricKind metric) noexcept {
  switch (metric) {
    case MetricKind::kLaunchLatency:
    case MetricKind::kQueueDepth:
    case MetricKind::kOccupancy:
    case MetricKind::kWaves:
    case MetricKind::kGridBlocks:
    case MetricKind::kBlockThreads:
    case MetricKind::kRegisters:
    case MetricKind::kScalarRegisters:
    case MetricKind::kAccumulationRegisters:
    case MetricKind::kScratchBytes:
    case MetricKind::kStaticSharedBytes:
    case MetricKind::kDynamicSharedBytes:
      return Shared::kSame;
    case MetricKind::kGpuTime:
    case MetricKind::kCopyBytes:
    case MetricKind::kSetBytes:
    case MetricKind::kInstructionSamples:
    case MetricKind::kLatencySamples:
    case MetricKind::kCountedTime:
    case MetricKind::kActiveTime:
    case MetricKind::kOccupiedTime:
    case MetricKind::kIssueTime:
    case MetricKind::kTensorTime:
    case MetricKind::kDramTime:
    case MetricKind::kL2Time:
    case MetricKind::kDramBytes:
    case MetricKind::kWarpInstructions:
    case MetricKind::kSharedWavefronts:
    case MetricKind::kBankConflicts:
    case MetricKind::kGlobalRequests:
    case MetricKind::kGlobalSectors:
      return Shared::kDivided;
    default:
      return Shared::kOnce;
  }
}

std::int64_t scaled(std::int64_t value, double share) noexcept {
  return static_cast<std::int64_t>(std::llround(static_cast<double>(value) * share));
}

}  // namespace

MergedTree::MergedTree(const TreeRegistry& trees, const CompiledOperations* compiled)
    : trees_(trees), compiled_(compiled), budget_(std::numeric_limits<std::int64_t>::max()), nodes_(budget_) {
  if (strings_.size() == 0) throw std::bad_alloc();  // not even the empty one
  made(nodes_.append(kNoNode, made(frames_.intern(FrameKey()))));
}

std::size_t MergedTree::held_bytes() const noexcept {
  std::size_t bytes = strings_.held_bytes() + frames_.held_bytes() + nodes_.held_bytes();
  for (const Shares& shares : shared_) bytes += sizeof(Shares) + shares.capacity() * sizeof(Share);
  for (const ThreadState& state : threads_) {
    bytes += (state.strings.capacity() + state.frames.capacity() + state.nodes.capacity()) * sizeof(std::uint32_t);
  }
  return bytes;
}

void MergedTree::update(std::string_view process_name, std::string_view process_detail) {
  FrameKey key;
  key.kind = FrameKind::kProcess;
  key.name = string(process_name);
  key.detail = string(process_detail);
  process_frame_ = made(frames_.intern(key));
  if (process_node_ == kNoNode) process_node_ = made(nodes_.child(NodeId{0}, process_frame_));
  nodes_.reset_metrics();
  forget_places();
  const std::uint32_t count = trees_.size();
  for (std::uint32_t i = 0; i < count; ++i) {
    const ThreadIndex thread{i};
    const ThreadTree& tree = trees_[thread];
    ThreadState& state = state_of(thread);
    state.frame = frame_by_name(tree, state.detail);
    const std::uint32_t nodes = tree.node_count();
    for (std::uint32_t at = 0; at < nodes; ++at) {
      const std::uint32_t number = find(thread, NodeId{at});
      tree.nodes().for_each_metric(NodeId{at}, [&](const MetricKey& metric, const MetricValues& values) {
        if (metric.metric != kLeafTime) return share_out(number, metric, values);
        share_out(number, {MetricKind::kTime}, values);
        share_out(number, {MetricKind::kCallTime}, values);
      });
    }
    if (const std::int64_t ran_ns = operators_ran_ns(tree.stats()); ran_ns >= 0)
      add(state_of(thread).root, {MetricKind::kOperatorRunningTime}, MetricValues::of(ran_ns));
  }
}

NodeId MergedTree::resolve(ThreadIndex thread, NodeId node) { return first_of(find(thread, node)); }

NodeId MergedTree::first_of(std::uint32_t number) const noexcept {
  return number < kShared ? NodeId{number} : shared_[number - kShared].front().node;
}

std::uint32_t MergedTree::find(ThreadIndex thread, NodeId node) {
  Place place{thread, node};
  if (!exists(place)) return raw(process_node_);
  // Upwards until something known, then back down making what is missing. Not recursive: call paths may be very deep.
  std::vector<Place>& way = way_;
  way.clear();
  std::uint32_t known = kUnknown;
  for (;;) {
    std::uint32_t& number = number_of(place);
    if (number == kOnTheWay) {
      known = raw(break_circle());
      break;
    }
    if (number != kUnknown) {
      known = number;
      break;
    }
    number = kOnTheWay;
    way.push_back(place);
    const ThreadTree& tree = trees_[place.thread];
    if (!tree.is_graft(place.node)) {
      place.node = tree.parent(place.node);
      continue;
    }
    const ThreadTree::GraftTarget target = tree.graft_target(place.node);
    const Place next{target.thread, target.node};
    if (!exists(next)) {
      ++broken_grafts_;
      known = raw(state_of(place.thread).root);
      break;
    }
    place = next;
  }
  for (; !way.empty(); way.pop_back()) {
    const Place at = way.back();
    const ThreadTree& tree = trees_[at.thread];
    if (!tree.is_graft(at.node)) known = below(known, at);
    number_of(at) = known;
  }
  return known;
}

// What stands below `parent` for a node of a thread's tree that is no graft.
std::uint32_t MergedTree::below(std::uint32_t parent, Place place) {
  const ThreadTree& tree = trees_[place.thread];
  if (compiled_ == nullptr) return child_of(parent, frame(place.thread, tree.frame_of(place.node)));
  const CompiledTitle title = title_of(tree, place.node);
  if (title.of == CompiledTitle::Of::kProgram) {
    if (const CompiledFrame* known = compiled_->program(title.program); known != nullptr)
      return child_of(parent, frame(*known));
  } else if (title.of == CompiledTitle::Of::kOperation) {
    // What an operation runs (the body of a loop) has lines of its own: its place is below the program.
    const ProgramAbove above = program_above(trees_, place.thread, place.node);
    const CompiledParts* parts = above ? compiled_->operation(above.program, title.operation) : nullptr;
    if (parts != nullptr) {
      const std::uint32_t number = number_of({above.thread, above.node});  // it is above, so it is known by now
      if (number != kUnknown && number != kOnTheWay) return parts_below(first_of(number), *parts);
    }
  }
  return child_of(parent, frame(place.thread, tree.frame_of(place.node)));
}

std::uint32_t MergedTree::child_of(std::uint32_t parent, FrameId frame) {
  if (parent < kShared) return raw(made(nodes_.child(NodeId{parent}, frame)));
  Shares shares = shared_[parent - kShared];
  for (Share& share : shares) share.node = made(nodes_.child(share.node, frame));
  return add_shares(std::move(shares));
}

std::uint32_t MergedTree::parts_below(NodeId program, const CompiledParts& parts) {
  Shares shares;
  for (const CompiledPart& part : parts) {
    NodeId node = program;
    for (const CompiledFrame& each : part.frames) node = made(nodes_.child(node, frame(each)));
    const auto same =
        std::find_if(shares.begin(), shares.end(), [&](const Share& share) { return share.node == node; });
    if (same == shares.end()) {
      shares.push_back({node, part.millionths});
    } else {
      same->millionths += part.millionths;
    }
  }
  if (shares.size() == 1) return raw(shares.front().node);
  std::stable_sort(shares.begin(), shares.end(),
                   [](const Share& a, const Share& b) { return a.millionths > b.millionths; });
  return add_shares(std::move(shares));
}

std::uint32_t MergedTree::add_shares(Shares shares) {
  shared_.push_back(std::move(shares));
  return kShared + static_cast<std::uint32_t>(shared_.size() - 1);
}

FrameId MergedTree::frame(const CompiledFrame& given) {
  FrameKey key;
  key.kind = given.kind;
  key.name = string(given.name);
  key.module = string(given.module);
  key.file = string(given.file);
  key.detail = string(given.detail);
  key.line = given.line;
  return made(frames_.intern(key));
}

// Launches are divided in proportion where there are many, so that those of all nodes are the launches there were, and
// each node has the time of its own. Few cannot be divided: then every node has all of them, with its share of each.
void MergedTree::share_out(std::uint32_t number, const MetricKey& metric, const MetricValues& values) {
  if (number < kShared) return add(NodeId{number}, metric, values);
  if (values.count == 0) return;  // its thread is just making it
  const Shares& shares = shared_[number - kShared];
  const Shared how = shared_how(metric.metric);
  if (how == Shared::kOnce) return add(shares.front().node, metric, values);
  constexpr std::uint64_t kMany = 100;
  const bool many = values.count >= kMany;
  const auto whole = static_cast<double>(values.count);
  std::uint64_t until = 0;
  std::uint64_t counted = 0;
  std::int64_t given = 0;
  for (const Share& share : shares) {
    MetricValues part = values;
    until += share.millionths;
    const bool last = &share == &shares.back();
    double reached = last ? 1.0 : static_cast<double>(until) / CompiledPart::kWhole;
    if (many) {
      const auto reached_count = last ? values.count : static_cast<std::uint64_t>(std::llround(whole * reached));
      part.count = reached_count - std::exchange(counted, reached_count);
      if (part.count == 0) continue;
      reached = static_cast<double>(reached_count) / whole;
      const double of_all = static_cast<double>(part.count) / whole;
      part.sum_squares = values.sum_squares * of_all;
    }
    if (many || how == Shared::kDivided) {
      const std::int64_t reached_sum = last ? values.sum : scaled(values.sum, reached);
      part.sum = reached_sum - std::exchange(given, reached_sum);
    }
    if (!many && how == Shared::kDivided) {
      const double of_one = static_cast<double>(share.millionths) / CompiledPart::kWhole;
      part.min = static_cast<std::int64_t>(std::floor(static_cast<double>(values.min) * of_one));
      part.max = static_cast<std::int64_t>(std::ceil(static_cast<double>(values.max) * of_one));
      part.sum_squares = values.sum_squares * of_one * of_one;
    }
    // Never below that of equal values, which rounding the sum up may have made more.
    const auto part_sum = static_cast<double>(part.sum);
    part.sum_squares = std::max(part.sum_squares, part_sum * part_sum / static_cast<double>(part.count));
    add(share.node, metric, part);
  }
}

// Where more is known of compiled programs than before, nodes that had titles have other places now. The old ones stay,
// with nothing measured at them.
void MergedTree::forget_places() {
  const std::uint64_t version = compiled_ != nullptr ? compiled_->version() : 0;
  if (std::exchange(compiled_version_, version) == version) return;
  shared_.clear();
  for (ThreadState& state : threads_) {
    std::fill(state.nodes.begin(), state.nodes.end(), kUnknown);
    state.nodes[0] = raw(state.root);
  }
}

// The way has come back to itself through a graft that points below itself. That graft, the last one on the way, falls
// to its thread; the nodes above it on the way are found again from there.
NodeId MergedTree::break_circle() {
  std::vector<Place>& way = way_;
  ++broken_grafts_;
  while (!trees_[way.back().thread].is_graft(way.back().node)) {
    number_of(way.back()) = kUnknown;
    way.pop_back();
  }
  return state_of(way.back().thread).root;
}

StringId MergedTree::string(std::string_view text) {
  bool refused = false;
  const StringId id = strings_.intern(text, &refused);
  if (refused) throw std::bad_alloc();
  return id;
}

void MergedTree::add(NodeId node, MetricKey key, const MetricValues& values) {
  if (!nodes_.merge(node, key, values)) throw std::bad_alloc();
}

MergedTree::ThreadState& MergedTree::state_of(ThreadIndex thread) {
  // Rows of `threads` are the registry's numbers, so every thread before this one gets its state too.
  while (threads_.size() <= raw(thread)) {
    const ThreadTree& tree = trees_[ThreadIndex{static_cast<std::uint32_t>(threads_.size())}];
    ThreadState state;
    // Threads of one name stay apart. Of a tree that many threads have shared, the first one: every other detail would
    // be kept for ever.
    state.detail = string("{\"tid\": " + std::to_string(tree.tid()) + "}");
    state.frame = frame_by_name(tree, state.detail);
    state.root = made(nodes_.append(process_node_, state.frame));
    state.strings.assign(tree.strings().size(), kUnknown);
    state.frames.assign(tree.frames().size(), kUnknown);
    state.nodes.assign(tree.node_count(), kUnknown);
    state.nodes[0] = raw(state.root);
    threads_.push_back(std::move(state));
  }
  return threads_[raw(thread)];
}

FrameId MergedTree::frame_by_name(const ThreadTree& tree, StringId detail) {
  FrameKey key;
  key.kind = FrameKind::kThread;
  key.name = string(tree.name());
  key.detail = detail;
  return made(frames_.intern(key));
}

std::uint32_t& MergedTree::number_of(Place place) {
  return entry(state_of(place.thread).nodes, raw(place.node), kUnknown);
}

bool MergedTree::exists(Place place) const noexcept {
  return has_thread(place.thread) && raw(place.node) < trees_[place.thread].node_count();
}

FrameId MergedTree::frame(ThreadIndex thread, FrameId frame) {
  std::uint32_t& number = entry(state_of(thread).frames, raw(frame), kUnknown);
  if (number == kUnknown) {
    FrameKey key = trees_[thread].frame_key(frame);
    key.name = string(thread, key.name);
    key.file = string(thread, key.file);
    key.module = string(thread, key.module);
    key.detail = string(thread, key.detail);
    number = raw(made(frames_.intern(key)));
  }
  return FrameId{number};
}

StringId MergedTree::string(ThreadIndex thread, StringId string) {
  std::uint32_t& number = entry(state_of(thread).strings, raw(string), kUnknown);
  if (number == kUnknown) number = raw(this->string(trees_[thread].text(string)));
  return StringId{number};
}

// Tables report missing memory with an id; here it ends the snapshot.
NodeId MergedTree::made(NodeId node) const {
  if (node == kNoNode) throw std::bad_alloc();
  return node;
}
FrameId MergedTree::made(FrameId frame) const {
  if (frame == kNoFrame) throw std::bad_alloc();
  return frame;
}

}  // namespace leadline
