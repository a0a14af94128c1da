// What the session calls, said with the functions of provider.h.
#include "providers/amd/provider.h"

namespace leadline::amd {
namespace {

Options options_of(const ProviderOptions& given) {
  Options options;
  options.take(given);
  options.candidates = given.get("candidates", options.candidates);
  options.older = given.get("older", options.older);
  options.await = given.get("await", options.await);
  options.patience_s = given.get("patience_s", options.patience_s);
  return options;
}

ProviderStatus answer(const Status& status) {
  return {{"ok", status.measuring},
          {"measuring", status.measuring},
          {"awaiting", status.awaiting},
          {"message", status.message}};
}

class SessionProvider final : public leadline::Provider {
 public:
  const char* name() const noexcept override { return "amd"; }
  ProviderStatus start(const ProviderOptions& options) override { return answer(amd::start(options_of(options))); }
  void pause() noexcept override { amd::pause(); }
  void resume() noexcept override { amd::resume(); }
  void after_fork_child() noexcept override {
    after_fork();
    leave_monitor();
  }
  void stop() noexcept override { amd::stop(); }
  ProviderStatus status() const override { return answer(report().status); }
};

}  // namespace

leadline::Provider& session_provider() {
  static auto* const provider = new SessionProvider();  // never destroyed: the SDK may call until the very end
  return *provider;
}

}  // namespace leadline::amd
