#include "providers/amd/provider.h"

#include <pthread.h>

#include <array>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>

#include "base/ids.h"
#include "gpu/measure.h"
#include "providers/amd/measuring.h"
#include "providers/amd/roctracer.h"
#include "providers/amd/sdk_library.h"
#include "providers/amd/tool.h"

namespace leadline::amd {
namespace {

// The process's one provider. Made on first use and never destroyed: the SDK may still be inside a callback at exit.
struct Provider {
  std::mutex mutex;
  Options options;
  std::unique_ptr<Measuring> measuring;
  Status status;
  std::optional<Details> last;  // of the measuring that has stopped
  bool paused = false;          // the program asked for a rest
  bool older = false;           // measuring is by roctracer
  bool yielded = false;         // to another tool of it
  bool awaiting = false;        // measuring begins when the program starts HIP
  bool forked_after_hip = false;
  std::array<leadline_subscription, 2> stale{};  // of a parent, to be taken out of the monitor
};

Provider& provider() {
  static Provider& made = *new Provider;
  return made;
}

void say(Provider& p, std::string message) {
  leadline_monitor_loss(static_cast<std::uint32_t>(LossKind::kProviderUnavailable), 1, message.c_str());
  p.status.message = std::move(message);
}

void follow_forks() {
  static std::once_flag at_fork;
  std::call_once(at_fork, [] { pthread_atfork(nullptr, nullptr, [] { after_fork(); }); });
}

void begin_with(Provider& p, Source& source) {
  auto measuring = std::make_unique<Measuring>(p.options, source);
  std::string error;
  if (!measuring->start(&error, p.paused)) return say(p, std::move(error));
  p.measuring = std::move(measuring);
  p.status.measuring = true;
}

// Where there is no SDK. Under the provider's mutex.
void begin_older(Provider& p, const std::string& no_sdk, bool early) {
  Roctracer& tracer = Roctracer::instance();
  std::string why;
  if (!tracer.start(p.options.older, early, &why)) {
    return say(p, "GPU work is not measured because " + no_sdk + "; nor does roctracer help: " + why + ".");
  }
  constexpr const char* kMissing =
      "This ROCm has no rocprofiler-sdk (it came with 6.2), so roctracer is used: kernels, copies, waits, memory and "
      "the paths of graphs' captures are measured; grids, registers, local memory, occupancy, instructions and "
      "counters are not, and nothing is while torch.profiler records GPU work.";
  leadline_monitor_loss(static_cast<std::uint32_t>(LossKind::kProviderUnavailable), 1, kMissing);
  begin_with(p, tracer);
  p.older = p.measuring != nullptr;
}

// Under the provider's mutex, with the tool configured.
void begin(Provider& p) {
  if (const std::vector<std::string> copies = loaded_sdk_copies(); copies.size() > 1) {
    const std::string twice =
        "Two copies of rocprofiler-sdk are in this process (" + copies[0] + " and " + copies[1] +
        "), which do not see each other; GPU work seen by the second is not in this profile. Remove one.";
    leadline_monitor_loss(static_cast<std::uint32_t>(LossKind::kProviderUnavailable), 1, twice.c_str());
  }
  if (!p.options.instructions.empty() && Tool::instance().sampler() == nullptr) {
    leadline_monitor_loss(static_cast<std::uint32_t>(LossKind::kProviderUnavailable), 1,
                          "Instructions are not sampled because rocprofiler-sdk had configured its tools before they "
                          "were asked for; start the program with `leadline run --instructions`.");
  }
  if (!p.options.gpu_metrics.empty() && Tool::instance().counters() == nullptr) {
    leadline_monitor_loss(static_cast<std::uint32_t>(LossKind::kProviderUnavailable), 1,
                          "GPU metrics are not counted because rocprofiler-sdk had configured its tools before they "
                          "were asked for; start the program with `leadline run --gpu-metrics`.");
  }
  begin_with(p, Tool::instance());
}

// The SDK has taken Leadline as its tool, on the thread that starts HIP.
void on_configured() {
  Provider& p = provider();
  // start() and stop() on another thread may be at it, but must not hold up the program.
  std::unique_lock lock(p.mutex, std::defer_lock);
  for (int tries = 0; tries < 50 && !lock.try_lock(); ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (!lock || !p.awaiting || p.measuring) return;
  p.awaiting = false;
  p.status = {};
  try {
    begin(p);
  } catch (...) {
    p.status.message = "GPU work is not measured because starting the provider ran out of memory.";
  }
}

}  // namespace

Status start(const Options& options) try {
  Provider& p = provider();
  const std::lock_guard lock(p.mutex);
  if (p.measuring) return p.status;
  follow_forks();
  p.options = options;
  p.status = {};
  p.awaiting = false;
  Tool& tool = Tool::instance();
  tool.on_configured(nullptr);
  if (!options.instructions.empty()) {
    tool.want_samples({options.code_folder, static_cast<std::uint64_t>(options.code_bytes)});
  }
  if (!options.gpu_metrics.empty()) tool.want_counters(options.gpu_metrics);
  if (p.forked_after_hip) {
    say(p, Tool::kForked);
    return p.status;
  }
  if (!tool.configured() && options.await && !hip_is_loaded()) {
    p.awaiting = p.status.awaiting = true;
    tool.on_configured(on_configured);
    return p.status;
  }
  if (std::string why = tool.failure(); !tool.configured() && !why.empty()) {
    say(p, "GPU work is not measured because " + why + "; see `leadline doctor`.");
    return p.status;
  }
  bool no_sdk = false;
  if (std::string why; !tool.configured() && !tool.force(options.candidates, &why, &no_sdk)) {
    no_sdk ? begin_older(p, why, false) : say(p, "GPU work is not measured because " + why + ".");
    return p.status;
  }
  if (tool.late()) {
    const std::string late =
        "Leadline became a tool of rocprofiler-sdk after the program had loaded HIP, so work on queues that were there "
        "before may be missing; start the program with `leadline run` to see all of it.";
    leadline_monitor_loss(static_cast<std::uint32_t>(LossKind::kProviderUnavailable), 1, late.c_str());
  }
  begin(p);
  return p.status;
} catch (...) {
  Status status;
  status.message = "GPU work is not measured because starting the provider ran out of memory.";
  return status;
}

bool flush(double timeout_s) {
  Provider& p = provider();
  const std::lock_guard lock(p.mutex);
  return p.measuring ? p.measuring->flush(timeout_s) : true;
}

void pause() {
  Provider& p = provider();
  const std::lock_guard lock(p.mutex);
  if (p.paused) return;
  p.paused = true;
  if (p.measuring) p.measuring->pause();
}

void resume() {
  Provider& p = provider();
  const std::lock_guard lock(p.mutex);
  if (!p.paused) return;
  p.paused = false;
  if (p.measuring && !p.yielded) p.measuring->resume();
}

void yield_to(const std::string& tool) {
  Provider& p = provider();
  const std::lock_guard lock(p.mutex);
  if (!p.measuring || !p.older || p.yielded) return;
  p.yielded = true;
  if (!p.paused) p.measuring->pause();
  p.measuring->flush(0.1);
  Roctracer::instance().rest();
  const std::string sentence =
      "While " + tool +
      " recorded GPU work roctracer, which serves one tool at a time, was its own, so GPU work "
      "of that time is not in this profile; ROCm 6.2 has an interface for both.";
  leadline_monitor_loss(static_cast<std::uint32_t>(LossKind::kProviderUnavailable), 1, sentence.c_str());
}

Status take_back() {
  Provider& p = provider();
  const std::lock_guard lock(p.mutex);
  if (p.measuring && p.yielded) {
    std::string why;
    if (Roctracer::instance().start(p.options.older, false, &why)) {
      p.yielded = false;
      if (!p.paused) p.measuring->resume();
    }
  }
  Status status = p.status;
  status.measuring = p.measuring && !p.yielded;
  return status;
}

Status stop() {
  Provider& p = provider();
  const std::lock_guard lock(p.mutex);
  p.older = p.yielded = false;
  if (p.measuring) {
    p.measuring->stop();
    p.last = p.measuring->details();
    // A thread that the system has stopped inside a callback may go on at any time: better a leak than a crash.
    if (!p.measuring->left_alone()) static_cast<void>(p.measuring.release());
    p.measuring.reset();
    p.status.measuring = false;
  }
  if (p.awaiting) {
    p.awaiting = p.status.awaiting = false;
    if (std::string why = Tool::instance().failure(); !why.empty()) {
      say(p, "GPU work was not measured because " + why + "; see `leadline doctor`.");
    } else if (hip_is_loaded()) {
      say(p,
          "The program loaded HIP without rocprofiler-sdk asking for Leadline, so GPU work, if there was any, was not "
          "measured; start it with `leadline run`, and without ROCP_TOOL_LIBRARIES naming another tool only.");
    }
  }
  return p.status;
}

Report report() {
  Provider& p = provider();
  const std::lock_guard lock(p.mutex);
  Report report{p.status, loaded_sdk_copies(), p.last};
  report.status.measuring = p.measuring != nullptr;
  report.status.awaiting = p.awaiting;
  if (p.measuring) report.details = p.measuring->details();
  return report;
}

void hsa_started() noexcept try {
  Provider& p = provider();
  const std::unique_lock lock(p.mutex, std::try_to_lock);  // HSA may start inside what holds it
  if (!lock || !p.awaiting || p.measuring || Tool::instance().configured()) return;
  std::string why;
  if (SdkLibrary::open(p.options.candidates, &why)) return;  // it asks by itself
  p.awaiting = false;
  p.status = {};
  begin_older(p, "rocprofiler-sdk was not found (" + why + ")", true);
} catch (...) {
  gpu::count_loss(LossKind::kInternalError, 1, "GPU work is not measured because there was no memory to start.");
}

void after_fork() noexcept {
  Provider& p = provider();
  new (&p.mutex) std::mutex;  // its holder may not exist in this process
  const Tool* const tool = Tool::known();
  p.forked_after_hip = p.forked_after_hip || p.measuring || (tool != nullptr && tool->configured());
  if (p.measuring) p.measuring->abandon(&p.stale[0], &p.stale[1]);
  // Never destroyed: its destructor would join a thread and free memory that another thread's state may have been
  // using.
  static_cast<void>(p.measuring.release());
  p.awaiting = p.awaiting && !p.forked_after_hip;  // else the child may start HIP of its own
  p.older = p.yielded = false;
  p.status = {};
  if (p.forked_after_hip) Tool::tell_at_first_work();
}

void leave_monitor() noexcept {
  for (leadline_subscription& stale : provider().stale) {
    if (stale != 0) leadline_monitor_unregister(stale);
    stale = 0;
  }
}

}  // namespace leadline::amd

// What libleadline_rocm.so hands on when HSA has loaded it (HSA_TOOLS_LIB).
extern "C" LEADLINE_EXPORT void leadline_hsa_started() { leadline::amd::hsa_started(); }
