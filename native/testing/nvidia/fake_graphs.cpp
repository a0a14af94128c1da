// CUDA graphs of the fake GPU: numbered, cloned, replayed and destroyed as the driver does it.
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
  const cupti::ResourceData resource{nullptr, nullptr, &data};
  callback(callback_user, cupti::Domain::kResource, static_cast<std::uint32_t>(which), &resource);
}

FakeGraph* FakeGpu::new_graph() {
  const std::lock_guard lock(mutex);
  auto* graph = keep(std::make_unique<FakeGraph>());
  graph->id = next_graph_++;
  return graph;
}

FakeGraph* FakeGpu::instantiate(FakeGraph* graph) {
  const std::lock_guard lock(mutex);
  auto* exec = new_graph();
  for (FakeGraphNode* original : graph->nodes) {
    const std::uint64_t id = std::uint64_t{exec->id} << 32 | static_cast<std::uint32_t>(original->id);
    auto* node = keep(std::make_unique<FakeGraphNode>(FakeGraphNode{id, original->kernel, original->duration_ns}));
    exec->nodes.push_back(node);
    graph_event(cupti::Resource::kGraphNodeCloned, exec, node, original, exec);
  }
  return exec;
}

void FakeGpu::graph_launch(FakeGraph* graph, FakeStream* stream, std::uint32_t correlation) {
  const std::lock_guard lock(mutex);
  std::int64_t at = std::max(tick(0) + 500, stream->ready_ns);
  const auto replayed = counting.contexts.find(context(stream->device));
  if (replayed != counting.contexts.end() && replayed->second.open) ++counting.graphs_replayed;
  for (FakeGraphNode* node : graph->nodes) {
    cupti::KernelRecord record{};
    record.kind = cupti::Kind::kConcurrentKernel;
    record.start = static_cast<std::uint64_t>(at + kCuptiEpoch);
    sampling.ran(context(stream->device), node->kernel, correlation);
    const std::int64_t start = at;
    at += sampling.duration(context(stream->device), node->duration_ns);
    counting.ran(stream->device, node->kernel, start, at);
    record.end = static_cast<std::uint64_t>(at + kCuptiEpoch);
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
    append(&record, sizeof record, record.kind);
  }
  stream->ready_ns = at;
}

void FakeGpu::destroy(FakeGraph* graph, bool executable) {
  const std::lock_guard lock(mutex);
  graph_event(executable ? cupti::Resource::kGraphExecDestroyStarting : cupti::Resource::kGraphDestroyStarting, graph,
              nullptr, nullptr, graph);
}

}  // namespace leadline::testing
