#include "providers/pjrt/provider.h"

#include <chrono>
#include <mutex>

#include "gpu/in_callback.h"
#include "providers/pjrt/calls.h"
#include "providers/pjrt/runs.h"
#include "providers/pjrt/table.h"

namespace leadline::pjrt {
namespace {

using InCallback = gpu::InCallback<Measuring>;
constexpr std::chrono::milliseconds kPatience{100};  // for calls that are at their begin or end

class SessionProvider final : public leadline::Provider {
 public:
  const char* name() const noexcept override { return "pjrt"; }

  ProviderStatus start(const ProviderOptions& options) override try {
    const std::lock_guard lock(mutex_);
    if (!started_) {
      for (auto* counter : {&measuring_.calls, &measuring_.failed, &measuring_.compiled, &measuring_.executed,
                            &measuring_.copied_bytes, &measuring_.buffers_freed, &measuring_.made_bytes,
                            &measuring_.ended, &measuring_.ended_failed, &measuring_.not_awaited}) {
        counter->store(0, std::memory_order_relaxed);
      }
      for (auto& last : measuring_.last_end_ns) last.store(0, std::memory_order_relaxed);
      forget_all_executables();
      measuring_.session.fetch_add(1, std::memory_order_relaxed);
      measuring_.frame.store(leadline_monitor_new_frame(), std::memory_order_relaxed);
    }
    measuring_.counts_bytes.store(options.get("bytes", true), std::memory_order_relaxed);
    const auto address = static_cast<std::uintptr_t>(options.get("table", int64_t{0}));
    message_ = address == 0 ? std::string() : follow(reinterpret_cast<Table*>(address));
    started_ = true;
    InCallback::use(&measuring_);
    return answer();
  } catch (...) {
    return {{"ok", false}, {"message", std::string("A plug-in of PJRT is not followed for lack of memory.")}};
  }
  void pause() noexcept override { measuring_.told.store(false, std::memory_order_seq_cst); }
  void resume() noexcept override { measuring_.told.store(true, std::memory_order_seq_cst); }
  void before_fork() noexcept override { mutex_.lock(); }
  void after_fork_parent() noexcept override { mutex_.unlock(); }
  void after_fork_child() noexcept override {
    mutex_.unlock();  // `before_fork` locked it in the thread that this one is the copy of
    InCallback::after_fork();
    put_back_all();
    started_ = false;
  }
  void stop() noexcept override {
    const std::lock_guard lock(mutex_);
    if (!started_) return;
    put_back_all();
    InCallback::forget(&measuring_);
    InCallback::wait(kPatience);
    started_ = false;
  }
  ProviderStatus status() const override try {
    const std::lock_guard lock(mutex_);
    return answer();
  } catch (...) {
    return {};
  }

 private:
  static int64_t number(const std::atomic<std::uint64_t>& counter) {
    return static_cast<int64_t>(counter.load(std::memory_order_relaxed));
  }
  ProviderStatus answer() const {
    return {{"ok", message_.empty()},
            {"message", message_},
            {"calls", number(measuring_.calls)},
            {"failed", number(measuring_.failed)},
            {"compiled", number(measuring_.compiled)},
            {"executed", number(measuring_.executed)},
            {"copied_bytes", number(measuring_.copied_bytes)},
            {"buffers_freed", number(measuring_.buffers_freed)},
            {"made_bytes", number(measuring_.made_bytes)},
            {"ended", number(measuring_.ended)},
            {"ended_failed", number(measuring_.ended_failed)},
            {"not_awaited", number(measuring_.not_awaited)}};
  }

  mutable std::mutex mutex_;
  Measuring measuring_;
  std::string message_;
  bool started_ = false;
};

}  // namespace

leadline::Provider& session_provider() {
  static auto* const provider = new SessionProvider();  // never destroyed: calls may come until the very end
  return *provider;
}

}  // namespace leadline::pjrt
