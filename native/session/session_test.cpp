#include "session/session.h"

#include <doctest/doctest.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <thread>

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

}  // namespace

TEST_CASE("a session writes a segment, and another one may follow") {
  Session& session = Session::instance();
  SessionOptions options;
  options.segment_path = segment_path();
  options.flush_interval_s = 0.01;
  for (int round = 0; round < 3; ++round) {
    REQUIRE(session.start(options));
    CHECK_FALSE(session.start(options));
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

TEST_CASE("a backward operator finds its forward on another thread, or is counted") {
  Session& session = Session::instance();
  SessionOptions options;
  options.segment_path = segment_path();
  options.flush_interval_s = 0;
  REQUIRE(session.start(options));
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
  REQUIRE(session.start(options));
  run_operator("aten::seen");
  session.pause();
  run_operator("aten::unseen");
  session.resume();
  run_operator("aten::seen");
  CHECK(session.cost().events == 4);
  CHECK(session.stop());
  std::filesystem::remove(options.segment_path);
}

TEST_CASE("a place that cannot be written to is said, not fatal") {
  Session& session = Session::instance();
  SessionOptions options;
  options.segment_path = "/nonexistent-folder/x.segment";
  options.flush_interval_s = 0;
  REQUIRE(session.start(options));
  run_operator("aten::mm");
  CHECK_FALSE(session.stop());
  CHECK(session.write_status().find("/nonexistent-folder/x.segment") != std::string::npos);
}
