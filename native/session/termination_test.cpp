#include "session/termination.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "session/session.h"

using namespace leadline;

namespace {

bool has_default_action(int signal) {
  struct sigaction now {};
  sigaction(signal, nullptr, &now);
  return now.sa_handler == SIG_DFL;
}

// Status of a child that runs `body` and, unless it dies before, leaves with 7.
template <typename Body>
int status_of_child(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    body();
    _exit(7);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

}  // namespace

TEST_CASE("a signal is remembered and wakes the listener") {
  sem_t* const wake = termination::listen();
  CHECK_FALSE(has_default_action(SIGTERM));
  CHECK(termination::pending() == 0);
  raise(SIGTERM);
  CHECK(termination::pending() == SIGTERM);
  CHECK(sem_trywait(wake) == 0);
  termination::forget();
  CHECK(has_default_action(SIGTERM));
  termination::listen();
  CHECK(termination::pending() == 0);
  termination::forget();
}

TEST_CASE("a handler of the program stays, and one that comes later too") {
  signal(SIGTERM, SIG_IGN);
  termination::listen();
  raise(SIGTERM);
  CHECK(termination::pending() == 0);
  signal(SIGHUP, SIG_IGN);
  termination::forget();
  struct sigaction now {};
  sigaction(SIGHUP, nullptr, &now);
  CHECK((now.sa_handler == SIG_IGN));  // doctest cannot print a pointer to a function
  signal(SIGTERM, SIG_DFL);
  signal(SIGHUP, SIG_DFL);
}

TEST_CASE("a forked child in which nobody listens dies of the signal") {
  termination::listen();
  const int status = status_of_child([] { raise(SIGTERM); });
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGTERM);
  termination::forget();
}

TEST_CASE("a measured process dies of the signal after its last segment") {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("leadline_termination_" + std::to_string(getpid()) + ".segment"))
          .string();
  const int status = status_of_child([&path] {
    SessionOptions options;
    options.segment_path = path;
    options.flush_interval_s = 1000;
    if (!Session::instance().start(options)) _exit(8);
    kill(getpid(), SIGTERM);
    for (;;) pause();
  });
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGTERM);
  CHECK(std::filesystem::file_size(path) > 0);
  std::filesystem::remove(path);
}
