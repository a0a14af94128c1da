#include "collector/lane.h"

#include <algorithm>
#include <new>

#include "base/clock.h"
#include "base/losses.h"

namespace leadline {

void Lane::begin(ThreadTree& its_tree, uint8_t collector) noexcept {
  forward = nullptr;
  sequence_ = -1;
  numbered_ = kNoNode;
  translated_.clear();
  copies_.clear();
  places.clear();
  native_places.clear();
  walks.clear();
  native_frames_.clear();
  tree = &its_tree;
  root_place_ = packed_place(collector, tree->index(), tree->root());
  tree->forget_names();  // of whoever had the tree before
  backward_phase = phase("backward");
  operator_ns = its_tree.stats().operator_ns.load(std::memory_order_relaxed);  // whoever had the tree before
  until_look_ = drawn_ = 1;
  looked_at_ns_ = now_ns();
  bound = false;
  border_cpu_ns = 0;
  has_cpu_clock = pthread_getcpuclockid(pthread_self(), &cpu_clock) == 0;
  cpu_stands_ns_.store(kCpuRuns, std::memory_order_relaxed);
  cpu_paused_ns_.store(0, std::memory_order_relaxed);
  cpu_at_begin_ns = thread_cpu_ns();
  cpu_begin_ns = cpu_at_begin_ns - its_tree.stats().cpu_ns.load(std::memory_order_relaxed);
}

void Lane::looked(int64_t begin_ns, int64_t duration_ns) noexcept {
  constexpr int64_t kEvery = 1'000'000;
  constexpr int64_t kMost = 4096;
  const int64_t ran_ns =
      std::clamp<int64_t>(cpu_ns() - look_cpu_ns_, 0, duration_ns);  // what follows its end is not its
  ThreadStats& stats = tree->stats();
  stats.looked_ns.store(stats.looked_ns.load(std::memory_order_relaxed) + duration_ns, std::memory_order_relaxed);
  stats.looked_cpu_ns.store(stats.looked_cpu_ns.load(std::memory_order_relaxed) + ran_ns, std::memory_order_relaxed);
  const int64_t end_ns = begin_ns + duration_ns;
  const int64_t passed_ns = std::max<int64_t>(end_ns - looked_at_ns_, 1);
  const auto mean = static_cast<uint32_t>(std::clamp<int64_t>(kEvery * drawn_ / passed_ns, 1, kMost));
  random_ = random_ * 1664525 + 1013904223;  // Numerical Recipes' congruential generator; its high bits are good
  drawn_ = static_cast<int32_t>(1 + (uint64_t{random_} * (2 * mean - 1) >> 32));
  until_look_ = drawn_;
  looked_at_ns_ = end_ns;
}

void Lane::phase_ended(const Scope& scope, PathFrameId frame, int64_t duration_ns) noexcept {
  if (scope.kind != ScopeKind::kPhase) return;
  const std::string_view name = frames[frame].name;
  StepColumn column = StepColumn::kColumns;
  if (name == "data loading") {
    column = StepColumn::kData;
  } else if (name == "optimizer" || name == "zero_grad") {
    column = StepColumn::kOptimizer;
  } else if (name == "compile") {
    column = StepColumn::kCompile;
  } else if (name == "garbage collection") {
    column = StepColumn::kCollection;
  } else if (name == "saving") {
    column = StepColumn::kSaving;
  } else {
    return;
  }
  const int64_t own_ns = std::max<int64_t>(duration_ns - (phases_ns - scope.parts_mark), 0);
  step_values[column] += own_ns;
  phases_ns += own_ns;
}

FrameId Lane::plain(FrameKind kind, std::string_view name, std::string_view file, int32_t line, std::string_view detail,
                    uint64_t address) noexcept {
  FrameKey key;
  key.kind = kind;
  key.name = tree->string(name);
  key.file = tree->string(file);
  key.line = line;
  key.detail = tree->string(detail);
  key.address = address;
  return tree->frame(key);
}

FrameId Lane::frame(const leadline_path_frame& named) noexcept {
  const auto text = [this](const char* given) { return tree->string(given == nullptr ? "" : given); };
  FrameKey key;
  key.kind = static_cast<FrameKind>(named.kind);
  key.name = text(named.name);
  key.file = text(named.file);
  key.line = named.line;
  key.first_line = named.first_line;
  key.module = text(named.module);
  key.detail = text(named.detail);
  key.address = named.address;
  return tree->frame(key);
}

FrameId Lane::phase(std::string_view name) noexcept { return plain(FrameKind::kPhase, name, {}, 0, {}); }

FrameId Lane::translate(uint32_t index) noexcept {
  const PathFrame& frame = frames[PathFrameId{index}];
  FrameKey key;
  key.kind = frame.kind;
  key.name = tree->string(frame.name);
  key.file = tree->string(frame.file);
  key.line = frame.line;
  key.first_line = frame.first_line;
  key.module = tree->string(frame.module);
  key.detail = tree->string(frame.detail);
  key.address = frame.address;
  const FrameId id = tree->frame(key);
  try {
    if (index >= translated_.size()) translated_.resize(frames.size(), kNoFrame);
    translated_[index] = id;
  } catch (const std::bad_alloc&) {
    return id;  // translated again next time
  }
  return id;
}

NodeId Lane::graft(ThreadIndex thread, NodeId node) noexcept {
  return thread == tree->index() ? node : tree->graft(thread, node);
}

NodeId Lane::copy_path(const ThreadTree& other, NodeId node, NodeId parent) noexcept {
  const Copy key{other.index(), node, parent};
  const auto known = copies_.find(key);
  if (known != copies_.end()) return known->second;
  NodeId at = parent;
  try {
    std::vector<NodeId> steps;
    for (NodeId step = node; step != other.root() && !other.is_graft(step); step = other.parent(step))
      steps.push_back(step);
    for (size_t i = steps.size(); i-- > 0;) {
      const FrameKey& from = other.frame_key(other.frame_of(steps[i]));
      FrameKey to = from;
      to.name = tree->string(other.text(from.name));
      to.file = tree->string(other.text(from.file));
      to.module = tree->string(other.text(from.module));
      to.detail = tree->string(other.text(from.detail));
      at = tree->child(at, tree->frame(to));
    }
    copies_.emplace(key, at);
  } catch (const std::bad_alloc&) {
    losses().count(LossKind::kInternalError, 1, "no memory for the path at which a graph was captured");
  }
  return at;
}

}  // namespace leadline
