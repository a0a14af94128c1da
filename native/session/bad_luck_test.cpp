// Memory runs out while a session starts, writes or stops: a sentence or a loss, and the next one measures as ever.
#include <doctest/doctest.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <string>

#include "session/session.h"
#include "testing/failing_allocator.h"

using namespace leadline;
using namespace leadline::testing;

namespace {

constexpr int kOperators = 50;

SessionOptions options(double flush_interval_s) {
  SessionOptions made;
  made.segment_path = (std::filesystem::temp_directory_path() /
                       ("leadline_session_bad_luck_test_" + std::to_string(getpid()) + ".segment"))
                          .string();
  made.flush_interval_s = flush_interval_s;
  return made;
}

void run_operators() {
  for (int i = 0; i < kOperators; ++i) {
    leadline_operator_event op{};
    op.name = "aten::mm";
    op.sequence = -1;
    int token = 0;
    Monitor::instance().begin_operator(op, &token);
    Monitor::instance().end_operator(&token);
  }
}

// The session that runs measures and is written whole.
void check_measures(Session& session, const SessionOptions& asked) {
  const uint64_t before = session.cost().events;
  run_operators();
  CHECK(session.cost().events == before + 2 * kOperators);
  const WriteResult written = session.stop();
  CHECK(written);
  CHECK(std::filesystem::file_size(asked.segment_path) == written.bytes);
  CHECK_FALSE(session.running());
}

// Calls `action` with its first, second, ... allocation failing and then `check`, until it makes no more; answers how
// many it made.
template <class Action, class Check>
uint64_t with_each_allocation_failing(Action action, Check check) {
  for (uint64_t at = 1;; ++at) {
    const uint64_t limit = t_allocations.made + at;
    t_allocations.fail_at = limit;
    action();
    const bool all_made = t_allocations.made < limit;
    t_allocations.fail_at = 0;
    check();
    if (all_made) return at - 1;
  }
}

void check_same_signals(const sigset_t& before) {
  sigset_t after;
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  for (int signal = 1; signal < NSIG; ++signal) CHECK(sigismember(&before, signal) == sigismember(&after, signal));
}

}  // namespace

TEST_CASE("A session that finds no memory at any moment of its start is none, and the next one measures") {
  Session& session = Session::instance();
  const SessionOptions asked = options(3600);
  sigset_t before;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  int refused = 0;
  bool started = false;
  std::string why;
  const auto start = [&] { started = session.start(asked, &why); };
  const uint64_t allocations = with_each_allocation_failing(start, [&] {
    CHECK(started == session.running());
    if (!started) {
      ++refused;
      CHECK_FALSE(why.empty());
      why.clear();
      start();
      REQUIRE(started);
    }
    check_measures(session, asked);
    check_same_signals(before);
  });
  CHECK(allocations > 5);
  CHECK(refused > 2);
  {
    const NoMemory none;
    start();
  }
  CHECK_FALSE(started);
  CHECK_FALSE(session.running());
  check_same_signals(before);
  std::filesystem::remove(asked.segment_path);
}

TEST_CASE("A segment that finds no memory is said and counted, and the next one holds everything") {
  Session& session = Session::instance();
  const SessionOptions asked = options(0);
  std::string why;
  REQUIRE(session.start(asked, &why));
  WriteResult result;
  int lost = 0;
  const auto flush = [&] { result = session.flush(); };
  const uint64_t allocations = with_each_allocation_failing(flush, [&] {
    if (!result) {
      ++lost;
      CHECK(losses().total(LossKind::kWriteFailed) == static_cast<uint64_t>(lost));
      CHECK_FALSE(session.write_status().empty());
      CHECK(session.flush());
    }
    run_operators();
  });
  CHECK(allocations > 20);
  CHECK(lost > 20);
  {
    const NoMemory none;
    flush();
  }
  CHECK_FALSE(result);
  CHECK_FALSE(session.write_status().empty());
  check_measures(session, asked);
  std::filesystem::remove(asked.segment_path);
}

TEST_CASE("A session that finds no memory at its end ends all the same, and the next one measures") {
  Session& session = Session::instance();
  const SessionOptions asked = options(3600);
  WriteResult result;
  int lost = 0;
  std::string why;
  const auto stop = [&] { result = session.stop(); };
  REQUIRE(session.start(asked, &why));
  with_each_allocation_failing(stop, [&] {
    CHECK_FALSE(session.running());
    if (!result) {
      ++lost;
      CHECK(losses().total(LossKind::kWriteFailed) == 1);
      CHECK_FALSE(session.write_status().empty());
    }
    REQUIRE(session.start(asked, &why));
    run_operators();
  });
  CHECK(lost > 20);
  check_measures(session, asked);
  std::filesystem::remove(asked.segment_path);
}

TEST_CASE("A program that finds no memory after a fork goes on, with its signals as they were") {
  Session& session = Session::instance();
  const SessionOptions asked = options(3600);
  sigset_t before;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  std::string why;
  REQUIRE(session.start(asked, &why));
  session.before_fork();
  with_each_allocation_failing([&] { session.after_fork_in_parent(); },
                               [&] {
                                 check_same_signals(before);
                                 session.before_fork();
                               });
  session.after_fork_in_parent();
  check_measures(session, asked);
  std::filesystem::remove(asked.segment_path);
}
