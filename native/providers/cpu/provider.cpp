#include "providers/cpu/provider.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <new>

#include "base/abandon.h"
#include "base/safe_pages.h"
#include "monitor/monitor.h"
#include "providers/cpu/booker.h"
#include "providers/cpu/handler.h"
#include "providers/cpu/operator_frames.h"
#include "providers/cpu/threads.h"
#include "unwind/rule_cache.h"

namespace leadline::cpu {
namespace {

constexpr double kLowestHz = 0.1;
constexpr double kHighestHz = 10'000;

// Never destroyed: threads may outlive main. In memory that is there, so that no caller has to think of a failure.
Booker& booker() noexcept {
  alignas(Booker) static std::byte place[sizeof(Booker)];
  static auto* const made = new (place) Booker();
  return *made;
}
Threads& threads() noexcept {
  alignas(Threads) static std::byte place[sizeof(Threads)];
  static auto* const made = new (place) Threads(booker());
  return *made;
}

std::atomic<pid_t> g_process{0};  // in which samples are taken

void before_code_dies() {
  if (waiting_samples().load(std::memory_order_acquire) <= 0) return;
  if (g_process.load(std::memory_order_relaxed) == getpid()) threads().book_waiting();
}

// Why samples have no Python frames; empty where they have.
std::string read_python() {
  const PythonSource* const python = Monitor::instance().python();
  const PythonSamples* const samples = python == nullptr ? nullptr : python->samples;
  set_samples(nullptr);
  booker().set_python(nullptr);
  if (samples == nullptr) return "";  // why is told where frames are read at all
  if (!SafePages::allowed()) {
    return "CPU samples have no Python lines, because this system forbids process_vm_readv; allow it (in containers: "
           "a seccomp profile with that call).";
  }
  if (!samples->begin(*python)) return "CPU samples have no Python lines on this interpreter.";
  samples->before_code_dies(before_code_dies);
  booker().set_python(samples);
  set_samples(samples);
  return "";
}

// Why samples have no native frames; empty where they have, or where nobody wants them.
std::string start_native(const std::string& wanted) {
  set_native(false);
  Monitor::instance().set_native(nullptr);
  booker().forget_places();
  if (wanted.empty()) return "";
  if (!unwind::available()) {
    std::string why = "Native frames are not read here: they need the GNU C library 2.35 or later.";
    losses().count(LossKind::kProviderUnavailable, 1, why);
    return why;
  }
  const auto interpreter = reinterpret_cast<uintptr_t>(dlsym(RTLD_DEFAULT, "PyEval_EvalCode"));
  booker().set_native(wanted == "all", interpreter);
  Monitor::instance().set_native(operator_frames(wanted == "all", interpreter));
#ifdef __x86_64__
  set_native(true);
  return "";
#else
  std::string why =
      "Operators have native frames on this processor and CPU samples have none: libgcc's unwinder cannot be asked "
      "in a signal handler.";
  losses().count(LossKind::kProviderUnavailable, 1, why);
  return why;
#endif
}

// Names of events by the metrics that count them: "named_counter_1=r1c2 named_counter_2=...".
std::string named_counters() {
  std::string names;
  const CounterPlan* const made = plan();
  for (size_t i = 0; made != nullptr && i < made->counters().size(); ++i) {
    const PlannedCounter& one = made->counters()[i];
    if (one.source != CounterSource::kNamed) continue;
    names += std::string(names.empty() ? "" : " ") + std::string(to_string(one.metric)) + "=" + one.name;
  }
  return names;
}

// What readers of the counters have to know. Plans are few and never freed: a handler may be reading one.
std::string start_counters(const std::vector<std::string>& names) {
  set_plan(nullptr);
  if (names.empty()) return "";
  auto* const made = new CounterPlan();
  for (const std::string& why : made->make(names)) losses().count(LossKind::kProviderUnavailable, 1, why);
  if (!made->counters().empty()) set_plan(made);
  return made->caution();
}

}  // namespace

std::vector<std::string> Provider::refused_counters(const std::vector<std::string>& names) {
  return CounterPlan().make(names);
}

void Provider::thread_begins() noexcept {
  try {
    threads().meet_own();
  } catch (const std::bad_alloc&) {
    losses().count(LossKind::kInternalError, 1, "no memory for a thread that began; a later listing meets it");
  }
}

Provider& Provider::instance() {
  static auto* const made = new Provider();  // never destroyed: threads may outlive main
  return *made;
}

ProviderStatus Provider::start(const ProviderOptions& options) {
  const double hz = std::clamp(options.get("hz", 99.0), kLowestHz, kHighestHz);
  const std::string missing = read_python();
  if (!missing.empty()) losses().count(LossKind::kPythonFramesUnavailable, 1, missing);
  const std::string unwound = start_native(options.get<std::string>("native", ""));
  threads().stop();  // nobody counts while the plan changes
  caution_ = start_counters(options.get<std::vector<std::string>>("counters", {}));
  std::string why;
  g_process.store(getpid());
  double wait_hz = options.get("wait_hz", 0.0);
  if (wait_hz > 0 && !Waits::available()) {
    losses().count(LossKind::kProviderUnavailable, 1,
                   "What threads wait for is not known here: this system does not say in which system call they are "
                   "(/proc/self/task/TID/syscall).");
    wait_hz = 0;
  }
  const bool ok = threads().start(hz, wait_hz, &why);
  if (!ok) losses().count(LossKind::kProviderUnavailable, 1, why);
  answer_ = {{"ok", ok}, {"message", !ok ? why : !missing.empty() ? missing : unwound}, {"hz", hz}};
  return status();
}

void Provider::pause() noexcept { threads().pause(); }
void Provider::resume() noexcept { threads().resume(); }
void Provider::before_exec() noexcept { threads().book_waiting(); }
void Provider::before_fork() noexcept { threads().rest(); }
void Provider::after_fork_parent() noexcept { threads().wake(); }

// Timers are not inherited. Who follows the session into the child starts anew.
void Provider::after_fork_child() noexcept {
  abandon(booker().lock());
  operator_frames_after_fork();
  threads().forget();
}

void Provider::stop() noexcept {
  Monitor::instance().set_native(nullptr);
  threads().stop();
}

int64_t Provider::cost_ns() const noexcept {
  const Threads::Count count = threads().count();
  return count.handlers_ns + count.helper_ns;
}

ProviderStatus Provider::status() const {
  ProviderStatus status = answer_;
  const Threads::Count count = threads().count();
  status["samples"] = static_cast<int64_t>(count.samples);
  status["threads"] = static_cast<int64_t>(count.threads);
  status["handlers_ns"] = count.handlers_ns;
  status["helper_ns"] = count.helper_ns;
  std::string estimated = caution_;
  if (count.scaled) {
    estimated += std::string(estimated.empty() ? "" : " ") +
                 "More counters than the processor has took turns; their values are scaled up.";
  }
  if (!estimated.empty()) status["estimated"] = estimated;
  if (std::string named = named_counters(); !named.empty()) status["named_counters"] = std::move(named);
  return status;
}

}  // namespace leadline::cpu
