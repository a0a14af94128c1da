// PyTorch operators, user scopes and tensor memory as monitor events.
#pragma once

#include <functional>
#include <string>

#include "providers/torch/memory_hooks.h"
#include "providers/torch/probe.h"
#include "providers/torch/record_function.h"

namespace leadline::torch {

struct AttachOptions {
  bool memory = true;
  bool shapes = false;
};

struct AttachResult {
  bool ok = false;        // operators are measured
  bool sequence = false;  // backward operators find their forward
  bool memory = false;
  bool shapes = false;
  std::string message;  // sentences about what is missing, or empty
};

// One per process. All functions under the GIL or before threads run.
class Provider {
 public:
  static Provider& instance();
  // `run_known_operator` runs one and says which; it is called a few times.
  AttachResult attach(const AttachOptions& options, const std::function<ProbeRun()>& run_known_operator);
  void detach() noexcept;
  // Callbacks stay registered but do nothing (pause) or work again.
  void set_running(bool running) noexcept;
  bool attached() const noexcept { return attached_; }

 private:
  MemoryHooks memory_;
  Handle handles_[3] = {};
  bool attached_ = false;
};

}  // namespace leadline::torch
