#include "base/got_patch.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <thread>
#include <vector>

using namespace leadline;

extern "C" int got_fixture_lazy();  // both return getppid(), called through their library's table
extern "C" int got_fixture_now();

namespace {

constexpr pid_t kReplaced = -4711;
pid_t replacement() { return kReplaced; }

bool is_fixture(std::string_view path) { return path.find("got_fixture_") != std::string_view::npos; }

GotPatch install(bool (*wanted)(std::string_view) = is_fixture) {
  return GotPatch::install("getppid", reinterpret_cast<void*>(&replacement), wanted);
}

}  // namespace

TEST_CASE("Calls of chosen libraries go to the replacement and back, bound lazily or at once") {
  const pid_t parent = getppid();
  for (int round = 0; round < 2; ++round) {  // the second time the lazy entry has been bound
    {
      const GotPatch patch = install();
      CHECK(patch.replaced() == 2);
      CHECK(patch.failed() == 0);
      CHECK(got_fixture_lazy() == kReplaced);
      CHECK(got_fixture_now() == kReplaced);
      CHECK(getppid() == parent);  // the program itself was not chosen
      REQUIRE(patch.original() != nullptr);
      CHECK(reinterpret_cast<pid_t (*)()>(patch.original())() == parent);
      CHECK(got_fixture_lazy() == kReplaced);  // calling the original has not bound the entry again
    }
    CHECK(got_fixture_lazy() == parent);
    CHECK(got_fixture_now() == parent);
  }
}

TEST_CASE("A patch can be moved and is restored once") {
  GotPatch outer;
  {
    GotPatch inner = install();
    outer = std::move(inner);
  }
  CHECK(got_fixture_now() == kReplaced);
  outer.restore();
  CHECK(got_fixture_now() == getppid());
  CHECK(outer.replaced() == 0);
}

TEST_CASE("An entry that somebody else replaced later is left to him") {
  GotPatch first = install();
  GotPatch second = GotPatch::install("getppid", reinterpret_cast<void*>(&getpid), is_fixture);
  CHECK(got_fixture_now() == getpid());
  first.restore();
  CHECK(got_fixture_now() == getpid());
  second.restore();
  CHECK(got_fixture_now() == kReplaced);  // what it found
  // Nobody remembers the function itself any more; put it back for the tests that follow.
  static const GotPatch repair = GotPatch::install("getppid", reinterpret_cast<void*>(&getppid), is_fixture);
  CHECK(got_fixture_now() == getppid());
}

TEST_CASE("A name nobody calls replaces nothing") {
  const GotPatch patch = GotPatch::install("no_such_function", reinterpret_cast<void*>(&replacement),
                                           [](std::string_view) { return true; });
  CHECK(patch.replaced() == 0);
  CHECK(patch.original() == nullptr);
}

TEST_CASE("Patching while other threads call is safe: each call goes to one of the two") {
  const pid_t parent = getppid();
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      while (!stop) {
        const int result = got_fixture_now();
        if (result != parent && result != kReplaced) wrong.fetch_add(1);
      }
    });
  }
  for (int i = 0; i < 200; ++i) install();
  stop = true;
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(got_fixture_now() == parent);
}
