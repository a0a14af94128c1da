// Everything the monitor keeps for one thread. Touched by its own thread only, except for `busy` and `next`.
#pragma once

#include <atomic>
#include <cstdint>

#include "stack/call_path.h"

namespace leadline {

struct ThreadState {
  explicit ThreadState(const PythonSource* python, ModuleNames* modules) : path(python, modules) {}

  CallPath path;
  void* subscriber = nullptr;  // the in-process subscriber's own state for this thread
  uint64_t tid = 0;
  uint64_t life = 0;  // no two threads have the same, also when one takes over the state of the other
  uint32_t epoch = 0;
  uint32_t generation = 0;
  uint32_t operators_open = 0;
  // Own cost, measured on every kCostSample-th event and scaled when read.
  std::atomic<uint64_t> events{0};
  std::atomic<int64_t> sampled_ns{0};
  std::atomic<uint64_t> sampled{0};
  std::atomic<size_t> held_bytes{0};  // of the frame tables, as of the last sample
  std::atomic<bool> busy{false};      // inside an event; unregister waits for it
  std::atomic<bool> alive{true};
  ThreadState* next = nullptr;  // list of all states, newest first; never shortened
};

}  // namespace leadline
