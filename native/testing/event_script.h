// A program with every kind of event that the monitor knows, for tests that let bad luck happen between them.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "stack/fake_python.h"
#include "testing/failing_allocator.h"
#include "testing/recorded_program.h"

namespace leadline::testing {

// One run of all kinds of events, on one thread. Names are new in every run, so that nothing is known beforehand.
class Script {
 public:
  Script(RecordedProgram& program, FakeClock& clock) : program_(&program), clock_(clock) {
    static int runs = 0;
    // Made beforehand, so that the script itself needs no memory.
    for (const char* base : {"AddmmBackward0", "FFMA",      "addmm",  "captured", "compile", "copy_",  "cuLaunchKernel",
                             "decode",         "forward",   "fused",  "fusion",   "gemm",    "linear", "load",
                             "main",           "optimizer", "paused", "relu",     "step",    "train"})
      names_.push_back(base + ("#" + std::to_string(runs + 1)));
    const uintptr_t first_code = 1'000'000 + 10 * static_cast<uintptr_t>(++runs);  // no other test's
    FakePython::reset();
    // Three frames of functions that nobody has seen.
    for (uintptr_t level = 0; level < 3; ++level) {
      const uintptr_t code = first_code + level;
      FakePython::functions[code] = named(level == 0 ? "main" : level == 1 ? "train" : "step");
      FakePython::chain.push_back({1'000'000 + 64 * level, code, 10});
    }
  }
  ~Script() { FakePython::reset(); }
  Script(const Script&) = delete;
  Script& operator=(const Script&) = delete;

  static size_t number_of(std::string_view what) {
    const auto found =
        std::find_if(events().begin(), events().end(), [&](const Event& one) { return one.what == what; });
    return static_cast<size_t>(found - events().begin());
  }
  struct Event {
    const char* what;
    void (*happen)(Script&);
  };
  static const std::vector<Event>& events();

  void run(size_t from, size_t to) {
    for (size_t i = from; i < to; ++i) {
      clock_.advance(10);
      clock_.advance_cpu(5);
      events()[i].happen(*this);
    }
  }
  void run() { run(0, events().size()); }
  void measured_by(RecordedProgram& program) { program_ = &program; }

