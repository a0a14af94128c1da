#include "providers/cpu/counters.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace leadline::cpu {
namespace {

perf_event_attr attributes(const PlannedCounter& counter) noexcept {
  perf_event_attr wanted{};
  wanted.size = sizeof wanted;
  wanted.type = counter.event.type;
  wanted.config = counter.event.config;
  wanted.config1 = counter.event.config1;
  wanted.config2 = counter.event.config2;
  wanted.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  wanted.exclude_hv = 1;
  wanted.exclude_kernel = counter.user_only ? 1 : 0;
  return wanted;
}

int open_counter(const PlannedCounter& counter, pid_t tid, int leader) noexcept {
  perf_event_attr wanted = attributes(counter);
  return static_cast<int>(syscall(SYS_perf_event_open, &wanted, tid, -1, leader, PERF_FLAG_FD_CLOEXEC));
}

// The form of what read() gives of a group.
struct GroupReading {
  uint64_t count = 0;
  uint64_t enabled_ns = 0;
  uint64_t running_ns = 0;
  std::array<uint64_t, kMostCounters> values{};
};

bool read_group(int file, size_t count, GroupReading* out) noexcept {
  const auto bytes = static_cast<ssize_t>((3 + count) * sizeof(uint64_t));
  return ::read(file, out, static_cast<size_t>(bytes)) == bytes && out->count == count;
}

std::string refusal(const PlannedCounter& counter, int error) {
  const std::string& name = counter.name;
  if (error == EACCES || error == EPERM || error == ENOSYS) {
    if (counter.source == CounterSource::kSoftware) {
      return "The kernel counts " + name +
             ", and this user may not count what the kernel does (kernel.perf_event_paranoid above 1); count it as "
             "root, or leave it out.";
    }
    return "This system lets nobody count " + name +
           " (perf_event_open is forbidden: a container's rules, or kernel.perf_event_paranoid above 2); allow it, or "
           "leave it out.";
  }
  if (error == EMFILE || error == ENFILE) return "There are too many open files to count " + name + "; see ulimit -n.";
  return "This machine has no counter for " + name +
         " (a virtual machine often has none of its processor's); leave it out.";
}

std::string known_names() {
  std::string names;
  for (const CounterKind& kind : kCounterKinds) names += (names.empty() ? "" : ", ") + std::string(kind.name);
  return names;
}

void run_a_little() noexcept {
  volatile uint64_t sum = 0;
  for (uint64_t i = 0; i < 100'000; ++i) sum = sum + i;
}

// Empty where the counter counts; it may turn out to count the user's part only.
std::string why_not(PlannedCounter* counter) {
  if (counter->source == CounterSource::kUsage) return {};
  int file = open_counter(*counter, 0, -1);
  if (file < 0 && (errno == EACCES || errno == EPERM) && counter->source >= CounterSource::kHardware) {
    counter->user_only = true;
    file = open_counter(*counter, 0, -1);
  }
  if (file < 0) return refusal(*counter, errno);
  run_a_little();
  GroupReading reading;
  const bool read = read_group(file, 1, &reading);
  close(file);
  const bool counts = read && reading.running_ns != 0 && (!counter->always || reading.values[0] != 0);
  return counts ? std::string()
                : "The counter " + counter->name +
                      " reads only zero on this machine; leave it out (a virtual machine may pretend to have it).";
}

// Whether these are ever on the processor together.
bool fit(const std::vector<PlannedCounter>& counters, const std::vector<size_t>& group) noexcept {
  std::array<int, kMostCounters> files{};
  size_t opened = 0;
  for (; opened < group.size(); ++opened) {
    files[opened] = open_counter(counters[group[opened]], 0, opened == 0 ? -1 : files[0]);
    if (files[opened] < 0) break;
  }
  bool together = opened == group.size();
  if (together) {
    run_a_little();
    GroupReading reading;
    together = read_group(files[0], group.size(), &reading) && reading.running_ns != 0;
  }
  while (opened > 0) close(files[--opened]);
  return together;
}

// Empty where the name means something.
std::string plan_of(const std::string& name, PlannedCounter* counter) {
  const std::string_view ours = perf_name_of_papi(name);
  if (const CounterKind* kind = find_counter(ours.empty() ? std::string_view(name) : ours); kind != nullptr) {
    *counter = {std::string(kind->name), kind->metric, kind->source, {kind->type, kind->config}, kind->always};
    return {};
  }
  std::string why;
  const std::optional<EventCode> code = event_named(name, &why);
  if (code) {
    *counter = {name, MetricKind::kNamedCounter1, CounterSource::kNamed, *code};
  } else if (why.empty()) {
    why = "There is no counter named " + name + "; there are " + known_names() +
          ", and events of the processor as rHEX, PMU/TERMS/ or libpfm's PMU::EVENT.";
  }
  return why;
}

}  // namespace

std::vector<std::string> CounterPlan::make(const std::vector<std::string>& names) {
  std::vector<std::string> refused;
  size_t named = 0;
  counters_.clear();
  for (const std::string& name : names) {
    PlannedCounter counter;
    if (std::string why = plan_of(name, &counter); !why.empty()) {
      refused.push_back(std::move(why));
      continue;
    }
    const auto same = [&](const PlannedCounter& one) { return one.name == counter.name; };
    if (std::any_of(counters_.begin(), counters_.end(), same)) continue;
    if (counter.source == CounterSource::kNamed && named == kMostNamed) {
      refused.push_back("No more than " + std::to_string(kMostNamed) +
                        " counters are read by the names of events at a time; leave out " + name + ".");
      continue;
    }
    if (counters_.size() == kMostCounters) {
      refused.push_back("No more than " + std::to_string(kMostCounters) + " counters are read at a time; leave out " +
                        counter.name + ".");
      continue;
    }
    std::string why = why_not(&counter);
    if (why.empty()) {
      if (counter.source == CounterSource::kNamed) {
        constexpr std::array kMetrics{MetricKind::kNamedCounter1, MetricKind::kNamedCounter2,
                                      MetricKind::kNamedCounter3, MetricKind::kNamedCounter4};
        static_assert(kMetrics.size() == kMostNamed);
        counter.metric = kMetrics[named++];
      }
      counters_.push_back(counter);
    } else {
      refused.push_back(std::move(why));
    }
  }
  arrange();
  return refused;
}

// Counters of the processor as one group where it can hold them all, so that their ratios are of the same moments.
void CounterPlan::arrange() {
  groups_.clear();
  uses_usage_ = false;
  std::vector<size_t> hardware;
  for (size_t i = 0; i < counters_.size(); ++i) {
    switch (counters_[i].source) {
      case CounterSource::kUsage:
        uses_usage_ = true;
        break;
      case CounterSource::kSoftware:
        groups_.push_back({i});
        break;
      case CounterSource::kHardware:
      case CounterSource::kNamed:
        hardware.push_back(i);
        break;
    }
  }
  if (!hardware.empty() && (hardware.size() == 1 || fit(counters_, hardware))) {
    groups_.push_back(std::move(hardware));
  } else {
    for (const size_t one : hardware) groups_.push_back({one});
  }
  words_ = uses_usage_ ? kUsageWords : 0;
  for (const auto& group : groups_) words_ += kGroupWords + group.size();
}

std::string CounterPlan::caution() const {
  std::string names;
  for (const PlannedCounter& counter : counters_) {
    if (counter.user_only) names += (names.empty() ? "" : ", ") + counter.name;
  }
  if (names.empty()) return names;
  return "Counted outside of the kernel only, since this user may not count what the kernel does: " + names + ".";
}

// ---------------------------------------------------------------- one thread

bool CounterFiles::open(const CounterPlan& plan, pid_t tid) noexcept {
  close();
  bool all = true;
  for (const auto& group : plan.groups()) {
    const size_t leader = group.front();
    for (const size_t one : group) {
      const int group_file = one == leader ? -1 : files_[leader].number();
      if (!files_[one].open(attributes(plan.counters()[one]), tid, group_file)) {
        all = false;
        break;
      }
    }
  }
  return all;
}

void CounterFiles::close() noexcept {
  for (PerfFile& file : files_) file.close();
}

void CounterFiles::read(const CounterPlan& plan, uint64_t* words) const noexcept {
  if (plan.uses_usage()) words += kUsageWords;
  for (const auto& group : plan.groups()) {
    const PerfFile& leader = files_[group.front()];
    GroupReading reading;
    if (leader.is_ours() && read_group(leader.number(), group.size(), &reading)) {
      words[0] = reading.enabled_ns;
      words[1] = reading.running_ns;
      std::copy_n(reading.values.begin(), group.size(), words + kGroupWords);
    }
    words += kGroupWords + group.size();
  }
}

Usage own_usage() noexcept {
  rusage now{};
  if (getrusage(RUSAGE_THREAD, &now) != 0) return {};
  return {static_cast<uint64_t>(now.ru_minflt), static_cast<uint64_t>(now.ru_majflt),
          static_cast<uint64_t>(now.ru_nvcsw) + static_cast<uint64_t>(now.ru_nivcsw)};
}

bool usage_of(pid_t tid, Usage* out) noexcept {
  char path[64];
  char text[4096];
  const auto load = [&](const char* name) {
    snprintf(path, sizeof path, "/proc/self/task/%d/%s", tid, name);
    FILE* const file = fopen(path, "re");
    if (file == nullptr) return false;
    const size_t got = fread(text, 1, sizeof text - 1, file);
    text[got] = '\0';
    fclose(file);
    return got != 0;
  };
  // proc(5): the fields behind the name, which may hold anything, begin with the third
  if (!load("stat")) return false;
  const char* const behind = strrchr(text, ')');
  unsigned long long minor = 0;
  unsigned long long major = 0;
  if (behind == nullptr || sscanf(behind + 1, " %*c %*d %*d %*d %*d %*d %*u %llu %*u %llu", &minor, &major) != 2) {
    return false;
  }
  if (!load("status")) return false;
  uint64_t switches = 0;
  for (const char* name : {"\nvoluntary_ctxt_switches:", "\nnonvoluntary_ctxt_switches:"}) {
    const char* const at = strstr(text, name);
    if (at != nullptr) switches += strtoull(at + strlen(name), nullptr, 10);
  }
  *out = {minor, major, switches};
  return true;
}

void put_usage(const CounterPlan& plan, const Usage& usage, uint64_t* words) noexcept {
  if (!plan.uses_usage()) return;
  words[0] = usage.minor_faults;
  words[1] = usage.major_faults;
  words[2] = usage.switches;
}

void CounterBooks::take(const CounterPlan& plan, const uint64_t* words, int64_t* counts) noexcept {
  const auto grown = [&](size_t at) { return words[at] > last_[at] ? words[at] - last_[at] : 0; };
  size_t at = 0;
  if (plan.uses_usage()) {
    for (size_t i = 0; i < plan.counters().size(); ++i) {
      const PlannedCounter& counter = plan.counters()[i];
      if (counter.source != CounterSource::kUsage) continue;
      for (size_t member = 0; member < kUsageWords; ++member) {
        if ((counter.event.config >> member & 1) != 0) counts[i] += static_cast<int64_t>(grown(member));
      }
    }
    for (; at < kUsageWords; ++at) last_[at] = std::max(last_[at], words[at]);
  }
  for (const auto& group : plan.groups()) {
    const size_t end = at + kGroupWords + group.size();
    const uint64_t enabled_ns = grown(at);
    const uint64_t running_ns = grown(at + 1);
    if (running_ns == 0) {  // it was not on the processor: the next reading tells more
      at = end;
      continue;
    }
    // The kernel's two clocks differ by its own work.
    const auto enabled = static_cast<double>(enabled_ns);
    const auto running = static_cast<double>(running_ns);
    const bool all_the_time = enabled <= 1.001 * running + 1000;
    const double scale = all_the_time ? 1.0 : enabled / running;
    scaled_ = scaled_ || !all_the_time;
    for (size_t i = 0; i < group.size(); ++i) {
      const auto raw = static_cast<double>(grown(at + kGroupWords + i));
      counts[group[i]] += std::llround(raw * scale);
    }
    std::copy(words + at, words + end, last_.begin() + static_cast<ptrdiff_t>(at));
    at = end;
  }
}

}  // namespace leadline::cpu
