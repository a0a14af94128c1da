// Calls of functions of the C library, described as if it were an accelerator's: through real tables and real frames.
#include <doctest/doctest.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "providers/accelerator/description.h"
#include "providers/accelerator/finished.h"
#include "providers/accelerator/in_flight.h"
#include "providers/accelerator/provider.h"
#include "testing/test_monitor.h"

namespace leadline::accelerator {
namespace {

#if defined(__x86_64__)

using testing::TestMonitor;

std::int64_t real_clock() { return now_ns(); }

class Measured {
 public:
  explicit Measured(const std::string& description) {
    TestMonitor::reset(real_clock);
    ProviderOptions options;
    options.own["description"] = description;
    status = session_provider().start(options);
  }
  ~Measured() { session_provider().stop(); }
  ProviderStatus stop() {
    session_provider().stop();
    return session_provider().status();
  }
  ProviderStatus status;
};

std::vector<std::string> began() {
  std::vector<std::string> names;
  for (const leadline_gpu_api_event& event : TestMonitor::api_events(LEADLINE_BEGIN)) names.emplace_back(event.name);
  return names;
}

const std::string kMath =
    "accelerator\tmath\town\t1.0\n"
    "library\tlibm.so\n"
    "function\thypot\tlaunch\t1\talways\t-\t1\n"
    "argument\tf64\t-\nargument\tf64\t-\nreturns\tf64\t-\n"
    "function\tnothing_like_it\tother\t0\talways\t-\t1\nreturns\tvoid\t-\n";

const std::string kText =
    "accelerator\ttext\town\t1.0\n"
    "library\tlibc.so.6\n"
    "function\tsnprintf\tother\t0\talways\t-\t1\n"
    "argument\tpointer\t-\nargument\tu64\tbytes\nargument\ttext\tname\nargument\t...\t-\nreturns\ti32\t-\n"
    "function\tqsort\tlaunch\t1\talways\t-\t1\n"
    "argument\tpointer\t-\nargument\tu64\tbytes\nargument\tu64\tbytes\nargument\tpointer\t-\nreturns\tvoid\t-\n"
    "function\tstrtol\tlaunch\t1\tnonzero\t-\t1\n"
    "argument\ttext\tname\nargument\tpointer\t-\nargument\ti32\t-\nreturns\ti64\t-\n";

int ascending(const void* a, const void* b) { return *static_cast<const int*>(a) - *static_cast<const int*>(b); }
int fails(const void*, const void*) { throw std::runtime_error("in the middle"); }

#endif

}  // namespace

#if defined(__x86_64__)

TEST_CASE("a call is seen with its result as it was, and no longer after the end") {
  volatile double x = 3;
  volatile double y = 4;
  {
    Measured measured(kMath);
    CHECK(std::get<bool>(measured.status["ok"]));
    errno = 77;
    CHECK(hypot(x, y) == 5);
    CHECK(errno == 77);
    const ProviderStatus ended = measured.stop();
    CHECK(std::get<std::int64_t>(ended.at("calls")) == 1);
    CHECK(std::get<std::int64_t>(ended.at("records")) == 1);
    CHECK(std::get<std::string>(ended.at("missing")).find("nothing_like_it") != std::string::npos);
  }
  CHECK(began() == std::vector<std::string>{"hypot"});
  CHECK(TestMonitor::folded({"gpu_time"}).find("hypot | device 0 stream 0 | gpu_time count 1") != std::string::npos);
  CHECK(hypot(x, y) == 5);
  CHECK(began().size() == 1);
}

TEST_CASE("arguments on the stack and in vector registers arrive, exceptions pass") {
  Measured measured(kText);
  char out[200];
  const int length = snprintf(out, sizeof out, "%d %d %d %d %d %g %g %g %g %g %g %g %g %g %g %s", 1, 2, 3, 4, 5, .1, .2,
                              .3, .4, .5, .6, .7, .8, .9, 1.5, "end");
  CHECK(std::string(out, static_cast<std::size_t>(length)) == "1 2 3 4 5 0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8 0.9 1.5 end");
  std::vector<int> numbers{3, 1, 2};
  qsort(numbers.data(), numbers.size(), sizeof(int), ascending);
  CHECK(numbers == std::vector<int>{1, 2, 3});
  for (int i = 0; i < 20; ++i) CHECK_THROWS_AS(qsort(numbers.data(), 3, sizeof(int), fails), std::runtime_error);
  volatile int base = 10;
  CHECK(strtol("12345", nullptr, base) == 12345);
  CHECK(strtol("nothing", nullptr, base) == 0);  // a failure, by its description
  const auto calls = TestMonitor::api_events(LEADLINE_BEGIN);
  REQUIRE(calls.size() == 24);
  CHECK(calls[0].bytes == sizeof out);
  CHECK(calls[1].bytes == 3 * sizeof(int));
  const ProviderStatus ended = measured.stop();
  const std::string folded = TestMonitor::folded({"gpu_time"});
  CHECK(folded.find("12345 | device 0 stream 0 | gpu_time count 1") != std::string::npos);
  CHECK(folded.find("nothing | device") == std::string::npos);
  CHECK(folded.find("qsort | device 0 stream 0 | gpu_time count 1 ") != std::string::npos);
}

TEST_CASE("an address that leads nowhere is a missing name") {
  Measured measured(
      "accelerator\tm\town\t1.0\nlibrary\tlibc.so.6\nfunction\tlabs\tlaunch\t1\talways\t-\t1\n"
      "argument\ttext\tname\nreturns\ti64\t-\n");
  volatile long value = -17;
  long (*volatile call)(long) = labs;
  static_cast<void>(call);
  CHECK(labs(value) == 17);
  static_cast<void>(measured.stop());
}

#endif

TEST_CASE("a description that is not one is refused in a sentence") {
  for (const char* wrong : {"nonsense", "library\tx", "accelerator\ta\tsundial\t1", "argument\ti32\t-",
                            "accelerator\ta\town\t1\nfunction\tf\tdance\t0\talways\t-\t1",
                            "accelerator\ta\town\t1\nfunction\tf\tlaunch\t0\talways\t-\t1\nargument\ti33\t-"}) {
    Description description;
    std::string error;
    CHECK_FALSE(parse(wrong, &description, &error));
    CHECK(error.ends_with("."));
  }
}

TEST_CASE("names of libraries take versions and folders, and nothing else") {
  CHECK(matches("libnpu.so", "/opt/npu/libnpu.so"));
  CHECK(matches("libnpu.so", "/opt/npu/libnpu.so.1.2"));
  CHECK(matches("libnpu*.so", "libnpu-3fa1.so"));
  CHECK(matches("/opt/*/libnpu.so", "/opt/npu/libnpu.so"));
  CHECK_FALSE(matches("libnpu.so", "/opt/npu/libnpu.sox"));
  CHECK_FALSE(matches("libnpu.so", "/opt/npu/mylibnpu.so"));
  CHECK_FALSE(matches("/usr/libnpu.so", "/opt/npu/libnpu.so"));
}

TEST_CASE("work meets its end whichever of the two is told first, and an old end meets nothing") {
  InFlight in_flight;
  Request request;
  request.called_ns = 100;
  request.bytes = 5;
  CHECK_FALSE(in_flight.put(1, 42, request).ran);
  CHECK_FALSE(in_flight.take(2, 42, {0, 200, 200}, false));  // another accelerator's
  REQUIRE(in_flight.take(1, 42, {0, 200, 200}, false));
  CHECK_FALSE(in_flight.take(1, 42, {0, 200, 200}, true));
  CHECK(in_flight.unclaimed() == 1);
  CHECK(in_flight.put(1, 42, request).ran->end_ns == 200);
  CHECK(in_flight.unclaimed() == 0);
  CHECK_FALSE(in_flight.take(1, 43, {0, 50, 50}, true));
  CHECK_FALSE(in_flight.put(1, 43, request).ran);  // that end was told before this launch
  CHECK(in_flight.put(1, 43, request).forgot);
}

TEST_CASE("ended work of many threads arrives once each, and a full ring says so") {
  FinishedRing ring;
  constexpr std::uint32_t kThreads = 4;
  constexpr std::uint32_t kEach = 1500;
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&ring, t] {
      Finished finished;
      for (std::uint32_t i = 0; i < kEach; ++i) {
        finished.request.correlation = t * kEach + i;
        bool many = false;
        CHECK(ring.push(finished, &many));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<int> seen(kThreads * kEach);
  CHECK(ring.drain([&](const Finished& finished) { ++seen[finished.request.correlation]; }) == kThreads * kEach);
  CHECK(seen == std::vector<int>(kThreads * kEach, 1));
  std::size_t pushed = 0;
  bool many = false;
  while (ring.push({}, &many)) ++pushed;
  CHECK(pushed == FinishedRing::kSlots);
}

}  // namespace leadline::accelerator
