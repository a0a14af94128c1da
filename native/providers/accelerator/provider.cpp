#include "providers/accelerator/provider.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <new>

#include "providers/accelerator/measuring.h"

namespace leadline::accelerator {
namespace {

std::string lines(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += text + "\n";
  return all;
}

// The one of this text, which lives for ever: thunks and calls on their way point into it.
const Description* description_of(const std::string& text, std::string* error) {
  static auto& known = *new std::map<std::string, std::unique_ptr<Description>>;
  std::unique_ptr<Description>& made = known[text];
  if (made) return made.get();
  auto fresh = std::make_unique<Description>();
  if (!parse(text, fresh.get(), error)) return nullptr;
  made = std::move(fresh);
  return made.get();
}

class SessionProvider final : public leadline::Provider {
 public:
  const char* name() const noexcept override { return "accelerator"; }

  ProviderStatus start(const ProviderOptions& options) override try {
    const std::lock_guard lock(mutex_);
    if (measuring_) return answer(*measuring_);
    std::string error = Places::why_not();
    const std::string text = options.get("description", std::string());
    const Description* description = error.empty() ? description_of(text, &error) : nullptr;
    if (description == nullptr) return last_ = {{"ok", false}, {"message", error}};
    measuring_ = std::make_unique<Measuring>(*description, options.describe_device);
    measuring_->start(paused_);
    return answer(*measuring_);
  } catch (...) {
    return last_ = {{"ok", false},
                    {"message", std::string("Accelerators are not measured because starting ran out of memory or "
                                            "threads.")}};
  }

  void pause() noexcept override {
    const std::lock_guard lock(mutex_);
    if (std::exchange(paused_, true) || !measuring_) return;
    measuring_->pause();
  }
  void resume() noexcept override {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(paused_, false) || !measuring_) return;
    measuring_->resume();
  }
  void before_fork() noexcept override {
    mutex_.lock();
    if (measuring_) measuring_->before_fork();
  }
  void after_fork_parent() noexcept override {
    if (measuring_) measuring_->after_fork();
    mutex_.unlock();
  }
  void after_fork_child() noexcept override {
    mutex_.unlock();  // `before_fork` locked it in the thread that this one is the copy of
    if (!measuring_) return;
    leadline_subscription stale = 0;
    measuring_->abandon(&stale);
    static_cast<void>(measuring_.release());  // threads that are not here may have been inside
    if (stale != 0) leadline_monitor_unregister(stale);
    last_ = {};
  }
  void stop() noexcept override {
    const std::lock_guard lock(mutex_);
    if (!measuring_) return;
    measuring_->stop();
    last_ = answer(*measuring_);
    // A thread that the system has stopped inside a call may go on at any time: better a leak than a crash.
    if (!measuring_->left_alone()) static_cast<void>(measuring_.release());
    measuring_.reset();
  }
  ProviderStatus status() const override {
    const std::lock_guard lock(mutex_);
    return measuring_ ? answer(*measuring_) : last_;
  }
  // Asked while a segment is written, for which a thread that forks waits with this lock in its hands.
  int64_t cost_ns() const noexcept override {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (lock) cost_ns_ = measuring_ ? measuring_->details().fold_ns : 0;
    return cost_ns_;
  }

 private:
  static ProviderStatus answer(Measuring& measuring) {
    const Details d = measuring.details();
    return {{"ok", true},
            {"message", std::string()},
            {"audited", d.audited},
            {"calls", static_cast<int64_t>(d.calls)},
            {"records", static_cast<int64_t>(d.records)},
            {"unattributed", static_cast<int64_t>(d.unattributed)},
            {"unclaimed", static_cast<int64_t>(d.unclaimed)},
            {"outstanding", static_cast<int64_t>(d.outstanding)},
            {"unreadable", static_cast<int64_t>(d.unreadable)},
            {"functions_bound", static_cast<int64_t>(d.functions_bound)},
            {"libraries", lines(d.libraries)},
            {"missing", lines(d.missing)}};
  }

  mutable std::mutex mutex_;
  mutable std::atomic<int64_t> cost_ns_{0};
  std::unique_ptr<Measuring> measuring_;
  bool paused_ = false;
  ProviderStatus last_;
};

}  // namespace

leadline::Provider& session_provider() {
  static auto* const provider = new SessionProvider();  // never destroyed: calls may come until the very end
  return *provider;
}

}  // namespace leadline::accelerator
