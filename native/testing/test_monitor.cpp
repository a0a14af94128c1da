#include "testing/test_monitor.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <unordered_map>

#include "base/schema_generated.h"
#include "testing/failing_allocator.h"

namespace leadline::testing {
namespace {

struct Sum {
  std::uint64_t count = 0;
  std::int64_t sum = 0;
};

struct Subscriber {
  std::uint32_t domains = 0;
  leadline_callback callback = nullptr;
  void* user = nullptr;
};

struct State {
  std::mutex mutex;
  std::atomic<std::int64_t (*)()> clock{nullptr};  // a thread that a test has left behind may still ask it
  std::vector<std::string> places;                 // context - 1
  std::unordered_map<std::string, std::uint64_t> place_of;
  std::map<std::string, std::map<std::string, Sum>> sums;           // "path | device d stream s" → metric
  std::array<std::atomic<std::uint64_t>, kLossKindCount> losses{};  // no lock: counted in a child and without memory
  std::atomic<bool> ignoring{false};
  std::map<std::string, std::string> loss_details;
  std::map<std::string, std::string> details;
  std::array<std::vector<leadline_gpu_api_event>, 3> api;
  std::vector<std::string> modules;
  std::array<Subscriber, 8> subscribers;
  std::uint64_t activities = 0;
};

State& state() {
  static State& made = *new State;
  return made;
}

thread_local std::vector<std::uint64_t> stack;

std::uint64_t place(const std::string& path) {
  State& s = state();
  const auto [found, is_new] = s.place_of.try_emplace(path, s.places.size() + 1);
  if (is_new) s.places.push_back(path);
  return found->second;
}

std::string path_of(std::uint64_t context) {
  const State& s = state();
  return context == 0 || context > s.places.size() ? "(nowhere)" : s.places[context - 1];
}

void push(const std::string& name) {
  stack.push_back(place((stack.empty() ? std::string() : path_of(stack.back()) + ";") + name));
}

void activity(const leadline_gpu_activity_event& a) {
  State& s = state();
  ++s.activities;
  std::string key = path_of(a.context);
  if (a.context == 0) ++s.losses[static_cast<std::size_t>(LossKind::kGpuRecordUnattributed)];
  const std::string node = " (node " + std::to_string(static_cast<std::uint32_t>(a.graph_node)) + ")";
  if (a.via_kind == LEADLINE_VIA_CAPTURE && a.via != 0) key += ";captured at;" + path_of(a.via);
  if (a.via_kind == LEADLINE_VIA_INSTANTIATE) key += ";instantiated at;" + path_of(a.via);
  if (a.via_kind == LEADLINE_VIA_BEFORE)
    key += ";captured before profiling (graph " + std::to_string(a.graph_node >> 32) + ")";
  if (a.name) key += std::string(";") + a.name;
  if (a.via_kind != LEADLINE_VIA_CAPTURE) key += node;
  if (a.name && a.detail) s.details[a.name] = a.detail;
  key += " | device " + std::to_string(a.device) + " stream " + std::to_string(a.stream);
  const auto book = [&](std::string_view metric, std::int64_t value) {
    Sum& sum = s.sums[key][std::string(metric)];
    ++sum.count;
    sum.sum += value;
  };
  const bool is_work = a.event_kind != static_cast<std::uint8_t>(EventKind::kScratch) &&
                       a.event_kind != static_cast<std::uint8_t>(EventKind::kOverhead);
  if (a.name && a.duration_ns >= 0 && is_work) book("gpu_time", a.duration_ns);
  const std::string kernel = key.substr(0, key.find(" | "));
  for (std::uint32_t i = 0; a.name && i < a.child_count; ++i) {
    const leadline_activity_child& child = a.children[i];
    key = kernel + ";" + child.name + (child.detail ? std::string(" ") + child.detail : "");
    for (std::uint32_t m = 0; m < child.measure_count; ++m) {
      book(to_string(static_cast<MetricKind>(child.measures[m].metric)), child.measures[m].value);
    }
  }
  for (std::uint32_t i = 0; i < a.measure_count; ++i) {
    book(to_string(static_cast<MetricKind>(a.measures[i].metric)), a.measures[i].value);
  }
}

}  // namespace

void TestMonitor::reset(std::int64_t (*clock)()) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.clock = clock;
  s.places.clear();
  s.place_of.clear();
  s.sums.clear();
  for (auto& count : s.losses) count = 0;
  s.loss_details.clear();
  s.details.clear();
  for (auto& events : s.api) events.clear();
  s.modules.clear();
  s.subscribers = {};
  s.activities = 0;
  stack.clear();
}

