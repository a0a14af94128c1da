// Sessions that start, stop, pause and fork while other threads work and ask.
#include <doctest/doctest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "base/losses.h"
#include "session/session.h"
#include "testing/forked_child.h"

using namespace leadline;
using namespace leadline::testing;

namespace {

struct Place {
  std::string path = (std::filesystem::temp_directory_path() / ("leadline_life_" + std::to_string(getpid()))).string();
  Place() = default;
  ~Place() {
    for (const char* end : {"", ".events", ".window", ".child"}) std::filesystem::remove(path + end);
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  SessionOptions options(double flush_interval_s) const {
    SessionOptions made;
    made.segment_path = path;
    made.flush_interval_s = flush_interval_s;
    return made;
  }
};

void run_operator(const char* name) {
  leadline_operator_event op{};
  op.name = name;
  op.sequence = -1;
  Monitor::instance().begin_operator(op, &op);
  Monitor::instance().end_operator(&op);
}

// Everything that a program may ask of a session at any time, one after the other.
void ask_everything(Session& session, int round) {
  session.begin_step(round);
  session.open_trace();
  run_operator("asked");
  session.close_trace();
  session.take_back_trace();
  session.cost();
  session.write_status();
  session.provider_status("torch");
  session.set_process({.name = "program"});
  if (round % 8 == 0) session.flush();
  if (round % 8 == 4) {
    session.pause();
    run_operator("paused");
    session.resume();
  }
}

}  // namespace

TEST_CASE("sessions start and stop hundreds of times while threads work and ask") {
  const Place place;
  Session& session = Session::instance();
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      while (!over) run_operator("work");
    });
  }
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; !over; ++round) ask_everything(session, round);
    });
  }
  std::string why;
  for (int round = 0; round < 300; ++round) {
    REQUIRE(session.start(place.options(round % 2 == 0 ? 0.0005 : 0), &why));
    for (int i = 0; i < 20; ++i) run_operator("main");
    CHECK(session.stop());
    CHECK_FALSE(session.running());
  }
  over = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(losses().total(LossKind::kInternalError) == 0);
}

TEST_CASE("a program forks while another thread starts and stops sessions") {
  const Place place;
  Session& session = Session::instance();
  std::atomic<bool> over{false};
  std::thread other([&] {
    std::string why;
    while (!over) {
      if (!session.start(place.options(0.0005), &why)) continue;
      run_operator("work");
      session.stop();
    }
  });
  int failed = 0;
  for (int round = 0; round < 100; ++round) {
    session.before_fork();
    const int answer = answer_of_child_beside_threads([&session] {
      session.after_fork("");
      run_operator("child");
      return session.running() ? 1 : 0;
    });
    session.after_fork_in_parent();
    failed += answer == 0 ? 0 : 1;
  }
  over = true;
  other.join();
  CHECK(failed == 0);
}

TEST_CASE("a forked child goes on in a file of its own, and stops") {
  const Place place;
  Session& session = Session::instance();
  std::string why;
  REQUIRE(session.start(place.options(0), &why));
  run_operator("parent");
  session.before_fork();
  const int answer = answer_of_child([&] {
    session.after_fork(place.path + ".child");
    run_operator("child");
    const bool alone = session.cost().threads == 1 && session.cost().nodes == 2;
    const bool written = static_cast<bool>(session.stop());
    const bool again = session.start(place.options(0), &why) && static_cast<bool>(session.stop());
    return alone && written && again ? 0 : 1;
  });
  session.after_fork_in_parent();
  CHECK(answer == 0);
  CHECK(session.stop());
}
