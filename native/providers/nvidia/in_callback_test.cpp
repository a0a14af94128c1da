#include "providers/nvidia/in_callback.h"

#include <sys/wait.h>
#include <unistd.h>

#include <doctest/doctest.h>

#include <latch>
#include <memory>
#include <thread>
#include <vector>

namespace leadline::nvidia {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kPlenty{60'000};
constexpr milliseconds kNone{0};

Measuring* as_measuring(void* object) { return static_cast<Measuring*>(object); }

// Stays inside a callback until told to leave.
class Staying {
 public:
  Staying()
      : thread_([this] {
          const InCallback inside;
          entered_.count_down();
          leave_.wait();
        }) {
    entered_.wait();
  }
  void leave() {
    leave_.count_down();
    thread_.join();
  }

 private:
  std::latch entered_{1};
  std::latch leave_{1};
  std::thread thread_;
};

}  // namespace

TEST_CASE("who is inside a callback is waited for, and nobody else") {
  int object = 0;
  InCallback::use(as_measuring(&object));
  CHECK(InCallback::wait(kNone));
  Staying staying;
  InCallback::forget(as_measuring(&object));
  CHECK_FALSE(InCallback::wait(kNone));
  staying.leave();
  CHECK(InCallback::wait(kPlenty));
  const InCallback after;
  CHECK_FALSE(static_cast<bool>(after));
}

TEST_CASE("more threads than places are waited for all the same") {
  constexpr int kThreads = 300;
  std::vector<std::unique_ptr<Staying>> staying;
  for (int i = 0; i < kThreads; ++i) staying.push_back(std::make_unique<Staying>());
  // The last that came found no place of its own; it is the only one left.
  for (int i = 0; i + 1 < kThreads; ++i) staying[static_cast<std::size_t>(i)]->leave();
  CHECK_FALSE(InCallback::wait(kNone));
  staying.back()->leave();
  CHECK(InCallback::wait(kPlenty));
}

TEST_CASE("a callback that comes while its thread ends is waited for") {
  static std::latch* entered = nullptr;
  static std::latch* leave = nullptr;
  std::latch first{1};
  std::latch second{1};
  entered = &first;
  leave = &second;
  std::thread ending([] {
    struct Late {
      ~Late() {
        const InCallback inside;
        entered->count_down();
        leave->wait();
      }
    };
    thread_local Late late;  // destroyed after whatever the first callback makes
    static_cast<void>(late);
    const InCallback inside;
  });
  first.wait();
  CHECK_FALSE(InCallback::wait(kNone));
  second.count_down();
  ending.join();
  CHECK(InCallback::wait(kPlenty));
}

TEST_CASE("what callbacks use is gone only when none of them is inside") {
  struct Used {
    std::atomic<bool> gone{false};
  };
  std::vector<std::unique_ptr<Used>> all;
  for (int i = 0; i < 300; ++i) all.push_back(std::make_unique<Used>());
  std::atomic<bool> over{false};
  std::atomic<int> met_gone{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!over.load(std::memory_order_relaxed)) {
        const InCallback inside;
        if (!inside) continue;
        const auto* used = reinterpret_cast<const Used*>(&*inside);
        for (int look = 0; look < 20; ++look) met_gone += used->gone.load(std::memory_order_relaxed) ? 1 : 0;
      }
    });
  }
  for (const auto& used : all) {
    InCallback::use(as_measuring(used.get()));
    std::this_thread::yield();
    InCallback::forget(as_measuring(used.get()));
    REQUIRE(InCallback::wait(kPlenty));
    used->gone.store(true, std::memory_order_relaxed);
  }
  over = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(met_gone == 0);
}

TEST_CASE("a forked child waits for no thread of its parent") {
  Staying staying;
  const pid_t child = fork();
  if (child == 0) {
    InCallback::after_fork();
    _exit(InCallback::wait(kNone) ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  staying.leave();
}

}  // namespace leadline::nvidia
