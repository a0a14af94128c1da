// CPU samples of every thread, as a provider of the session. Options of its own: `hz`, samples per second of CPU
// time; `native`: empty, "yes" or "all" (with the interpreter's own frames).
#pragma once

#include "providers/provider.h"

namespace leadline::cpu {

class Provider final : public leadline::Provider {
 public:
  static Provider& instance();

  const char* name() const noexcept override { return "cpu"; }
  // Answers `ok`, `message`, `samples`, `threads`, `handlers_ns`, `helper_ns`.
  ProviderStatus start(const ProviderOptions& options) override;
  void pause() noexcept override;
  void resume() noexcept override;
  void before_fork() noexcept override;
  void after_fork_parent() noexcept override;
  void after_fork_child() noexcept override;
  void stop() noexcept override;
  ProviderStatus status() const override;
  int64_t cost_ns() const noexcept override;

 private:
  Provider() = default;
  ProviderStatus answer_;
};

}  // namespace leadline::cpu
