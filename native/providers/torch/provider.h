// PyTorch operators, user scopes and tensor memory as monitor events.
#pragma once

#include "providers/provider.h"
#include "providers/torch/memory_hooks.h"
#include "providers/torch/probe.h"
#include "providers/torch/quiet_guards.h"
#include "providers/torch/record_function.h"

namespace leadline::torch {

// One per process. start() takes `self_test`, a call that runs one known operator and answers its `operator` name and
// `sequence` number; it is called a few times. status() adds `sequence` (backward operators find their forward),
// `memory` and `shapes` to `ok` and `message`, and `slower`: why measuring costs more with this torch, or empty.
class Provider final : public leadline::Provider {
 public:
  static Provider& instance();

  const char* name() const noexcept override { return "torch"; }
  ProviderStatus start(const ProviderOptions& options) override;
  // In a pause torch calls nobody for what begins, which is a third of what measuring costs; ends of what was begun
  // before, and memory, are told.
  void pause() noexcept override;
  void resume() noexcept override;
  void stop() noexcept override;
  // Of the shapes of inputs.
  void rest(bool rests) noexcept override;
  void after_fork_child() noexcept override { forked_ = true; }
  ProviderStatus status() const override;

 private:
  // Sentences about what is missing, or empty; whether operators are measured.
  bool attach(const ProviderOptions& options, std::string* message);
  void run_or_rest() noexcept;
  // Registers the callbacks, or takes them away; scopes that are open keep theirs.
  void listen(bool on) noexcept;

  MemoryHooks memory_;
  QuietGuards guards_;
  Handle handles_[3] = {};
  bool attached_ = false;
  bool paused_ = false;
  bool forked_ = false;
  ProviderStatus status_{{"ok", false}, {"message", std::string()}};
};

}  // namespace leadline::torch