 private:
  const char* named(std::string_view base) const {
    return std::find_if(names_.begin(), names_.end(), [&](const auto& name) { return name.starts_with(base); })
        ->c_str();
  }
  void at_line(uintptr_t line) { FakePython::chain.back().line = line; }
  // The framework's number of the calling thread.
  static uint64_t this_thread() {
    static std::atomic<uint64_t> threads{0};
    thread_local const uint64_t number = ++threads;
    return number;
  }
  void operator_begins(int token, const char* name, int64_t sequence = -1, bool backward = false) {
    leadline_operator_event op = operator_named(named(name), sequence);
    op.thread = this_thread();
    op.backward = backward ? 1 : 0;
    op.forward_thread = backward ? this_thread() : 0;
    Monitor::instance().begin_operator(op, &tokens_[token]);
  }
  void operator_ends(int token) { Monitor::instance().end_operator(&tokens_[token]); }
  void region_begins(int token, const char* name, leadline_region_kind kind, const char* detail = nullptr,
                     uint32_t flags = 0) {
    leadline_event event = leadline_event_of(LEADLINE_DOMAIN_REGION, LEADLINE_BEGIN);
    event.token = &tokens_[token];
    event.of.region.kind = kind;
    event.of.region.name = kind == LEADLINE_REGION_PHASE ? name : named(name);
    event.of.region.detail = detail;
    event.of.region.flags = flags;
    leadline_monitor_emit(&event);
  }
  void region_ends(int token, leadline_region_kind kind) { end_region(&tokens_[token], kind); }
  void nests(leadline_domain domain, leadline_phase phase, int token) {
    leadline_event event = leadline_event_of(domain, phase);
    event.token = &tokens_[token];
    if (domain == LEADLINE_DOMAIN_GPU_API) {
      event.of.gpu_api.name = named("cuLaunchKernel");
      event.of.gpu_api.correlation = 1;
      event.of.gpu_api.device = 0;
    } else {
      event.of.compile.name = named("compile");
      event.of.compile.kind = LEADLINE_REGION_PHASE;
    }
    leadline_monitor_emit(&event);
  }
  void memory(uint64_t address, int64_t bytes, int32_t type) {
    leadline_event event = leadline_event_of(LEADLINE_DOMAIN_MEMORY, LEADLINE_INSTANT);
    event.of.memory = {address, bytes, type, type == 0 ? -1 : 0, -1, -1};
    leadline_monitor_emit(&event);
  }
  // Device work: one piece, a shared one, one of a graph.
  void activity(const char* name, bool shared, leadline_context via) {
    leadline_event event = leadline_event_of(LEADLINE_DOMAIN_GPU_ACTIVITY, LEADLINE_INSTANT);
    leadline_gpu_activity_event& work = event.of.gpu_activity;
    const leadline_measure measure{static_cast<uint32_t>(MetricKind::kQueueDepth), 3};
    const leadline_activity_child child{
        static_cast<uint8_t>(FrameKind::kInstruction), named("FFMA"), nullptr, nullptr, 0, 0x40, &measure, 1};
    const leadline_share shares[2] = {{launch_, 500'000}, {other_, 500'000}};
    work.context = launch_;
    work.via = via;
    work.frame_kind = static_cast<uint8_t>(FrameKind::kKernel);
    work.event_kind = static_cast<uint8_t>(EventKind::kKernel);
    work.name = named(name);
    work.start_ns = now_ns();
    work.duration_ns = 100;
    work.measures = &measure;
    work.measure_count = 1;
    work.children = &child;
    work.child_count = 1;
    work.shares = shares;
    work.share_count = shared ? 2 : 0;
    leadline_monitor_emit(&event);
  }
  // Checks of the test framework need memory of their own.
  void tell_session(void (RecordedProgram::*what)()) {
    const bool pauses = what == &RecordedProgram::pause;
    if (Monitor::instance().paused() == pauses) return;  // another session was told
    const Allocations before = std::exchange(t_allocations, {});
    (program_->*what)();
    t_allocations = before;
  }
  void book() {
    leadline_path_frame frame{};
    frame.kind = static_cast<uint8_t>(FrameKind::kOperator);
    frame.name = named("fusion");
    const leadline_total total{static_cast<uint32_t>(MetricKind::kGpuTime), 4, 40, 5, 15, 0};
    leadline_booking booking = leadline_booking_of(launch_);
    booking.frames = &frame;
    booking.frame_count = 1;
    booking.totals = &total;
    booking.total_count = 1;
    leadline_monitor_book(&booking, nullptr);
  }
  void ask() {
    std::array<leadline_frame, 64> frames{};
    size_t count = frames.size();
    leadline_callpath_get(LEADLINE_SOURCE_ALL, frames.data(), &count);
    std::array<leadline_thread, 64> threads{};
    count = threads.size();
    leadline_monitor_threads(threads.data(), &count);
    leadline_monitor_context_in_file(launch_, "train.py");
  }

