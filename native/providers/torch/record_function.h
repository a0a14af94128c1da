// The part of at::RecordFunction that torch exports, and what of its binary interface this provider relies on.
//
// Facts from ATen/record_function.h of torch 2.4 to 2.13. Nothing here is trusted before the self-test (probe.h) has
// seen it work.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/library.h"

namespace leadline::torch {

// What a start callback may hand to its end callback; we never do.
struct ObserverContext {
  virtual ~ObserverContext() = default;
};

// at::RecordFunction, whose members are read by offset only.
struct RecordFunction;

enum class Scope : uint8_t { kFunction = 0, kBackwardFunction = 1, kUserScope = 7 };
inline constexpr size_t kScopes = 10;

// at::RecordFunctionCallback
struct Callback {
  using Start = std::unique_ptr<ObserverContext> (*)(const RecordFunction&);
  using End = void (*)(const RecordFunction&, ObserverContext*);
  Start start = nullptr;
  End end = nullptr;
  double sampling_probability = 1.0;
  bool scopes[kScopes] = {};
  bool needs_inputs = false;
  bool needs_outputs = false;
  bool needs_ids = false;
};
static_assert(sizeof(Callback) == 40);

using Handle = uint64_t;
using Shapes = std::vector<std::vector<int64_t>>;
using Types = std::vector<std::string>;

struct Symbols {
  Handle (*add_global_callback)(Callback) = nullptr;
  void (*remove_callback)(Handle) = nullptr;
  const char* (*name)(const RecordFunction*) = nullptr;
  uint64_t (*current_thread)() = nullptr;
  Shapes (*input_shapes)(const RecordFunction&, bool flatten_lists) = nullptr;  // nullptr: shapes are not to be had
  Types (*input_types)(const RecordFunction&) = nullptr;
  void* old_input_types = nullptr;                                           // the same with std::string of the old ABI
  std::ostream& (*write_value)(std::ostream&, const void* value) = nullptr;  // a c10::IValue; nullptr: not to be had
  const void* (*debug_info)(uintptr_t kind) = nullptr;                       // of this thread; nullptr: not to be had
  uintptr_t communication_kind = 0;
  bool kinds_are_addresses = false;  // of debug information; numbers before torch 2.13
  // To put debug information of our own on a thread and take it away; all of them or none.
  std::shared_ptr<void> (*current_debug_info)() = nullptr;
  void (*push_debug_info)(uintptr_t kind, std::shared_ptr<void> info) = nullptr;
  void (*set_debug_info)(std::shared_ptr<void> info) = nullptr;
  std::vector<uintptr_t> observing;  // functions that torch runs because somebody observes it
  void (*current_node)() = nullptr;  // see ComingNode::Source
  bool old_strings = false;          // torch was built with the std::string of the old ABI

  // nullopt with one sentence in *why.
  static std::optional<Symbols> find(std::string* why);
};

}  // namespace leadline::torch
