// CPU samples of every thread, as a provider of the session. Options of its own: `hz`, samples per second of CPU
// time; `native`: empty, "yes" or "all" (with the interpreter's own frames); `counters`: names as perf has them;
// `wait_hz`: how often waiting threads are looked at, 0 for never.
#pragma once

#include <string>
#include <vector>

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
  void before_exec() noexcept override;
  void before_fork() noexcept override;
  void after_fork_parent() noexcept override;
  void after_fork_child() noexcept override;
  void stop() noexcept override;
  ProviderStatus status() const override;
  int64_t cost_ns() const noexcept override;
  // A sentence for each of these counters that cannot be counted here.
  static std::vector<std::string> refused_counters(const std::vector<std::string>& names);

  // On a thread that has just begun, see Threads::meet_own().
  static void thread_begins() noexcept;

 private:
  Provider() = default;
  ProviderStatus answer_;
  std::string caution_;  // of the counters
};

}  // namespace leadline::cpu
