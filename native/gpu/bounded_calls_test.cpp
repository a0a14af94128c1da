#include "gpu/bounded_calls.h"

#include <doctest/doctest.h>

#include <atomic>
#include <future>
#include <thread>
#include <vector>

namespace leadline::gpu {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_CASE("a call that comes back is waited for, whoever asks") {
  BoundedCalls calls;
  int answer = 0;
  CHECK(calls.run([&] { answer = 7; }, seconds(10)));
  CHECK(answer == 7);
  std::atomic<int> sum{0};
  std::vector<std::thread> askers;
  for (int i = 0; i < 4; ++i) {
    askers.emplace_back([&] {
      for (int k = 0; k < 100; ++k) CHECK(calls.run([&] { ++sum; }, seconds(10)));
    });
  }
  for (std::thread& asker : askers) asker.join();
  CHECK(sum == 400);
  CHECK_FALSE(calls.is_stuck());
}

TEST_CASE("a call that does not come back is left alone, and no other is made until it is back") {
  BoundedCalls calls;
  std::promise<void> answer;
  const auto answered = answer.get_future().share();
  CHECK_FALSE(calls.run([answered] { answered.wait(); }, milliseconds(20)));
  CHECK(calls.is_stuck());
  std::atomic<bool> made{false};
  CHECK_FALSE(calls.run([&] { made = true; }, milliseconds(1)));
  CHECK_FALSE(made);
  answer.set_value();
  CHECK(calls.run([&] { made = true; }, seconds(10)));
  CHECK(made);
}

TEST_CASE("who gives up on a call does not wait for it at the end either") {
  auto answer = std::make_shared<std::promise<void>>();
  {
    BoundedCalls calls;
    CHECK_FALSE(calls.run([answer] { answer->get_future().wait(); }, milliseconds(1)));
  }
  answer->set_value();
}

TEST_CASE("a call that throws has been made") {
  BoundedCalls calls;
  CHECK(calls.run([] { throw 1; }, seconds(10)));
  CHECK(calls.run([] {}, seconds(10)));
}

}  // namespace leadline::gpu