std::string TestMonitor::folded(const std::vector<std::string>& metrics) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  std::string text;
  for (const auto& [key, sums] : s.sums) {
    for (const auto& [metric, sum] : sums) {
      if (!metrics.empty() && std::find(metrics.begin(), metrics.end(), metric) == metrics.end()) continue;
      text += key + " | " + metric + " count " + std::to_string(sum.count) + " sum " + std::to_string(sum.sum) + "\n";
    }
  }
  return text;
}

std::size_t TestMonitor::subscribers() {
  const std::lock_guard lock(state().mutex);
  const auto& all = state().subscribers;
  return static_cast<std::size_t>(
      std::count_if(all.begin(), all.end(), [](const Subscriber& s) { return s.callback; }));
}

void TestMonitor::ignore_events(bool on) { state().ignoring = on; }

std::map<std::string, std::uint64_t> TestMonitor::losses() {
  const std::lock_guard lock(state().mutex);
  std::map<std::string, std::uint64_t> found;
  for (std::size_t i = 0; i < kLossKindCount; ++i) {
    if (const std::uint64_t count = state().losses[i]; count > 0) {
      found[std::string(to_string(static_cast<LossKind>(i)))] = count;
    }
  }
  return found;
}
std::string TestMonitor::loss_detail(const std::string& kind) {
  const std::lock_guard lock(state().mutex);
  return state().loss_details[kind];
}
std::vector<leadline_gpu_api_event> TestMonitor::api_events(leadline_phase phase) {
  const std::lock_guard lock(state().mutex);
  return state().api[phase];
}
std::vector<std::string> TestMonitor::module_events() {
  const std::lock_guard lock(state().mutex);
  return state().modules;
}
std::string TestMonitor::detail_of(const std::string& name) {
  const std::lock_guard lock(state().mutex);
  return state().details[name];
}
std::uint64_t TestMonitor::activities() {
  const std::lock_guard lock(state().mutex);
  return state().activities;
}
std::size_t TestMonitor::places() {
  const std::lock_guard lock(state().mutex);
  return state().places.size();
}

Region::Region(const char* name, leadline_region_kind kind) : name_(name), kind_(kind) {
  leadline_event event{};
  event.domain = LEADLINE_DOMAIN_REGION;
  event.phase = LEADLINE_BEGIN;
  event.time_ns = leadline_monitor_now();
  event.of.region.name = name;
  event.of.region.kind = kind;
  leadline_monitor_emit(&event);
}

Region::~Region() {
  leadline_event event{};
  event.domain = LEADLINE_DOMAIN_REGION;
  event.phase = LEADLINE_END;
  event.time_ns = leadline_monitor_now();
  event.of.region.name = name_;
  event.of.region.kind = kind_;
  leadline_monitor_emit(&event);
}

}  // namespace leadline::testing

using leadline::testing::place;
using leadline::testing::state;

