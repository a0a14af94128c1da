// What events of TensorFlow's executor and its pools stand for, by their names.
#pragma once

#include <cstdint>
#include <string_view>

namespace leadline::xla {

enum class GraphEvent : uint8_t {
  kOther,
  kFunction,  // Python calls a function
  kRun,       // a step of a function
  kProcess,   // a thread executes nodes of a step
  kNode,
  kStage,  // of tf.data
  kAllocates,
  kPuts,    // work goes into a pool
  kTakes,   // a thread of a pool takes it up
  kLeaves,  // and has done it
  kBegins,  // a node that holds no thread
  kEnds,
};

struct NamedEvent {
  GraphEvent what = GraphEvent::kOther;
  std::string_view name;  // of the function, node or stage
  std::string_view kind;  // the type of a node's operation
};

NamedEvent graph_event(std::string_view name) noexcept;

}  // namespace leadline::xla
