// Feeds the native core from a text and writes the segment it makes of it, so that tests in other languages can
// compare.
//
//   cct_replay OUTPUT.segment [MAX_NODES] < EVENTS
//
// One event a line, fields separated by one space, text percent-encoded, "%" for empty text, kinds by number. Threads,
// and the nodes of a thread, are numbered in the order in which the lines make them; node 0 of a thread is its root.
//
//   thread TID NAME
//   node THREAD PARENT KIND NAME FILE LINE FIRST_LINE MODULE ADDRESS DETAIL
//   graft THREAD TARGET_THREAD TARGET_NODE
//   add THREAD NODE METRIC DEVICE STREAM VALUE
//   allocate THREAD NODE ADDRESS BYTES DEVICE
//   release ADDRESS
//   event THREAD NODE START_NS DURATION_NS KIND BYTES
//   stats THREAD OPERATOR_NS DATA_NS FIRST_NS LAST_NS CPU_NS
//   device INDEX NAME
//   loss KIND COUNT DETAIL
#include <cstdlib>
#include <exception>
#include <iostream>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "cct/memory_ledger.h"
#include "cct/tree_registry.h"
#include "collector/event_window.h"
#include "writer/segment.h"

namespace {

using namespace leadline;

class Line {
 public:
  explicit Line(const std::string& text) : fields_(text) {}

  std::int64_t number() { return std::stoll(field()); }
  template <class T>
  T number_as() {
    return static_cast<T>(number());
  }
  std::string text() {
    const std::string encoded = field();
    std::string decoded;
    for (std::size_t i = 0; i < encoded.size() && encoded != "%"; ++i) {
      if (encoded[i] != '%') {
        decoded += encoded[i];
        continue;
      }
      decoded += static_cast<char>(std::stoi(encoded.substr(i + 1, 2), nullptr, 16));
      i += 2;
    }
    return decoded;
  }
  std::string field() {
    std::string field;
    if (!(fields_ >> field)) throw std::invalid_argument("a field is missing");
    return field;
  }

 private:
  std::istringstream fields_;
};

class Replay {
 public:
  explicit Replay(std::uint64_t max_nodes) : registry_(max_nodes, losses_), ledger_(losses_), window_(losses_) {}

  void play(Line line) {
    const std::string verb = line.field();
    if (verb == "thread") return thread(line);
    if (verb == "node") return node(line);
    if (verb == "graft") return graft(line);
    if (verb == "add") return add(line);
    if (verb == "allocate") return allocate(line);
    if (verb == "release") return static_cast<void>(ledger_.release(line.number_as<std::uint64_t>()));
    if (verb == "event") return event(line);
    if (verb == "stats") return stats(line);
    if (verb == "device") return device(line);
    if (verb == "loss") return loss(line);
    throw std::invalid_argument("unknown event " + verb);
  }

  WriteResult write(const std::string& path) {
    const ProcessInfo process{4711, 1, 3, 1, "replayed program", 1'000, 2'000, true};
    return write_segment(path, {registry_, losses_, process, &ledger_, &window_, &devices_});
  }

 private:
  struct Thread {
    ThreadTree* tree;
    std::vector<NodeId> nodes;
    EventLane* lane = nullptr;
  };

  Thread& thread_of(Line& line) { return threads_.at(line.number_as<std::size_t>()); }
  static NodeId node_of(Thread& thread, Line& line) { return thread.nodes.at(line.number_as<std::size_t>()); }

  void thread(Line& line) {
    const auto tid = line.number_as<std::uint64_t>();
    ThreadTree& tree = registry_.create(tid, line.text());
    threads_.push_back({&tree, {tree.root()}});
  }
  void node(Line& line) {
    Thread& thread = thread_of(line);
    const NodeId parent = node_of(thread, line);
    ThreadTree& tree = *thread.tree;
    FrameKey key;
    key.kind = line.number_as<FrameKind>();
    key.name = tree.string(line.text());
    key.file = tree.string(line.text());
    key.line = line.number_as<std::int32_t>();
    key.first_line = line.number_as<std::int32_t>();
    key.module = tree.string(line.text());
    key.address = line.number_as<std::uint64_t>();
    key.detail = tree.string(line.text());
    thread.nodes.push_back(tree.child(parent, tree.frame(key)));
  }
  void graft(Line& line) {
    Thread& thread = thread_of(line);
    Thread& target = thread_of(line);
    thread.nodes.push_back(thread.tree->graft(target.tree->index(), node_of(target, line)));
  }
  void add(Line& line) {
    Thread& thread = thread_of(line);
    const NodeId node = node_of(thread, line);
    const auto metric = line.number_as<MetricKind>();
    const auto device = line.number_as<std::int16_t>();
    const auto stream = line.number_as<std::int32_t>();
    thread.tree->add(node, metric, device, stream, line.number());
  }
  void allocate(Line& line) {
    Thread& thread = thread_of(line);
    const NodeId node = node_of(thread, line);
    const auto address = line.number_as<std::uint64_t>();
    const std::int64_t bytes = line.number();
    ledger_.allocate(address, bytes, line.number_as<std::int16_t>(), thread.tree->index(), node);
  }
  void event(Line& line) {
    if (!window_.is_open()) window_.open(std::numeric_limits<std::uint32_t>::max());
    Thread& thread = thread_of(line);
    if (thread.lane == nullptr) thread.lane = &window_.create_lane();
    TraceEvent event;
    event.tree = event.thread = thread.tree->index();
    event.node = node_of(thread, line);
    event.start_ns = line.number();
    event.duration_ns = line.number();
    event.kind = line.number_as<EventKind>();
    event.bytes = line.number();
    thread.lane->add(event);
  }
  void stats(Line& line) {
    ThreadStats& stats = thread_of(line).tree->stats();
    for (auto* value : {&stats.operator_ns, &stats.data_ns, &stats.first_ns, &stats.last_ns, &stats.cpu_ns}) {
      value->store(line.number());
    }
  }
  void device(Line& line) {
    DeviceDescription description;
    description.index = line.number_as<std::int32_t>();
    description.name = line.text();
    devices_.describe(std::move(description));
  }
  void loss(Line& line) {
    const auto kind = line.number_as<LossKind>();
    const auto count = line.number_as<std::uint64_t>();
    losses_.count(kind, count, line.text());
  }

  LossCounters losses_;
  TreeRegistry registry_;
  MemoryLedger ledger_;
  EventWindow window_;
  DeviceTable devices_;
  std::vector<Thread> threads_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    std::cerr << "usage: cct_replay OUTPUT.segment [MAX_NODES] < EVENTS\n";
    return 2;
  }
  std::string text;
  int number = 0;
  try {
    Replay replay(argc == 3 ? std::stoull(argv[2]) : std::numeric_limits<std::uint32_t>::max());
    while (std::getline(std::cin, text)) {
      ++number;
      replay.play(Line(text));
    }
    const WriteResult result = replay.write(argv[1]);
    if (result) return 0;
    std::cerr << describe(result, argv[1]) << "\n";
    return 1;
  } catch (const std::exception& error) {
    std::cerr << "line " << number << " (" << text << ") cannot be replayed: " << error.what() << "\n";
    return 2;
  }
}
