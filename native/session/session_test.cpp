#include "session/session.h"

#include <doctest/doctest.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <thread>
#include <vector>

#include "session/providers.h"

using namespace leadline;

namespace {

std::string segment_path() {
  return (std::filesystem::temp_directory_path() / ("leadline_session_test_" + std::to_string(getpid()) + ".segment"))
      .string();
}

void run_operator(const char* name, int64_t sequence = -1, bool backward = false, uint64_t forward_thread = 0) {
  leadline_operator_event op{};
  op.name = name;
  op.sequence = sequence;
  op.thread = 1;
  op.backward = backward;
  op.forward_thread = forward_thread;
  int token = 0;
  Monitor::instance().begin_operator(op, &token);
  Monitor::instance().end_operator(&token);
}

std::string g_why;

}  // namespace

TEST_CASE("a session writes a segment, and another one may follow") {
  Session& session = Session::instance();
  SessionOptions options;
  options.segment_path = segment_path();
  options.flush_interval_s = 0.01;
  for (int round = 0; round < 3; ++round) {
    REQUIRE(session.start(options, &g_why));
    CHECK_FALSE(session.start(options, &g_why));
    CHECK(g_why.find("already measures") != std::string::npos);
    std::thread worker([] {
      for (int i = 0; i < 20'000; ++i) run_operator("aten::worker");
    });
    for (int i = 0; i < 20'000; ++i) run_operator("aten::main");
    worker.join();
    const SessionCost cost = session.cost();
    CHECK(cost.events == 80'000);
    CHECK(cost.threads == 2);
    const WriteResult written = session.stop();
    CHECK(written);
    CHECK(std::filesystem::file_size(options.segment_path) == written.bytes);
    CHECK_FALSE(session.running());
  }
  std::filesystem::remove(options.segment_path);
}

TEST_CASE("events stand beside the segment while the session runs, and in it at the end") {
  Session& session = Session::instance();
  SessionOptions options;
  options.segment_path = segment_path();
  options.flush_interval_s = 0;
  REQUIRE(session.start(options, &g_why));
  CHECK_FALSE(session.trace_is_open());
  session.open_trace();
  CHECK(session.trace_is_open());
  for (int i = 0; i < 1000; ++i) run_operator("aten::mm");
  session.close_trace();
  CHECK_FALSE(session.trace_is_open());
  const uint64_t first = session.flush().bytes;
  CHECK(std::filesystem::exists(events_path(options.segment_path)));
  run_operator("aten::add");
  CHECK(session.flush().bytes < first / 4);
  const WriteResult last = session.stop();
  CHECK(last.bytes > first);
  CHECK_FALSE(std::filesystem::exists(events_path(options.segment_path)));
  std::filesystem::remove(options.segment_path);
}

TEST_CASE("threads that fork at a time rest together") {
  Session& session = Session::instance();
  SessionOptions options;
  options.segment_path = segment_path();
  options.flush_interval_s = 0.001;
  REQUIRE(session.start(options, &g_why));
  const auto fork_often = [&session] {
    for (int i = 0; i < 50; ++i) {
      session.before_fork();
      session.after_fork_in_parent();
    }
  };
  std::thread other(fork_often);
  fork_often();
  other.join();
  CHECK(session.stop());
  std::filesystem::remove(options.segment_path);
}

TEST_CASE("a backward operator finds its forward on another thread, or is counted") {
  Session& session = Session::instance();
  SessionOptions options;
  options.segment_path = segment_path();
  options.flush_interval_s = 0;
  REQUIRE(session.start(options, &g_why));
  run_operator("aten::forward", 41);
  std::thread autograd([] {
    run_operator("ForwardBackward0", 41, true, 1);
    run_operator("LostBackward0", 7777, true, 1);
    run_operator("LostBackward0", 41, true, 3);
  });
  autograd.join();
  CHECK(losses().total(LossKind::kBackwardWithoutForward) == 2);
  CHECK(session.stop());
  std::filesystem::remove(options.segment_path);
}

TEST_CASE("what happens while paused is not measured") {
  Session& session = Session::instance();
  SessionOptions options;
  options.segment_path = segment_path();
  options.flush_interval_s = 0;
  REQUIRE(session.start(options, &g_why));
  run_operator("aten::seen");
  session.pause();
  run_operator("aten::unseen");
  session.resume();
  run_operator("aten::seen");
  CHECK(session.cost().events == 4);
  CHECK(session.stop());
  std::filesystem::remove(options.segment_path);
}

namespace {

// Emits an operator on command, as long as nobody told it to rest.
class FakeProvider final : public Provider {
 public:
  const char* name() const noexcept override { return "fake"; }
  ProviderStatus start(const ProviderOptions& options) override {
    started_ = true;
    memory = options.memory;
    answer = options.get<std::string>("word", "");
    return status();
  }
  void pause() noexcept override { paused = true; }
  void resume() noexcept override { paused = false; }
  void before_fork() noexcept override { forks += "b"; }
  void after_fork_parent() noexcept override { forks += "p"; }
  void after_fork_child() noexcept override { forks += "c"; }
  void stop() noexcept override { started_ = false; }
  ProviderStatus status() const override { return {{"ok", started_}, {"message", answer}}; }

  bool paused = false;
  bool memory = false;
  std::string answer;
  std::string forks;

 private:
  bool started_ = false;
};

void finish_device_work() {
  leadline_event event{};
  event.domain = LEADLINE_DOMAIN_GPU_ACTIVITY;
  event.phase = LEADLINE_INSTANT;
  event.of.gpu_activity.name = "kernel";
  Monitor::instance().emit(event);
}

}  // namespace

TEST_CASE("pause, resume, fork and stop of the session reach every provider") {
  static FakeProvider fake;
  providers().push_back(&fake);
  Session& session = Session::instance();
  SessionOptions options;
  options.segment_path = segment_path();
  options.flush_interval_s = 0;
  options.memory = false;
  REQUIRE(session.start(options, &g_why));
  const ProviderStatus started = session.start_provider("fake", {{"word", std::string("hello")}});
  CHECK(status_value(started, "ok", false));
  CHECK(status_value(started, "message", std::string()) == "hello");
  CHECK_FALSE(fake.memory);
  CHECK_FALSE(status_value(session.start_provider("no such", {}), "ok", true));
  session.pause();
  CHECK(fake.paused);
  session.resume();
  CHECK_FALSE(fake.paused);
  session.before_fork();
  session.after_fork_in_parent();
  CHECK(fake.forks == "bp");
  session.pause();
  CHECK(session.stop());
  CHECK_FALSE(status_value(session.provider_status("fake"), "ok", true));
  REQUIRE(session.start(options, &g_why));
  CHECK_FALSE(fake.paused);  // a new session measures
  CHECK(session.stop());
  providers().pop_back();
  std::filesystem::remove(options.segment_path);
}

TEST_CASE("device work reported during a pause is booked, what the program does then is not") {
  Session& session = Session::instance();
  SessionOptions options;
  options.segment_path = segment_path();
  options.flush_interval_s = 0;
  REQUIRE(session.start(options, &g_why));
  run_operator("aten::seen");
  CHECK(Monitor::instance().context() != 0);
  session.pause();
  CHECK(Monitor::instance().context() == 0);
  run_operator("aten::unseen");
  finish_device_work();
  CHECK(session.cost().events == 3);
  CHECK(losses().total(LossKind::kGpuRecordUnattributed) == 1);  // arrived; the fake knows no place
  session.resume();
  CHECK(Monitor::instance().context() != 0);
  CHECK(session.stop());
  std::filesystem::remove(options.segment_path);
}

TEST_CASE("a session that the monitor has no room for says so and does not run") {
  std::vector<leadline_subscription> taken;
  leadline_subscription id = 0;
  while (leadline_monitor_register(
             LEADLINE_DOMAIN_MEMORY, [](const leadline_event*, void*) {}, nullptr, &id) == LEADLINE_OK)
    taken.push_back(id);
  Session& session = Session::instance();
  SessionOptions options;
  options.segment_path = segment_path();
  options.flush_interval_s = 0;
  CHECK_FALSE(session.start(options, &g_why));
  CHECK(g_why.find("listeners") != std::string::npos);
  CHECK_FALSE(session.running());
  leadline_monitor_unregister(taken.back());
  CHECK(session.start(options, &g_why));
  CHECK(session.stop());
  for (const leadline_subscription one : taken) leadline_monitor_unregister(one);
  std::filesystem::remove(options.segment_path);
}

TEST_CASE("a place that cannot be written to is said, not fatal") {
  Session& session = Session::instance();
  SessionOptions options;
  options.segment_path = "/nonexistent-folder/x.segment";
  options.flush_interval_s = 0;
  REQUIRE(session.start(options, &g_why));
  run_operator("aten::mm");
  CHECK_FALSE(session.stop());
  CHECK(session.write_status().find("/nonexistent-folder/x.segment") != std::string::npos);
}
