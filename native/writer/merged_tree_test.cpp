#include "writer/merged_tree.h"

#include <doctest/doctest.h>

#include <string>

using namespace leadline;

namespace {

struct Fixture {
  LossCounters losses;
  TreeRegistry registry{1'000'000, losses};

  static NodeId child(ThreadTree& tree, NodeId parent, std::string_view name) {
    FrameKey key;
    key.kind = FrameKind::kPython;
    key.name = tree.string(name);
    return tree.child(parent, tree.frame(key));
  }
};

// Names from below the process down to the node.
std::string path(const MergedTree& tree, NodeId node) {
  std::string text;
  for (; node != tree.process_node(); node = tree.nodes().parent(node)) {
    text = "/" + std::string(tree.strings().text(tree.frames()[tree.nodes().frame(node)].name)) + text;
  }
  return text;
}

std::int64_t sum(const MergedTree& tree, NodeId node) {
  std::int64_t total = 0;
  tree.nodes().for_each_metric(node, [&](const MetricKey&, const MetricValues& values) { total += values.sum; });
  return total;
}

}  // namespace

TEST_CASE("Threads stay apart, strings and frames become one") {
  Fixture f;
  ThreadTree& a = f.registry.create(1, "worker");
  ThreadTree& b = f.registry.create(2, "worker");
  Fixture::child(b, b.root(), "other");
  const NodeId in_a = Fixture::child(a, a.root(), "f");
  const NodeId in_b = Fixture::child(b, b.root(), "f");
  MergedTree tree(f.registry);
  tree.update("train.py", "{}");
  const NodeId x = tree.resolve(a.index(), in_a);
  const NodeId y = tree.resolve(b.index(), in_b);
  CHECK(x != y);
  CHECK(tree.nodes().frame(x) == tree.nodes().frame(y));
  CHECK(path(tree, x) == "/worker/f");
  CHECK(tree.nodes().parent(y) == tree.thread_node(b.index()));
  CHECK(tree.nodes().size() == 2 + 2 + 3);
}

TEST_CASE("Work under a graft hangs under the other thread's node, together with what is there") {
  Fixture f;
  ThreadTree& a = f.registry.create(1, "main");
  ThreadTree& b = f.registry.create(2, "autograd 1");
  ThreadTree& c = f.registry.create(3, "autograd 2");
  const NodeId forward = Fixture::child(a, a.root(), "linear");
  for (ThreadTree* tree : {&b, &c}) {
    const NodeId backward = Fixture::child(*tree, tree->graft(a.index(), forward), "backward");
    tree->add(Fixture::child(*tree, backward, "addmm"), MetricKind::kTime, kCpuDevice, kNoStream, 10);
  }
  a.add(Fixture::child(a, forward, "backward"), MetricKind::kTime, kCpuDevice, kNoStream, 1);
  MergedTree tree(f.registry);
  tree.update("p", "");
  const NodeId addmm = tree.resolve(b.index(), NodeId{3});
  CHECK(path(tree, addmm) == "/main/linear/backward/addmm");
  CHECK(sum(tree, addmm) == 20);
  CHECK(sum(tree, tree.nodes().parent(addmm)) == 1);
  CHECK(tree.broken_grafts() == 0);
}

TEST_CASE("What was measured once for both is call time and CPU time, together with what was measured apart") {
  Fixture f;
  ThreadTree& a = f.registry.create(1, "main");
  const NodeId add = Fixture::child(a, a.root(), "add");
  for (const std::int64_t leaf_ns : {5, 7}) a.add(add, kLeafTime, kCpuDevice, kNoStream, leaf_ns);
  a.add(add, MetricKind::kCallTime, kCpuDevice, kNoStream, 30);
  a.add(add, MetricKind::kTime, kCpuDevice, kNoStream, 20);
  MergedTree tree(f.registry);
  tree.update("p", "");
  std::size_t kinds = 0;
  tree.nodes().for_each_metric(tree.resolve(a.index(), add), [&](const MetricKey& key, const MetricValues& values) {
    ++kinds;
    CHECK(values.count == 3);
    CHECK(values.min == 5);
    if (key.metric == MetricKind::kCallTime) CHECK(values.sum == 42);
    if (key.metric == MetricKind::kTime) CHECK(values.sum == 32);
  });
  CHECK(kinds == 2);
}

TEST_CASE("Grafts lead through grafts, also of threads that came later") {
  Fixture f;
  ThreadTree& a = f.registry.create(1, "a");
  ThreadTree& b = f.registry.create(2, "b");
  ThreadTree& c = f.registry.create(3, "c");
  const NodeId in_c = Fixture::child(c, c.root(), "x");
  const NodeId in_b = Fixture::child(b, b.graft(c.index(), in_c), "y");
  const NodeId in_a = Fixture::child(a, a.graft(b.index(), in_b), "z");
  const NodeId onto_graft = Fixture::child(a, a.graft(b.index(), b.graft(c.index(), in_c)), "w");
  MergedTree tree(f.registry);
  tree.update("p", "");
  CHECK(path(tree, tree.resolve(a.index(), in_a)) == "/c/x/y/z");
  CHECK(path(tree, tree.resolve(a.index(), onto_graft)) == "/c/x/w");
}