  RecordedProgram* program_;
  FakeClock& clock_;
  std::vector<std::string> names_;
  std::array<char, 8> tokens_{};
  leadline_context launch_ = 0;
  leadline_context other_ = 0;
};

inline const std::vector<Script::Event>& Script::events() {
  constexpr auto kPhase = LEADLINE_REGION_PHASE;
  constexpr auto kUser = LEADLINE_REGION_USER;
  static const std::vector<Event> all{
      {"a phase begins", [](Script& s) { s.region_begins(0, "forward", kPhase); }},
      {"an operator begins", [](Script& s) { s.operator_begins(1, "linear", 7); }},
      {"an operator begins inside", [](Script& s) { s.operator_begins(2, "addmm"); }},
      {"memory is allocated", [](Script& s) { s.memory(0x1000, 64, 0); }},
      {"memory of a device is allocated", [](Script& s) { s.memory(0x2000, 256, 1); }},
      {"the inner operator ends", [](Script& s) { s.operator_ends(2); }},
      {"a call begins", [](Script& s) { s.nests(LEADLINE_DOMAIN_GPU_API, LEADLINE_BEGIN, 2); }},
      {"its place is asked", [](Script& s) { s.launch_ = leadline_monitor_context(); }},
      {"the call ends", [](Script& s) { s.nests(LEADLINE_DOMAIN_GPU_API, LEADLINE_END, 2); }},
      {"the operator ends", [](Script& s) { s.operator_ends(1); }},
      {"a place of Python is asked",
       [](Script& s) {
         s.at_line(11);
         s.other_ = leadline_monitor_context();
       }},
      {"a wait is measured",
       [](Script&) { leadline_monitor_measure(static_cast<uint32_t>(MetricKind::kWaitTime), 3, 0); }},
      {"a region begins", [](Script& s) { s.region_begins(3, "load", kUser, "{\"split\": \"train\"}"); }},
      {"a region begins inside", [](Script& s) { s.region_begins(4, "decode", kUser); }},
      {"an operator begins in both", [](Script& s) { s.operator_begins(5, "copy_"); }},
      {"the outer region ends first", [](Script& s) { s.region_ends(3, kUser); }},
      {"the operator ends", [](Script& s) { s.operator_ends(5); }},
      {"the inner region ends", [](Script& s) { s.region_ends(4, kUser); }},
      {"compilation begins", [](Script& s) { s.nests(LEADLINE_DOMAIN_COMPILE, LEADLINE_BEGIN, 3); }},
      {"compilation ends", [](Script& s) { s.nests(LEADLINE_DOMAIN_COMPILE, LEADLINE_END, 3); }},
      {"a kernel is reported", [](Script& s) { s.activity("gemm", false, 0); }},
      {"a shared kernel is reported", [](Script& s) { s.activity("fused", true, 0); }},
      {"a kernel of a graph is reported", [](Script& s) { s.activity("captured", false, s.other_); }},
      {"a module is loaded",
       [](Script&) {
         const leadline_event event = leadline_event_of(LEADLINE_DOMAIN_GPU_MODULE, LEADLINE_INSTANT);
         leadline_monitor_emit(&event);
       }},
      {"something is booked", [](Script& s) { s.book(); }},
      {"paths and threads are asked for", [](Script& s) { s.ask(); }},
      {"the phase ends", [](Script& s) { s.region_ends(0, kPhase); }},
      {"a backward operator begins", [](Script& s) { s.operator_begins(1, "AddmmBackward0", 7, true); }},
      {"memory is freed", [](Script& s) { s.memory(0x1000, INT64_MIN, 0); }},
      {"the backward operator ends", [](Script& s) { s.operator_ends(1); }},
      {"the optimizer begins",
       [](Script& s) { s.region_begins(0, "optimizer", kPhase, nullptr, LEADLINE_REGION_FLAG_ENDS_STEP); }},
      {"the optimizer ends", [](Script& s) { s.region_ends(0, kPhase); }},
      {"a step has ended",
       [](Script&) {
         leadline_event event = leadline_event_of(LEADLINE_DOMAIN_REGION, LEADLINE_INSTANT);
         event.of.region.kind = LEADLINE_REGION_STEP;
         event.of.region.step = -1;
         leadline_monitor_emit(&event);
       }},
      {"an operator begins before a pause", [](Script& s) { s.operator_begins(1, "relu"); }},
      {"measuring pauses", [](Script& s) { s.tell_session(&RecordedProgram::pause); }},
      {"an operator begins in it", [](Script& s) { s.operator_begins(2, "paused"); }},
      {"memory is freed in it", [](Script& s) { s.memory(0x2000, -256, 1); }},
      {"an operator ends in it", [](Script& s) { s.operator_ends(2); }},
      {"measuring goes on", [](Script& s) { s.tell_session(&RecordedProgram::resume); }},
      {"the operator from before the pause ends", [](Script& s) { s.operator_ends(1); }},
  };
  return all;
}

}  // namespace leadline::testing
