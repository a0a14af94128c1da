// What the session calls, said with the functions of provider.h.
#include "providers/nvidia/provider.h"

namespace leadline::nvidia {
namespace {

Options options_of(const ProviderOptions& given) {
  Options options;
  options.take(given);
  options.cupti_candidates = given.get("cupti_candidates", options.cupti_candidates);
  options.shared = given.get("shared", options.shared);
  options.whole_graphs = given.get("whole_graphs", options.whole_graphs);
  options.traces = given.get("traces", options.traces);
  options.time_regions = given.get("time_regions", options.time_regions);
  options.sample_period = given.get("sample_period", options.sample_period);
  options.counter_interval_ns = given.get("counter_interval_ns", options.counter_interval_ns);
  options.replay = given.get("replay", options.replay);
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
