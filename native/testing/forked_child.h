// What a forked child answers.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <thread>

namespace leadline::testing {

#ifdef __SANITIZE_THREAD__
constexpr bool kThreadSanitizer = true;
#else
constexpr bool kThreadSanitizer = false;
#endif

// What `body` returns in a forked child; a signal's number below zero where one ended it, as one does that hangs.
template <typename Body>
int answer_of_child(const Body& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    _exit(body());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

// The same where other threads are at work. Under the thread sanitizer the child answers 0 at once: one of these
// threads may have held a lock of the sanitizer's own (GCC 12's depot of stacks), for which the child would wait for
// ever.
template <typename Body>
int answer_of_child_beside_threads(const Body& body) {
  return answer_of_child([&body] { return kThreadSanitizer ? 0 : body(); });
}

// Of some children that are forked while another thread does `work` again and again: how many did not answer 0. `work`:
// called with a number that grows by one.
template <typename Work, typename Body>
int failures_of_children_beside(const Work& work, const Body& body, int rounds = 50) {
  std::atomic<bool> over{false};
  std::thread other([&] {
    for (std::uint64_t i = 0; !over.load(); ++i) work(i);
  });
  int failed = 0;
  for (int round = 0; round < rounds; ++round) failed += answer_of_child_beside_threads(body) == 0 ? 0 : 1;
  over = true;
  other.join();
  return failed;
}

}  // namespace leadline::testing
