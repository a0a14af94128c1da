// What TensorFlow's executor did in one window of its profiler: sums of nodes by the function that Python called, of
// stages of tf.data, and how long nodes waited.
//
// A call of a function from Python has a number (`FunctionRun`), which every run of the executor for it tells
// (`ExecutorState::Process`); what such a run holds are the nodes (`path:Type`). Names and statistics of events:
// tensorflow/core/common_runtime/executor.cc, .../eager/execute.cc, tsl/profiler/backends/cpu/threadpool_listener.cc.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "xla/space.h"

namespace leadline::xla {

Wanted graph_window_wanted();

struct Values {
  uint64_t count = 0;
  int64_t sum = 0;
  int64_t min = 0;
  int64_t max = 0;
  void add(int64_t value) noexcept;
  void add(const Values& others) noexcept;
};

// Of spans: how long they took, and how long without what was in them.
struct Times {
  Values whole;
  int64_t own_ps = 0;
};

// A node in a step, or in all steps of a function.
struct GraphNode {
  int64_t step = 0;
  uint32_t node = kNoText;  // in text()
  uint32_t kind = kNoText;  // the type of its operation
  Times ran;
  Values taken_bytes;   // what it asked its allocator for
  Values elsewhere_ps;  // of one that holds no thread until it is done (collectives, tensors that are received)
  Values queued_ps;     // of its runs that were put into a pool: until a thread of it began
};

struct GraphStep {
  int64_t step = 0;
  uint32_t function = kNoText;  // as TensorFlow calls it
  int64_t start_ps = 0;
  uint32_t line = 0;
};

// A function that Python called, and its nodes over all steps of the window.
struct GraphFunction {
  uint32_t name = kNoText;
  std::vector<int64_t> steps;
  std::vector<GraphNode> nodes;
};

struct GraphWait {
  uint32_t node = kNoText;
  uint32_t kind = kNoText;
  Values ps;
};

struct GraphStage {
  uint32_t name = kNoText;
  Times ran;
};

// Of a node, or of a stage, which has no step (kUnknown) and no node; `line` is -1 for a node that holds no thread.
struct GraphSpan {
  int64_t line = -1;
  int64_t step = kUnknown;
  uint32_t node = kNoText;
  uint32_t kind = kNoText;
  int64_t start_ps = 0;
  int64_t duration_ps = 0;
};

class GraphWindow {
 public:
  // Nodes that a node of a function waits for, nullptr where it is not known.
  using Inputs = std::function<const std::vector<uint32_t>*(uint32_t node)>;

  // `space`, read with graph_window_wanted(), must live as long. `keep`: spans are wanted one by one.
  GraphWindow(const Space& space, bool keep);

  const std::vector<GraphStep>& steps() const noexcept { return steps_; }
  const std::vector<GraphFunction>& functions() const noexcept { return functions_; }
  const std::vector<GraphStage>& stages() const noexcept { return stages_; }
  const std::vector<GraphSpan>& spans() const noexcept { return spans_; }
  // How long nodes of a function began after the end of their last input. Those that ran several times in a step (in
  // loops) are left out, since nothing tells which run had which input, and those that no input is known of. Of inputs
  // that did not run their own inputs count: TensorFlow's optimizer took them out.
  std::vector<GraphWait> waits(const GraphFunction& function, const Inputs& inputs) const;

  std::string_view text(uint32_t number) const noexcept { return texts_[number]; }
  // The number of a text, which is kept.
  uint32_t number(std::string_view text);

 private:
  friend class GraphSweep;
  struct Ran {
    uint32_t node = kNoText;
    uint32_t kind = kNoText;
    int64_t start_ps = 0;
    int64_t end_ps = 0;
    uint64_t times = 1;
  };
  struct RanInStep {
    std::vector<Ran> nodes;
    std::unordered_map<uint32_t, size_t> places;
  };
  struct Ready {
    bool known = false;
    int64_t at_ps = 0;
  };
  static Ready ready(uint32_t node, const RanInStep& ran, const Inputs& inputs,
                     std::unordered_map<uint32_t, Ready>& found, int farthest);

  std::vector<GraphStep> steps_;
  std::vector<GraphFunction> functions_;
  std::vector<GraphStage> stages_;
  std::vector<GraphSpan> spans_;
  std::unordered_map<int64_t, RanInStep> ran_;
  std::vector<std::string_view> texts_{std::string_view()};
  std::deque<std::string> kept_;
  std::unordered_map<std::string_view, uint32_t> numbers_{{std::string_view(), kNoText}};
};

}  // namespace leadline::xla
