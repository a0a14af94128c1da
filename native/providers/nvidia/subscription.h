// One subscription to CUPTI: shared with other tools where the library offers it, alone where not, and the holder's
// name where neither is possible. Knows which calls belong to which kind of subscription; nobody else does.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "providers/nvidia/api_names.h"
#include "providers/nvidia/cupti_library.h"
#include "providers/nvidia/pc_switches.h"

namespace leadline::nvidia {

// In which API's callbacks launches of kernels are followed. A launch by the runtime calls the driver's inside, with
// the same correlation id, so the driver's see every launch once. On an H100 (CUPTI 13.0) a decoding program made
// 9,360: the driver's saw them all, the runtime's 6,480, since libraries and Triton launch by the driver.
enum class LaunchCalls : std::uint8_t { kDriver, kBoth };
// LEADLINE_CUPTI_LAUNCHES: `driver`, `both`; for measuring what a domain costs.
LaunchCalls launch_calls_asked() noexcept;

enum class SubscriptionMode : std::uint8_t { kNone, kSingle, kShared };
const char* to_string(SubscriptionMode mode) noexcept;

class Subscription {
 public:
  Subscription(const CuptiLibrary& library, const ApiTable& calls) : library_(library), calls_(calls) {}

  // False with one sentence in message(), and holder() where CUPTI told it. `want_shared`: try that first.
  bool open(bool want_shared, cupti::CallbackFunction callback, void* user);
  // Records have the monitor's time, which no step of the system's clock moves; before start_activity(). Readings of
  // counters keep CUPTI's own, so where these are wanted records have it too.
  void use_clock_of_monitor();
  // Activity buffers and record kinds. Kinds this library or device refuses are left out and named in missing_kinds().
  // `traces`: see Options. `sampled`: instructions will be sampled, with which records of kernels that overlap do not
  // go together, and others may not.
  bool start_activity(cupti::BufferRequested requested, cupti::BufferCompleted completed, bool whole_graphs,
                      bool traces, std::optional<SampledRecords> sampled);
  // Followed calls, contexts, modules, graphs.
  void enable_callbacks();
  // Launches by the runtime too, where the driver's callbacks turn out to see none.
  void follow_runtime_launches();
  bool follows_runtime_launches() const noexcept {
    return launch_calls_.load(std::memory_order_relaxed) == LaunchCalls::kBoth;
  }
  // For a long pause: records, and callbacks of calls of which nothing has to be known later, are off, or on again.
  void rest(bool on);
  void disable_callbacks();
  void stop_activity();
  void close();
  // Lets go without a call: CUPTI is finalised, or this is a fork child.
  void forget() noexcept;

  // CUPTI's own thread hands over what is complete each so many seconds; 0: no more. False: this CUPTI has no such
  // thread. Asked for from a thread of ours while graphs with copies are alive, a flush makes their next launch fail on
  // the device (CUDA_ERROR_LAUNCH_FAILED; CUPTI 13.0, XLA's command buffers on an H100 and an H200).
  bool flush_every(double seconds) const noexcept;
  cupti::Result flush(bool forced) const noexcept;
  cupti::Result next_record(std::uint8_t* buffer, std::size_t bytes, cupti::Record** record) const noexcept;
  std::uint64_t dropped_records(void* context, std::uint32_t stream) const noexcept;
  bool enable_one(cupti::Domain domain, std::uint32_t cbid, bool on) const noexcept;

  SubscriptionMode mode() const noexcept { return mode_.load(std::memory_order_relaxed); }
  bool has_waits() const noexcept { return has_waits_; }  // synchronisation records are on
  const std::string& message() const noexcept { return message_; }
  const std::string& holder() const noexcept { return holder_; }
  const std::string& missing_kinds() const noexcept { return missing_kinds_; }

 private:
  cupti::Result subscribe(SubscriptionMode mode, cupti::CallbackFunction callback, void* user);
  cupti::Result enable(cupti::Kind kind) const noexcept;
  cupti::Result disable(cupti::Kind kind) const noexcept;
  bool is_wanted(cupti::Domain domain, const ApiCall& call) const noexcept;
  std::string refusal(cupti::Result result) const;

  const CuptiLibrary& library_;
  const ApiTable& calls_;
  cupti::Subscriber subscriber_ = nullptr;
  // Atomic since a call that CUPTI was late to answer may still change it while it is asked for.
  std::atomic<SubscriptionMode> mode_{SubscriptionMode::kNone};
  bool has_waits_ = false;
  bool traces_ = true;
  std::atomic<LaunchCalls> launch_calls_{launch_calls_asked()};
  std::vector<cupti::Kind> enabled_;
  std::string message_;
  std::string holder_;
  std::string missing_kinds_;
};

}  // namespace leadline::nvidia
