// CUDA graphs of the fake GPU: numbered, cloned, replayed and destroyed as the driver does it; and what CUPTI tells of
// the host.
#include <algorithm>

#include "testing/nvidia/fake_gpu.h"

namespace leadline::testing {

void FakeGpu::graph_event(cupti::Resource which, FakeGraph* graph, FakeGraphNode* node, FakeGraphNode* original,
                          void* exec) {
  if (!is_enabled(cupti::Domain::kResource, static_cast<std::uint32_t>(which))) return;
  cupti::GraphData data{};
  data.graph = graph;
  data.node = node;
  data.original_node = original;
  data.graph_exec = exec;
  data.node_type = node != nullptr && node->held != nullptr ? cupti::kNodeOfGraph : 0;
  const cupti::ResourceData resource{nullptr, nullptr, &data};
  callback(callback_user, cupti::Domain::kResource, static_cast<std::uint32_t>(which), &resource);
}

FakeGraph* FakeGpu::new_graph() {
  const std::lock_guard lock(mutex);
  auto* graph = keep(std::make_unique<FakeGraph>());
  graph->id = next_graph_++;
  return graph;
}

void FakeGpu::add_graph(FakeGraph* graph, FakeGraph* inner) {
  const std::lock_guard lock(mutex);
  const std::uint64_t id = std::uint64_t{graph->id} << 32 | graph->nodes.size();
  auto* node = keep(std::make_unique<FakeGraphNode>(FakeGraphNode{id, "", 0, inner}));
  graph->nodes.push_back(node);
  graph_event(cupti::Resource::kGraphNodeCreated, graph, node, nullptr, nullptr);
}

// As the driver of CUDA 13.0 does it: a graph that is a node is cloned under a number of its own, before its node is.
// What runs for its nodes are further nodes of the whole, behind the whole's own, of which nothing is told; nodes that
// the driver adds for itself come last.
FakeGraph* FakeGpu::instantiate(FakeGraph* graph) {
  const std::lock_guard lock(mutex);
  auto* exec = new_graph();
  std::vector<FakeGraphNode*> within;
  const auto clone = [&](FakeGraph* into, const FakeGraphNode* original, const auto& self) -> void {
    if (original->held != nullptr) {
      FakeGraph* held = new_graph();
      for (const FakeGraphNode* inner : original->held->nodes) self(held, inner, self);
    }
    const std::uint64_t id = std::uint64_t{into->id} << 32 | static_cast<std::uint32_t>(original->id);
    auto* node = keep(std::make_unique<FakeGraphNode>(*original));
    node->id = id;
    if (into == exec) {
      into->nodes.push_back(node);
    } else if (original->held == nullptr) {
      within.push_back(keep(std::make_unique<FakeGraphNode>(*original)));
    }
    graph_event(cupti::Resource::kGraphNodeCreated, into, node, nullptr, exec);
    graph_event(cupti::Resource::kGraphNodeCloned, into, node, const_cast<FakeGraphNode*>(original), exec);
  };
  for (const FakeGraphNode* original : graph->nodes) clone(exec, original, clone);
  std::uint64_t next = std::uint64_t{exec->id} << 32 | exec->nodes.size();
  for (FakeGraphNode* node : within) node->id = next++;
  if (!within.empty()) {
    auto* own = keep(std::make_unique<FakeGraphNode>(FakeGraphNode{next, "", 0}));
    graph_event(cupti::Resource::kGraphNodeCreated, exec, own, nullptr, exec);
  }
  std::erase_if(exec->nodes, [](const FakeGraphNode* node) { return node->held != nullptr; });
  exec->nodes.insert(exec->nodes.begin(), within.begin(), within.end());
  return exec;
}

void FakeGpu::graph_launch(FakeGraph* graph, FakeStream* stream, std::uint32_t correlation) {
  const std::lock_guard lock(mutex);
  std::int64_t at = std::max(tick(0) + 500, stream->ready_ns);
  const auto replayed = counting.contexts.find(context(stream->device));
  if (replayed != counting.contexts.end() && replayed->second.open) ++counting.graphs_replayed;
  for (FakeGraphNode* node : graph->nodes) {
    cupti::KernelRecord record{};
    record.kind = kernel_kind();
    record.start = static_cast<std::uint64_t>(at + epoch());
    sampling.ran(context(stream->device), node->kernel, correlation);
    const std::int64_t start = at;
    at += sampling.duration(context(stream->device), node->duration_ns);
    counting.ran(stream->device, node->kernel, start, at);
    record.end = static_cast<std::uint64_t>(at + epoch());
    record.device_id = static_cast<std::uint32_t>(stream->device);
    record.context_id = context(stream->device)->id;
    record.stream_id = stream->id;
    record.grid[0] = record.grid[1] = record.grid[2] = 1;
    record.block[0] = 32;
    record.block[1] = record.block[2] = 1;
    record.registers_per_thread = 32;
    record.correlation_id = correlation;
    record.graph_node_id = node->id;
    record.graph_id = graph->id;
    record.name = names_.insert(node->kernel).first->c_str();
    if (keeps_truth) truth.emplace_back(start, at);
    append(&record, sizeof record, record.kind, record.end);
  }
  stream->ready_ns = at;
}

void FakeGpu::destroy(FakeGraph* graph, bool executable) {
  const std::lock_guard lock(mutex);
  graph_event(executable ? cupti::Resource::kGraphExecDestroyStarting : cupti::Resource::kGraphDestroyStarting, graph,
              nullptr, nullptr, graph);
}

void FakeGpu::overhead(cupti::OverheadKind kind, std::int64_t duration_ns, std::uint32_t correlation) {
  const std::lock_guard lock(mutex);
  cupti::OverheadRecord record{};
  record.kind = cupti::Kind::kOverhead;
  record.overhead = kind;
  record.start = static_cast<std::uint64_t>(now_ns.load() + epoch());
  record.end = record.start + static_cast<std::uint64_t>(duration_ns);
  record.correlation_id = correlation;
  append(&record, sizeof record, record.kind, record.end);
}

}  // namespace leadline::testing
