#include "cct/compiled_operations.h"

#include <charconv>

#include "base/abandon.h"

namespace leadline {
namespace {

// The value behind the last `key` of a title, up to the next comma or the end; names of operations and modules may hold
// anything, so what comes last is the title's own.
std::string_view last_value(std::string_view title, std::string_view key) noexcept {
  const std::size_t at = title.rfind(key);
  if (at == std::string_view::npos) return {};
  std::string_view value = title.substr(at + key.size());
  return value.substr(0, value.find_first_of(",#"));
}

}  // namespace

void CompiledOperations::put_program(std::uint64_t program, CompiledFrame frame) {
  const std::lock_guard lock(mutex_);
  Program& known = programs_[program];
  if (known.frame != nullptr) return;
  known.frame = std::make_unique<const CompiledFrame>(std::move(frame));
  version_.fetch_add(1, std::memory_order_release);
}

void CompiledOperations::put(std::uint64_t program, std::string operation, const CompiledParts& parts) {
  if (parts.empty()) return;
  const std::lock_guard lock(mutex_);
  if (programs_[program].operations.try_emplace(std::move(operation), parts).second)
    version_.fetch_add(1, std::memory_order_release);
}

void CompiledOperations::after_fork() noexcept {
  if (!renew(mutex_)) abandon(programs_);
}

const CompiledFrame* CompiledOperations::program(std::uint64_t program) const {
  const std::lock_guard lock(mutex_);
  const auto known = programs_.find(program);
  return known == programs_.end() ? nullptr : known->second.frame.get();
}

const CompiledParts* CompiledOperations::operation(std::uint64_t program, std::string_view operation) const {
  const std::lock_guard lock(mutex_);
  const auto known = programs_.find(program);
  if (known == programs_.end()) return nullptr;
  const auto found = known->second.operations.find(operation);
  return found == known->second.operations.end() ? nullptr : &found->second;
}

CompiledTitle read_title(std::string_view title) noexcept {
  CompiledTitle read;
  if (title.starts_with("XlaModule:#")) {
    const std::string_view number = last_value(title, "program_id=");
    read.module = last_value(title, "hlo_module=");
    const auto parsed = std::from_chars(number.data(), number.data() + number.size(), read.program);
    if (parsed.ec == std::errc() && parsed.ptr == number.data() + number.size()) read.of = CompiledTitle::Of::kProgram;
  } else if (title.starts_with("Thunk:#")) {
    read.operation = last_value(title, "hlo_op=");
    if (!read.operation.empty()) read.of = CompiledTitle::Of::kOperation;
  }
  return read;
}

CompiledTitle title_of(const ThreadTree& tree, NodeId node) noexcept {
  if (node == tree.root() || tree.is_graft(node)) return {};
  const FrameKey& key = tree.frame_key(tree.frame_of(node));
  return key.kind == FrameKind::kPhase ? read_title(tree.text(key.name)) : CompiledTitle();
}

ProgramAbove program_above(const TreeRegistry& trees, ThreadIndex thread, NodeId operation) noexcept {
  ProgramAbove found;
  // Grafts may point in a circle, which the writer breaks; a path is never this long.
  constexpr int kMostSteps = 1 << 16;
  NodeId node = operation;
  for (int step = 0; step < kMostSteps && raw(thread) < trees.size(); ++step) {
    const ThreadTree& tree = trees[thread];
    if (node == tree.root() || raw(node) >= tree.node_count()) break;
    if (tree.is_graft(node)) {
      const ThreadTree::GraftTarget target = tree.graft_target(node);
      thread = target.thread;
      node = target.node;
      continue;
    }
    const CompiledTitle title = title_of(tree, node);
    if (title.of == CompiledTitle::Of::kProgram && (!found || title.program == found.program))
      found = {thread, node, title.program};
    node = tree.parent(node);
  }
  return found;
}

std::map<std::uint64_t, std::uint64_t> titled_runs(const TreeRegistry& trees) {
  std::map<std::uint64_t, std::uint64_t> runs;
  trees.for_each([&](const ThreadTree& tree) {
    const std::uint32_t count = tree.node_count();
    for (std::uint32_t at = 0; at < count; ++at) {
      const CompiledTitle title = title_of(tree, NodeId{at});
      if (title.of != CompiledTitle::Of::kProgram || tree.parent(NodeId{at}) == tree.root()) continue;
      tree.nodes().for_each_metric(NodeId{at}, [&](const MetricKey& key, const MetricValues& values) {
        if (key.metric == MetricKind::kCallTime || key.metric == kLeafTime) runs[title.program] += values.count;
      });
    }
  });
  return runs;
}

std::set<UnknownOperation> unknown_operations(const TreeRegistry& trees, const CompiledOperations& known) {
  std::set<UnknownOperation> unknown;
  trees.for_each([&](const ThreadTree& tree) {
    const std::uint32_t count = tree.node_count();
    for (std::uint32_t at = 0; at < count; ++at) {
      const CompiledTitle title = title_of(tree, NodeId{at});
      if (title.of == CompiledTitle::Of::kProgram && known.program(title.program) == nullptr)
        unknown.insert({title.program, {}, std::string(title.module)});
      if (title.of != CompiledTitle::Of::kOperation) continue;
      const ProgramAbove above = program_above(trees, tree.index(), NodeId{at});
      if (above && known.operation(above.program, title.operation) == nullptr)
        unknown.insert({above.program, std::string(title.operation), {}});
    }
  });
  return unknown;
}

}  // namespace leadline