TEST_CASE("A graft to nowhere falls under its own thread and is counted") {
  Fixture f;
  ThreadTree& a = f.registry.create(1, "a");
  const NodeId no_thread = Fixture::child(a, a.graft(ThreadIndex{9}, NodeId{0}), "x");
  const NodeId no_node = Fixture::child(a, a.graft(a.index(), NodeId{1'000}), "y");
  MergedTree tree(f.registry);
  tree.update("p", "");
  CHECK(path(tree, tree.resolve(a.index(), no_thread)) == "/a/x");
  CHECK(path(tree, tree.resolve(a.index(), no_node)) == "/a/y");
  CHECK(tree.broken_grafts() == 2);
  CHECK(tree.resolve(ThreadIndex{9}, NodeId{0}) == tree.process_node());
}

TEST_CASE("Grafts that point below themselves end under their thread") {
  Fixture f;
  ThreadTree& a = f.registry.create(1, "a");
  ThreadTree& b = f.registry.create(2, "b");
  // a: graft to b's node 2, which lies below b's graft to a's node 2, which lies below a's graft.
  const NodeId graft_a = a.graft(b.index(), NodeId{2});
  const NodeId x = Fixture::child(a, graft_a, "x");
  const NodeId graft_b = b.graft(a.index(), x);
  const NodeId y = Fixture::child(b, graft_b, "y");
  REQUIRE(x == NodeId{2});
  REQUIRE(y == NodeId{2});
  const NodeId itself = a.graft(a.index(), NodeId{a.node_count()});
  MergedTree tree(f.registry);
  tree.update("p", "");
  CHECK(tree.broken_grafts() == 2);
  CHECK(tree.resolve(a.index(), itself) == tree.thread_node(a.index()));
  const std::string x_path = path(tree, tree.resolve(a.index(), x));
  const std::string y_path = path(tree, tree.resolve(b.index(), y));
  CHECK(x_path == "/b/y/x");
  CHECK(y_path == "/b/y");
  for (std::uint32_t i = 1; i < tree.nodes().size(); ++i) CHECK(raw(tree.nodes().parent(NodeId{i})) < i);
}

TEST_CASE("A path of a hundred thousand frames needs no stack") {
  Fixture f;
  ThreadTree& a = f.registry.create(1, "a");
  ThreadTree& b = f.registry.create(2, "b");
  NodeId deep = b.root();
  for (int i = 0; i < 100'000; ++i) deep = Fixture::child(b, deep, i % 2 == 0 ? "even" : "odd");
  const NodeId leaf = Fixture::child(a, a.graft(b.index(), deep), "leaf");
  MergedTree tree(f.registry);
  tree.update("p", "");
  tree.resolve(a.index(), leaf);
  CHECK(tree.nodes().size() == 2 + 2 + 100'000 + 1);
}

TEST_CASE("Numbers stay while the trees grow, and measurements are taken anew") {
  Fixture f;
  ThreadTree& a = f.registry.create(1, "a");
  const NodeId outer = Fixture::child(a, a.root(), "outer");
  a.add(outer, MetricKind::kTime, kCpuDevice, kNoStream, 3);
  MergedTree tree(f.registry);
  tree.update("", "{}");
  const std::uint32_t before = tree.nodes().size();
  const NodeId known = tree.resolve(a.index(), outer);
  const NodeId process = tree.process_node();
  // Another thread, work below a graft, a node between others, names that become known later.
  ThreadTree& b = f.registry.create(2, "b");
  const NodeId grafted = Fixture::child(b, b.graft(a.index(), outer), "grafted");
  const NodeId inner = Fixture::child(a, outer, "inner");
  a.add(outer, MetricKind::kTime, kCpuDevice, kNoStream, 4);
  tree.update("train.py", "{\"rank\": 1}");
  CHECK(tree.resolve(a.index(), outer) == known);
  CHECK(tree.process_node() == process);
  CHECK(tree.strings().text(tree.frames()[tree.process_frame()].name) == "train.py");
  CHECK(sum(tree, known) == 7);
  CHECK(raw(tree.resolve(b.index(), grafted)) >= before);
  CHECK(raw(tree.resolve(a.index(), inner)) >= before);
  CHECK(path(tree, tree.resolve(b.index(), grafted)) == "/a/outer/grafted");
  const std::uint32_t after = tree.nodes().size();
  tree.update("train.py", "{\"rank\": 1}");
  CHECK(tree.nodes().size() == after);
  CHECK(sum(tree, known) == 7);
}

TEST_CASE("A node with as many streams as a thread keeps goes into the file whole") {
  Fixture f;
  ThreadTree& tree = f.registry.create(1, "main");
  const NodeId kernel = Fixture::child(tree, tree.root(), "kernel");
  for (std::int32_t stream = 0; stream < 2'000; ++stream) {
    for (const MetricKind metric : {MetricKind::kGpuTime, MetricKind::kLaunchLatency})
      tree.add(kernel, metric, 0, stream, 1);
  }
  MergedTree merged(f.registry);
  merged.update("train.py", "{}");
  CHECK(sum(merged, merged.resolve(tree.index(), kernel)) == 4'000);
}

TEST_CASE("A tree that serves thread after thread adds nothing to the file") {
  Fixture f;
  for (std::uint32_t i = 0; i < TreeRegistry::kDistinctThreads; ++i) f.registry.create(i + 1, "request");
  MergedTree tree(f.registry);
  tree.update("p", "");
  const std::uint32_t strings = tree.strings().size();
  const std::uint32_t frames = tree.frames().size();
  for (std::uint64_t tid = 1'000; tid < 1'100; ++tid) {
    f.registry.retire(f.registry[ThreadIndex{0}]);
    CHECK(&f.registry.create(tid, "request") == &f.registry[ThreadIndex{0}]);
    tree.update("p", "");
  }
  CHECK(tree.strings().size() == strings);
  CHECK(tree.frames().size() == frames);
}

namespace {

constexpr std::string_view kProgram = "XlaModule:#hlo_module=jit_step,program_id=7#";
NodeId phase(ThreadTree& tree, NodeId parent, std::string_view name) {
  FrameKey key;
  key.kind = FrameKind::kPhase;
  key.name = tree.string(name);
  return tree.child(parent, tree.frame(key));
}
CompiledFrame frame_of(FrameKind kind, std::string name) {
  CompiledFrame frame;
  frame.kind = kind;
  frame.name = std::move(name);
  return frame;
}
CompiledFrame line_of(std::string name) { return frame_of(FrameKind::kPython, std::move(name)); }
void explain(CompiledOperations* compiled) {
  compiled->put_program(7, frame_of(FrameKind::kOperator, "jit(step)"));
  compiled->put(7, "dot.1", {{{line_of("layer"), line_of("product")}, CompiledPart::kWhole}});
  compiled->put(7, "fusion.2", {{{line_of("gelu")}, 250'000}, {{line_of("layer"), line_of("bias")}, 750'000}});
}

}  // namespace

TEST_CASE("Lines stand for the titles of a compiled program, and share what an operation of several took") {
  Fixture f;
  ThreadTree& main = f.registry.create(1, "main");
  const NodeId call = phase(main, Fixture::child(main, main.root(), "train"), kProgram);
  const NodeId loop = phase(main, call, "Thunk:#hlo_op=while.9,unique_hlo_op_id=1#");
  const NodeId product = Fixture::child(main, phase(main, loop, "Thunk:#hlo_op=dot.1,unique_hlo_op_id=2#"), "kernel");
  const NodeId fused = Fixture::child(main, phase(main, call, "Thunk:#hlo_op=fusion.2,unique_hlo_op_id=3#"), "kernel");
  main.add(product, MetricKind::kGpuTime, kCpuDevice, kNoStream, 100);
  main.add(fused, MetricKind::kGpuTime, kCpuDevice, kNoStream, 101);
  main.add(fused, MetricKind::kRegisters, kCpuDevice, kNoStream, 64);
  CompiledOperations compiled;
  explain(&compiled);
  MergedTree tree(f.registry, &compiled);
  tree.update("train.py", "{}");
  CHECK(path(tree, tree.resolve(main.index(), product)) == "/main/train/jit(step)/layer/product/kernel");
  const NodeId largest = tree.resolve(main.index(), fused);
  CHECK(path(tree, largest) == "/main/train/jit(step)/layer/bias/kernel");
  CHECK(sum(tree, largest) == 76 + 64);  // registers are the kernel's, whoever it is of
  std::int64_t gpu_ns = 0;
  std::uint64_t calls = 0;
  for (std::uint32_t at = 0; at < tree.nodes().size(); ++at) {
    tree.nodes().for_each_metric(NodeId{at}, [&](const MetricKey& key, const MetricValues& values) {
      if (key.metric != MetricKind::kGpuTime) return;
      gpu_ns += values.sum;
      calls += values.count;
      CHECK(values.min <= values.sum);
      CHECK(values.sum <= values.max);
    });
  }
  CHECK(gpu_ns == 201);
  CHECK(calls == 3);
  // what nobody has explained keeps its title
  CHECK(path(tree, tree.resolve(main.index(), loop)).ends_with("/Thunk:#hlo_op=while.9,unique_hlo_op_id=1#"));
}

TEST_CASE("Kernels of a recorded graph stand on the lines that they are of, below the call that launched it") {
  Fixture f;
  ThreadTree& main = f.registry.create(1, "main");
  ThreadTree& records = f.registry.create(2, "records");
  const NodeId call = phase(main, Fixture::child(main, main.root(), "train"), kProgram);
  const NodeId buffer = phase(main, call, "Thunk:#hlo_op=command_buffer_1#");
  const NodeId recorded = phase(records, records.graft(main.index(), buffer), "captured at");
  const NodeId again = phase(records, Fixture::child(records, recorded, "warm up"), kProgram);
  const NodeId kernel = Fixture::child(records, phase(records, again, "Thunk:#hlo_op=dot.1#"), "kernel");
  records.add(kernel, MetricKind::kGpuTime, kCpuDevice, kNoStream, 100);
  CompiledOperations compiled;
  explain(&compiled);
  MergedTree tree(f.registry, &compiled);
  tree.update("train.py", "{}");
  CHECK(path(tree, tree.resolve(records.index(), kernel)) == "/main/train/jit(step)/layer/product/kernel");
}

TEST_CASE("What is explained later has its lines from then on, and its old place is left empty") {
  Fixture f;
  ThreadTree& main = f.registry.create(1, "main");
  const NodeId call = phase(main, Fixture::child(main, main.root(), "train"), kProgram);
  const NodeId kernel = Fixture::child(main, phase(main, call, "Thunk:#hlo_op=dot.1#"), "kernel");
  main.add(kernel, MetricKind::kGpuTime, kCpuDevice, kNoStream, 100);
  CompiledOperations compiled;
  MergedTree tree(f.registry, &compiled);
  tree.update("train.py", "{}");
  const NodeId before = tree.resolve(main.index(), kernel);
  CHECK(path(tree, before) == "/main/train/" + std::string(kProgram) + "/Thunk:#hlo_op=dot.1#/kernel");
  CHECK(sum(tree, before) == 100);
  explain(&compiled);
  tree.update("train.py", "{}");
  const NodeId after = tree.resolve(main.index(), kernel);
  CHECK(path(tree, after) == "/main/train/jit(step)/layer/product/kernel");
  CHECK(sum(tree, after) == 100);
  CHECK(sum(tree, before) == 0);
  const std::uint32_t nodes = tree.nodes().size();
  tree.update("train.py", "{}");
  CHECK(tree.resolve(main.index(), kernel) == after);
  CHECK(tree.nodes().size() == nodes);
}

TEST_CASE("Many launches of a kernel of several operations are divided among these, and add up to what there were") {
  Fixture f;
  ThreadTree& main = f.registry.create(1, "main");
  const NodeId call = phase(main, Fixture::child(main, main.root(), "train"), kProgram);
  const NodeId fused = Fixture::child(main, phase(main, call, "Thunk:#hlo_op=fusion.2,unique_hlo_op_id=3#"), "kernel");
  constexpr std::uint64_t kLaunches = 1003;
  for (std::uint64_t i = 0; i < kLaunches; ++i) {
    main.add(fused, MetricKind::kGpuTime, kCpuDevice, kNoStream, 100 + static_cast<std::int64_t>(i % 7));
    main.add(fused, MetricKind::kRegisters, kCpuDevice, kNoStream, 64);
  }
  CompiledOperations compiled;
  explain(&compiled);
  MergedTree tree(f.registry, &compiled);
  tree.update("train.py", "{}");
  std::uint64_t launches[2] = {0, 0};
  std::int64_t sums[2] = {0, 0};
  for (std::uint32_t at = 0; at < tree.nodes().size(); ++at) {
    tree.nodes().for_each_metric(NodeId{at}, [&](const MetricKey& key, const MetricValues& values) {
      const bool time = key.metric == MetricKind::kGpuTime;
      launches[time ? 0 : 1] += values.count;
      sums[time ? 0 : 1] += values.sum;
      const auto count = static_cast<std::int64_t>(values.count);
      CHECK(values.min * count <= values.sum);
      CHECK(values.sum <= values.max * count);
      CHECK(values.max <= 106);
      if (time) CHECK((values.count == 752 || values.count == 251));
    });
  }
  CHECK(launches[0] == kLaunches);
  CHECK(launches[1] == kLaunches);
  CHECK(sums[1] == 64 * static_cast<std::int64_t>(kLaunches));
  std::int64_t whole = 0;
  for (std::uint64_t i = 0; i < kLaunches; ++i) whole += 100 + static_cast<std::int64_t>(i % 7);
  CHECK(sums[0] == whole);
}
