// What the session calls, said with the functions of provider.h.
#include "providers/nvidia/provider.h"

namespace leadline::nvidia {
namespace {

Options options_of(const ProviderOptions& given) {
  Options options;
  options.cupti_candidates = given.get("cupti_candidates", options.cupti_candidates);
  options.shared = given.get("shared", options.shared);
  options.whole_graphs = given.get("whole_graphs", options.whole_graphs);
  options.flush_interval_s = given.get("flush_interval_s", options.flush_interval_s);
  options.instructions = given.get("instructions", options.instructions);
  options.instruction_budget = given.get("instruction_budget", options.instruction_budget);
  options.sample_window_s = given.get("sample_window_s", options.sample_window_s);
  options.sample_period = given.get("sample_period", options.sample_period);
  options.code_folder = given.get("code_folder", options.code_folder);
  options.code_bytes = given.get("code_bytes", options.code_bytes);
  options.gpu_metrics = given.get("gpu_metrics", options.gpu_metrics);
  options.replay = given.get("replay", options.replay);
  options.counter_interval_ns = given.get("counter_interval_ns", options.counter_interval_ns);
  options.recording = given.get("recording", options.recording);
  options.describe_device = given.describe_device;
  return options;
}

ProviderStatus answer(const Status& status) {
  return {{"ok", status.measuring},    {"measuring", status.measuring}, {"timing_regions", status.timing_regions},
          {"message", status.message}, {"holder", status.holder},       {"awaiting", status.awaiting}};
}

class SessionProvider final : public leadline::Provider {
 public:
  const char* name() const noexcept override { return "nvidia"; }
  ProviderStatus start(const ProviderOptions& options) override {
    return answer(options.get("await", false) ? await_cuda(options_of(options)) : nvidia::start(options_of(options)));
  }
  void pause() noexcept override { nvidia::pause(); }
  void resume() noexcept override { nvidia::resume(); }
  void after_fork_child() noexcept override {
    after_fork();
    leave_monitor();
  }
  void stop() noexcept override { nvidia::stop(); }
  ProviderStatus status() const override { return answer(report().status); }
};

}  // namespace

leadline::Provider& session_provider() {
  static auto* const provider = new SessionProvider();  // never destroyed: CUPTI may call until the very end
  return *provider;
}

}  // namespace leadline::nvidia