extern "C" {

leadline_status leadline_monitor_register(uint32_t domains, leadline_callback callback, void* user,
                                          leadline_subscription* out) {
  auto& s = state();
  const std::lock_guard lock(s.mutex);
  for (std::size_t i = 0; i < s.subscribers.size(); ++i) {
    if (s.subscribers[i].callback) continue;
    s.subscribers[i] = {domains, callback, user};
    *out = static_cast<leadline_subscription>(i + 1);
    return LEADLINE_OK;
  }
  return LEADLINE_ERROR_FULL;
}

leadline_status leadline_monitor_unregister(leadline_subscription subscription) {
  auto& s = state();
  const std::lock_guard lock(s.mutex);
  if (subscription == 0 || subscription > s.subscribers.size()) return LEADLINE_ERROR_INVALID;
  s.subscribers[subscription - 1] = {};
  return LEADLINE_OK;
}

void leadline_monitor_finalize(void) {}

void leadline_monitor_emit(const leadline_event* event) {
  using namespace leadline::testing;
  auto& s = state();
  if (s.ignoring) return;
  std::array<Subscriber, 8> subscribers;
  {
    const OwnMemory own;
    const std::lock_guard lock(s.mutex);
    subscribers = s.subscribers;
    switch (event->domain) {
      case LEADLINE_DOMAIN_REGION:
      case LEADLINE_DOMAIN_COMPILE:
        if (event->phase == LEADLINE_BEGIN) push(event->of.region.name);
        if (event->phase == LEADLINE_END && !stack.empty()) stack.pop_back();
        if (event->of.region.name && event->of.region.detail)
          s.details[event->of.region.name] = event->of.region.detail;
        break;
      case LEADLINE_DOMAIN_OPERATOR:
        event->phase == LEADLINE_BEGIN ? push(event->of.op.name) : stack.pop_back();
        break;
      case LEADLINE_DOMAIN_GPU_API:
        s.api[event->phase].push_back(event->of.gpu_api);
        event->phase == LEADLINE_BEGIN ? push(event->of.gpu_api.name) : stack.pop_back();
        break;
      case LEADLINE_DOMAIN_GPU_ACTIVITY:
        activity(event->of.gpu_activity);
        break;
      case LEADLINE_DOMAIN_GPU_MODULE:
        s.modules.push_back(std::to_string(event->of.gpu_module.module));
        break;
      default:
        break;
    }
  }
  for (const Subscriber& subscriber : subscribers) {
    if (subscriber.callback && (subscriber.domains & event->domain) != 0) subscriber.callback(event, subscriber.user);
  }
}

uint32_t leadline_monitor_active(uint32_t domains) { return domains; }

leadline_context leadline_monitor_context(void) {
  return leadline::testing::stack.empty() ? 0 : leadline::testing::stack.back();
}

// A region plays the file.
int leadline_monitor_context_in_file(leadline_context context, const char* file) {
  const leadline::testing::OwnMemory own;
  const std::lock_guard lock(state().mutex);
  return leadline::testing::path_of(context).find(file) != std::string::npos ? 1 : 0;
}

// One frame: the innermost region, as a module.
leadline_status leadline_monitor_path(leadline_context context, leadline_frame* frames, size_t* count) {
  thread_local std::string name;
  const leadline::testing::OwnMemory own;
  const std::lock_guard lock(state().mutex);
  name = leadline::testing::path_of(context);
  name.erase(0, name.rfind(';') + 1);
  frames[0] = {};
  frames[0].kind = static_cast<uint8_t>(leadline::FrameKind::kModule);
  frames[0].name = name.c_str();
  *count = 1;
  return LEADLINE_OK;
}

void leadline_monitor_loss(uint32_t kind, uint64_t count, const char* detail) {
  auto& s = state();
  s.losses.at(kind) += count;
  if (s.ignoring || !detail) return;
  const leadline::testing::OwnMemory own;
  const std::lock_guard lock(s.mutex);
  s.loss_details.try_emplace(std::string(to_string(static_cast<leadline::LossKind>(kind))), detail);
}

uint64_t leadline_monitor_new_frame(void) {
  static std::atomic<uint64_t> frames{1};
  return frames.fetch_add(1);
}

int64_t leadline_monitor_now(void) {
  auto* const clock = state().clock.load();
  return clock ? clock() : 0;
}

leadline_status leadline_callpath_get(uint32_t, leadline_frame* frames, size_t* count) {
  // One frame that holds the whole path: enough for what tests compare.
  thread_local std::string path;
  const leadline::testing::OwnMemory own;
  const std::lock_guard lock(state().mutex);
  path = leadline::testing::stack.empty() ? "" : leadline::testing::path_of(leadline::testing::stack.back());
  if (*count < 1) return LEADLINE_ERROR_FULL;
  frames[0] = {0, 0, path.c_str(), nullptr, 0};
  *count = 1;
  return LEADLINE_OK;
}

}  // extern "C"
