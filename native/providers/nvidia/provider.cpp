#include "providers/nvidia/provider.h"

#include <pthread.h>

#include <array>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>

#include "base/ids.h"
#include "providers/nvidia/measuring.h"
#include "providers/nvidia/region_timer.h"

namespace leadline::nvidia {
namespace {

// The process's one provider. Made on first use and never destroyed: CUPTI may still be inside a callback at exit.
struct Provider {
  std::mutex mutex;
  Options options;
  std::unique_ptr<Measuring> measuring;
  std::optional<Driver> driver;
  std::unique_ptr<RegionTimer> regions;
  Status status;
  std::optional<Details> last;  // of the measuring that has stopped
  std::string yielded_to;       // the tool that CUPTI was given to
  bool paused = false;          // the program asked for a rest
  bool awaiting = false;        // measuring begins when the program starts CUDA
  bool forked_after_cuda = false;
  Measuring* hanging = nullptr;  // left alone because CUPTI did not answer; until it has, it is not asked again
  std::array<leadline_subscription, 3> stale{};  // of a parent, to be taken out of the monitor
};

Provider& provider() {
  static Provider& made = *new Provider;
  return made;
}

void say(Status* status, std::string message) {
  leadline_monitor_loss(static_cast<std::uint32_t>(LossKind::kProviderUnavailable), 1, message.c_str());
  status->message = std::move(message);
}

// Why this CUPTI cannot be used, or empty. One that is newer than the driver cannot start, and says so in words that do
// not help; one before 12 has other records.
std::string unfit(const CuptiLibrary& library, const Driver& driver) {
  const std::uint32_t version = library.version();
  const std::string named = "CUPTI " + cupti_version_name(version) + " (" + library.path() + ")";
  if (version != 0 && version < cupti::kVersion12_0) {
    return named +
           " is older than CUDA 12, whose records are the first that Leadline reads, so GPU work is not measured; "
           "install the nvidia-cuda-cupti package of CUDA 12 or 13 and a program built for it.";
  }
  const int major = cupti_major(version);
  const int supported = driver.cuda_version() / 1000;
  if (major == 0 || supported == 0 || major <= supported) return {};
  return named + " is for CUDA " + std::to_string(major) + " but the driver serves CUDA " + std::to_string(supported) +
         ", so GPU work is not measured; update the driver or install the nvidia-cuda-cupti package for CUDA " +
         std::to_string(supported) + ".";
}

Status out_of_memory(const char* doing) {
  Status status;
  status.message = std::string("GPU work is not measured because ") + doing + " the provider ran out of memory.";
  return status;
}

void start_fallback(Provider& p) {
  if (!p.options.time_regions || !p.driver) return;
  p.regions = std::make_unique<RegionTimer>(*p.driver);
  p.status.timing_regions = p.regions->start(p.paused);
  if (!p.status.timing_regions) p.regions.reset();
}

enum class Moment : std::uint8_t { kAfterCudaStarted, kInsideCudaStart };

void follow_forks() {
  static std::once_flag at_fork;
  std::call_once(at_fork, [] { pthread_atfork(nullptr, nullptr, [] { after_fork(); }); });
}

void begin(Provider& p, Moment moment) {
  follow_forks();
  p.status = {};
  std::string error;
  if (p.forked_after_cuda) {
    say(&p.status,
        "This process was forked after CUDA had started, and CUDA does not survive a fork, so GPU work is not "
        "measured here; use the start method \"spawn\" or \"forkserver\".");
    return;
  }
  if (p.hanging != nullptr && !p.hanging->is_back()) {
    say(&p.status,
        "GPU work is not measured because CUPTI has yet to answer an earlier call in this process; start the program "
        "again.");
    return;
  }
  p.driver = Driver::find(&error);
  const bool usable = p.driver && (moment == Moment::kInsideCudaStart || p.driver->has_started(&error));
  if (!usable) {
    p.driver.reset();
    say(&p.status, std::move(error));
    return;
  }
  const int driver_major = p.driver->cuda_version() / 1000;
  std::optional<CuptiLibrary> library =
      CuptiLibrary::open(fitting_candidates(p.options.cupti_candidates, loaded_runtime_major(), driver_major), &error);
  if (!library) {
    say(&p.status, "GPU work is not measured because CUPTI was not found (" + error +
                       "); install the package nvidia-cuda-cupti for the program's CUDA.");
    start_fallback(p);
    return;
  }
  if (std::string reason = unfit(*library, *p.driver); !reason.empty()) {
    say(&p.status, std::move(reason));
    start_fallback(p);
    return;
  }
  if (const std::vector<std::string> copies = loaded_cupti_copies(); copies.size() > 1) {
    const std::string twice =
        "Two copies of CUPTI are in this process (" + copies[0] + " and " + copies[1] +
        "), which do not see each other; GPU work seen by the second is not in this profile. Remove one.";
    leadline_monitor_loss(static_cast<std::uint32_t>(LossKind::kProviderUnavailable), 1, twice.c_str());
  }
  if (library->version() >= cupti::kVersion14) {
    const std::string untried = "CUPTI " + cupti_version_name(library->version()) +
                                " is newer than this version of Leadline knows; its records are read as those of "
                                "CUDA 13, which may be wrong. Update Leadline.";
    leadline_monitor_loss(static_cast<std::uint32_t>(LossKind::kProviderUnavailable), 1, untried.c_str());
  }
  auto measuring = std::make_unique<Measuring>(p.options, *p.driver, std::move(*library), gpu::kernel_sources());
  if (measuring->start(&error, &p.status.holder, moment == Moment::kInsideCudaStart, p.paused)) {
    p.measuring = std::move(measuring);
    p.status.measuring = true;
    return;
  }
  say(&p.status, std::move(error));
  start_fallback(p);
}

void end(Provider& p) {
  if (p.regions) p.regions->stop();
  p.regions.reset();
  if (!p.measuring) return;
  p.measuring->stop();
  p.last = p.measuring->details();
  if (p.measuring->lost_device()) {
    say(&p.status,
        "The device was lost while measuring; what had been read until then is kept. See the kernel's log "
        "(`dmesg`, NVRM Xid) for the cause.");
  }
  // A thread that the system has stopped inside a callback may go on at any time: better a leak than a crash.
  if (!p.measuring->left_alone()) {
    Measuring* const kept = p.measuring.release();
    if (kept->hangs()) p.hanging = kept;
  }
  p.measuring.reset();
  p.status.measuring = false;
}

}  // namespace

Status start(const Options& options) try {
  Provider& p = provider();
  const std::lock_guard lock(p.mutex);
  if (p.measuring || p.regions) return p.status;
  p.options = options;
  p.yielded_to.clear();
  p.awaiting = false;
  begin(p, Moment::kAfterCudaStarted);
  return p.status;
} catch (...) {
  return out_of_memory("starting");
}

Status await_cuda(const Options& options) try {
  Provider& p = provider();
  const std::lock_guard lock(p.mutex);
  if (p.measuring || p.regions) return p.status;
  p.options = options;
  p.yielded_to.clear();
  follow_forks();
  std::string not_yet;
  const std::optional<Driver> driver = Driver::find(&not_yet);
  p.awaiting = !driver || !driver->has_started(&not_yet);
  p.status = {};
  p.status.awaiting = p.awaiting;
  if (!p.awaiting) begin(p, Moment::kAfterCudaStarted);
  return p.status;
} catch (...) {
  return out_of_memory("starting");
}

bool flush(double timeout_s) {
  Provider& p = provider();
  const std::lock_guard lock(p.mutex);
  if (p.regions) p.regions->collect();
  return p.measuring ? p.measuring->flush(timeout_s) : true;
}

void pause() {
  Provider& p = provider();
  const std::lock_guard lock(p.mutex);
  if (p.paused) return;
  p.paused = true;
  if (p.measuring) p.measuring->pause();
  if (p.regions) p.regions->pause();
}

void resume() {
  Provider& p = provider();
  const std::lock_guard lock(p.mutex);
  if (!p.paused) return;
  p.paused = false;
  if (p.measuring) p.measuring->resume();
  if (p.regions) p.regions->resume();
}

void yield_to(const std::string& tool) {
  Provider& p = provider();
  const std::lock_guard lock(p.mutex);
  if (!p.measuring) return;
  end(p);
  p.yielded_to = tool;
  const std::string detail = "GPU work was not measured while " + tool +
                             " ran, because CUPTI serves one of the two at a time; the other measurements went on.";
  leadline_monitor_loss(static_cast<std::uint32_t>(LossKind::kGpuPaused), 1, detail.c_str());
}

Status take_back() try {
  Provider& p = provider();
  const std::lock_guard lock(p.mutex);
  if (p.measuring || p.yielded_to.empty()) return p.status;
  if (p.regions) p.regions->stop();
  p.regions.reset();
  begin(p, Moment::kAfterCudaStarted);
  if (p.measuring) p.yielded_to.clear();  // else the tool still has it, and a later call tries again
  return p.status;
} catch (...) {
  return out_of_memory("taking CUPTI back");
}

Status stop() {
  Provider& p = provider();
  const std::lock_guard lock(p.mutex);
  end(p);
  p.yielded_to.clear();
  if (p.awaiting) {
    p.awaiting = p.status.awaiting = false;
    std::string why;
    if (const std::optional<Driver> driver = Driver::find(&why); driver && driver->has_primary_context()) {
      say(&p.status,
          "The program started CUDA without telling Leadline, so its GPU work was not measured; start it with "
          "`leadline run`, and without CUDA_INJECTION64_PATH naming another tool.");
    }
  }
  return p.status;
}

bool is_measuring() {
  Provider& p = provider();
  const std::lock_guard lock(p.mutex);
  return p.measuring != nullptr;
}

void sample_window(bool open) {
  Provider& p = provider();
  const std::lock_guard lock(p.mutex);
  if (p.measuring) p.measuring->sample_window(open);
}

Report report() {
  Provider& p = provider();
  const std::lock_guard lock(p.mutex);
  Report report{p.status, p.yielded_to, loaded_cupti_copies(), p.last};
  report.status.measuring = p.measuring != nullptr;
  report.status.awaiting = p.awaiting;
  report.status.timing_regions = p.regions != nullptr;
  if (p.measuring) report.details = p.measuring->details();
  return report;
}

void after_fork() noexcept {
  Provider& p = provider();
  new (&p.mutex) std::mutex;  // its holder may not exist in this process
  p.forked_after_cuda = p.forked_after_cuda || p.measuring || p.driver.has_value();
  if (p.measuring) p.measuring->abandon(&p.stale[0], &p.stale[1]);
  if (p.regions) p.stale[2] = p.regions->abandon();
  // Never destroyed: the destructors would join threads and free memory that another thread's state may have been
  // using.
  static_cast<void>(p.measuring.release());
  static_cast<void>(p.regions.release());
  p.status = {};
  p.yielded_to.clear();
}

void leave_monitor() noexcept {
  for (leadline_subscription& subscription : provider().stale) {
    if (subscription != 0) leadline_monitor_unregister(subscription);
    subscription = 0;
  }
}

}  // namespace leadline::nvidia

extern "C" int leadline_cuda_initialize() try {
  using namespace leadline::nvidia;
  Provider& p = provider();
  // The driver is in the middle of starting and whoever holds the lock may be waiting for it: better nothing measured,
  // which stop() says, than a program that hangs.
  std::unique_lock lock(p.mutex, std::try_to_lock);
  for (int waited_ms = 0; !lock && waited_ms < 1000; ++waited_ms) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    lock.try_lock();
  }
  if (!lock || !p.awaiting || p.measuring) return 1;
  p.awaiting = false;
  begin(p, Moment::kInsideCudaStart);
  return 1;
} catch (...) {
  leadline_monitor_loss(static_cast<std::uint32_t>(leadline::LossKind::kInternalError), 1,
                        "GPU work is not measured because the provider ran out of memory when CUDA started.");
  return 1;
}
