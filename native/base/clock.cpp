// now_ns() extrapolates from the last comparison of the counter with CLOCK_MONOTONIC: base_ns + (ticks - base_ticks) *
// scale.
//
// Comparisons follow each other after 1 ms, 10 ms, 100 ms and then every second of use, so the error of the rate (some
// 50 ns of sampling over the last interval) stays below a microsecond at the end of the next. Being ahead of the
// system's clock is corrected by running slower for one interval, being behind by a step forward.
#include "base/clock.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace leadline {
namespace {

using clock_line::Line;
using clock_line::read_counter;
using clock_line::Wide;

std::int64_t read_clock(clockid_t clock) noexcept {
  timespec time{};
  clock_gettime(clock, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// --- the counter -----------------------------------------------------------------------------------------------------

#if defined(__x86_64__)
constexpr std::string_view kTrustedSource = "tsc";
bool counter_is_invariant() noexcept {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & (1u << 8)) != 0;
}
#elif defined(__aarch64__)
constexpr std::string_view kTrustedSource = "arch_sys_counter";
bool counter_is_invariant() noexcept { return true; }
#else
constexpr std::string_view kTrustedSource = "";
bool counter_is_invariant() noexcept { return false; }
#endif

// The kernel watches its clock source and leaves it when cores disagree; what it trusts can be trusted here.
bool kernel_uses_counter() noexcept {
  const int file = open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  std::array<char, 64> text{};
  const ssize_t size = read(file, text.data(), text.size());
  close(file);
  std::string_view source(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  if (!source.empty() && source.back() == '\n') source.remove_suffix(1);
  return source == kTrustedSource;
}

// --- the calibration -------------------------------------------------------------------------------------------------

struct Sample {
  std::uint64_t ticks = 0;
  std::int64_t ns = 0;
  std::uint64_t width_ticks = 0;  // how long taking it took: twice the worst error
};

Sample take_sample() noexcept {
  Sample best{0, 0, ~std::uint64_t{0}};
  for (int i = 0; i < 4; ++i) {
    const std::uint64_t before = read_counter();
    const std::int64_t ns = read_clock(CLOCK_MONOTONIC);
    const std::uint64_t width = read_counter() - before;
    if (width < best.width_ticks) best = {before + width / 2, ns, width};
  }
  return best;
}

enum class Source : std::uint8_t { kUnknown, kSystemCall, kCounter };
constexpr std::int64_t kFirstInterval_ns = 1'000'000;
constexpr std::int64_t kLastInterval_ns = 1'000'000'000;
constexpr std::uint64_t kOneScale = std::uint64_t{1} << 32;
constexpr int kMaxPoorSamples = 8;

struct Clock {
  std::atomic<Source> source{Source::kUnknown};
  std::atomic<bool> fake{false};
  std::atomic<std::int64_t> fake_ns{0};
  std::atomic<std::int64_t> fake_cpu_ns{0};
  std::atomic<std::int64_t> fake_reading_ns{0};
  std::atomic<pid_t> calibrating{
      0};  // process that calibrates, so that a fork child does not wait for its parent's thread
  // Belong to whoever calibrates:
  Sample last;  // width_ticks 0: none yet
  std::int64_t interval_ns = 0;
  int poor_samples = 0;
};
constinit Clock clock_state;

std::int64_t read_fake(std::atomic<std::int64_t>& fake_ns) noexcept {
  const std::int64_t takes_ns = clock_state.fake_reading_ns.load(std::memory_order_relaxed);
  clock_state.fake_ns.fetch_add(takes_ns, std::memory_order_relaxed);
  clock_state.fake_cpu_ns.fetch_add(takes_ns, std::memory_order_relaxed);
  return fake_ns.load(std::memory_order_relaxed);
}

bool begin_calibration() noexcept {
  const pid_t self = getpid();
  pid_t holder = 0;
  if (clock_state.calibrating.compare_exchange_strong(holder, self, std::memory_order_acquire)) return true;
  return holder != self && clock_state.calibrating.compare_exchange_strong(holder, self, std::memory_order_acquire);
}
void end_calibration() noexcept { clock_state.calibrating.store(0, std::memory_order_release); }

// Compares the counter with the system's clock and publishes a new line. Returns the time.
std::int64_t calibrate(const Line& old) noexcept {
  Clock& clock = clock_state;
  const Sample sample = take_sample();
  if (clock.last.width_ticks == 0) {
    clock.last = sample;
    clock.last.width_ticks = std::max<std::uint64_t>(sample.width_ticks, 1);
    return sample.ns;
  }
  const std::int64_t passed_ns = sample.ns - clock.last.ns;
  const std::uint64_t passed_ticks = sample.ticks - clock.last.ticks;
  const bool first = old.scale == 0;
  if (first && passed_ns < kFirstInterval_ns) return sample.ns;
  if (static_cast<std::int64_t>(passed_ticks) <= 0) return first ? sample.ns : old.base_ns;

  const auto rate =
      static_cast<std::uint64_t>((static_cast<Wide>(static_cast<std::uint64_t>(passed_ns)) << 32) / passed_ticks);
  // The thread was interrupted while sampling: better try again at the next call.
  const bool poor = static_cast<Wide>(sample.width_ticks) * rate / kOneScale > 2'000;
  if (poor && ++clock.poor_samples < kMaxPoorSamples) return first ? sample.ns : old.at(sample.ticks);
  clock.poor_samples = 0;

  const std::int64_t estimate = first ? sample.ns : old.at(sample.ticks);
  clock.interval_ns = std::min(kLastInterval_ns, std::min(passed_ns, clock.interval_ns + kFirstInterval_ns) * 10);
  Line line{sample.ticks, std::max(estimate, sample.ns), rate, 0};
  line.valid_ticks =
      static_cast<std::uint64_t>((static_cast<Wide>(static_cast<std::uint64_t>(clock.interval_ns)) << 32) / rate);
  if (const std::int64_t ahead = estimate - sample.ns; ahead > 0) {
    const std::int64_t slower = std::min(ahead, clock.interval_ns / 2);
    line.scale =
        static_cast<std::uint64_t>(static_cast<Wide>(rate) * static_cast<std::uint64_t>(clock.interval_ns - slower) /
                                   static_cast<std::uint64_t>(clock.interval_ns));
  }
  clock.last = sample;
  clock.last.width_ticks = std::max<std::uint64_t>(sample.width_ticks, 1);
  clock_line::line.store(line);
  return line.base_ns;
}

}  // namespace

namespace clock_line {

constinit SharedLine line;

[[gnu::noinline, gnu::cold]] std::int64_t slow_now(const Line& line, std::uint64_t ticks) noexcept {
  Clock& clock = clock_state;
  if (clock.fake.load(std::memory_order_acquire)) return read_fake(clock.fake_ns);
  Source source = clock.source.load(std::memory_order_relaxed);
  if (source == Source::kUnknown) {
    source = counter_is_invariant() && kernel_uses_counter() ? Source::kCounter : Source::kSystemCall;
    clock.source.store(source, std::memory_order_relaxed);
  }
  if (source == Source::kSystemCall) return read_clock(CLOCK_MONOTONIC);
  const auto passed = static_cast<std::int64_t>(ticks - line.base_ticks);
  if (line.scale != 0 && passed < static_cast<std::int64_t>(line.valid_ticks)) return line.at(ticks);
  if (!begin_calibration()) return line.scale != 0 ? line.at(ticks) : read_clock(CLOCK_MONOTONIC);
  const std::int64_t now = calibrate(line);
  end_calibration();
  return now;
}

}  // namespace clock_line

std::int64_t realtime_ns() noexcept { return read_clock(CLOCK_REALTIME); }

std::int64_t thread_cpu_ns() noexcept {
  if (clock_state.fake.load(std::memory_order_relaxed)) [[unlikely]]
    return read_fake(clock_state.fake_cpu_ns);
  return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

std::int64_t thread_cpu_ns(clockid_t clock) noexcept {
  if (clock_state.fake.load(std::memory_order_relaxed)) [[unlikely]]
    return read_fake(clock_state.fake_cpu_ns);
  timespec time{};
  if (clock_gettime(clock, &time) != 0) return -1;
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// As the kernel numbers them (posix-timers.h: CPUCLOCK_PERTHREAD | SCHED).
clockid_t cpu_clock_of(pid_t tid) noexcept { return (~static_cast<clockid_t>(tid) << 3) | 6; }

ClockSource clock_source() noexcept {
  if (clock_state.fake.load(std::memory_order_relaxed)) return ClockSource::kFake;
  now_ns();  // decides at the first call
  return clock_state.source.load(std::memory_order_relaxed) == Source::kCounter ? ClockSource::kCounter
                                                                                : ClockSource::kSystemCall;
}

FakeClock::FakeClock(std::int64_t start_ns) noexcept {
  set(start_ns);
  clock_state.fake_cpu_ns.store(0, std::memory_order_relaxed);
  clock_state.fake_reading_ns.store(0, std::memory_order_relaxed);
  clock_state.fake.store(true, std::memory_order_release);
  clock_line::line.store(Line{});  // nothing is valid: every call asks
}

FakeClock::~FakeClock() {
  clock_state.last = Sample{};
  clock_state.interval_ns = 0;
  clock_state.fake.store(false, std::memory_order_release);
}

void FakeClock::set(std::int64_t now_ns) noexcept { clock_state.fake_ns.store(now_ns, std::memory_order_relaxed); }

void FakeClock::advance(std::int64_t by_ns) noexcept {
  clock_state.fake_ns.fetch_add(by_ns, std::memory_order_relaxed);
}

void FakeClock::readings_take(std::int64_t ns) noexcept {
  clock_state.fake_reading_ns.store(ns, std::memory_order_relaxed);
}

void FakeClock::advance_cpu(std::int64_t by_ns) noexcept {
  clock_state.fake_cpu_ns.fetch_add(by_ns, std::memory_order_relaxed);
}

}  // namespace leadline
