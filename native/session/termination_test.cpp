#include "session/termination.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "session/session.h"

using namespace leadline;

namespace {

constexpr int kFine = 7;
constexpr int kWrong = 8;

bool has_default_action(int signal) {
  struct sigaction now {};
  sigaction(signal, nullptr, &now);
  return now.sa_handler == SIG_DFL;
}

// The wait status of a child that runs `body` and leaves with what it returns. Signals have their default actions
// there: the test program has handlers of its own.
template <typename Body>
int status_of_child(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    for (const int number : {SIGTERM, SIGHUP, SIGXCPU}) signal(number, SIG_DFL);
    _exit(body());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

bool fine(int status) { return WIFEXITED(status) && WEXITSTATUS(status) == kFine; }
bool died_of(int status, int signal) { return WIFSIGNALED(status) && WTERMSIG(status) == signal; }

}  // namespace

TEST_CASE("a signal is remembered and wakes the listener") {
  CHECK(fine(status_of_child([] {
    Wake* const wake = termination::listen();
    if (has_default_action(SIGTERM) || termination::pending() != 0) return kWrong;
    raise(SIGTERM);
    const auto before = std::chrono::steady_clock::now();
    wake->wait(20'000'000'000);
    if (std::chrono::steady_clock::now() - before > std::chrono::seconds(10)) return kWrong;
    if (termination::pending() != SIGTERM) return kWrong;
    termination::forget();
    if (!has_default_action(SIGTERM)) return kWrong;
    termination::listen();
    return termination::pending() == 0 ? kFine : kWrong;
  })));
}

TEST_CASE("what the program does with a signal stays, whether it came before or after") {
  CHECK(fine(status_of_child([] {
    signal(SIGTERM, SIG_IGN);
    termination::listen();
    raise(SIGTERM);
    if (termination::pending() != 0) return kWrong;
    signal(SIGHUP, SIG_IGN);
    termination::forget();
    return has_default_action(SIGTERM) || has_default_action(SIGHUP) ? kWrong : kFine;
  })));
}

TEST_CASE("a forked child in which nobody listens dies of the signal") {
  CHECK(fine(status_of_child([] {
    termination::listen();
    const pid_t child = fork();
    if (child == 0) {
      raise(SIGTERM);
      _exit(kWrong);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return died_of(status, SIGTERM) ? kFine : kWrong;
  })));
}

TEST_CASE("a measured process dies of the signal after its last segment") {
  const std::string name = "leadline_termination_" + std::to_string(getpid()) + ".segment";
  const std::filesystem::path path = std::filesystem::temp_directory_path() / name;
  const int status = status_of_child([&path] {
    SessionOptions options;
    options.segment_path = path.string();
    options.flush_interval_s = 1000;
    std::string why;
    if (!Session::instance().start(options, &why)) return kWrong;
    kill(getpid(), SIGTERM);
    for (;;) pause();
  });
  CHECK(died_of(status, SIGTERM));
  REQUIRE(std::filesystem::exists(path));
  CHECK(std::filesystem::file_size(path) > 0);
  std::filesystem::remove(path);
}
