// The controller against programs whose cost under measuring changes: what is spent stays at the budget.
#include "gpu/duty.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <random>
#include <utility>

using leadline::gpu::Duty;

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kWindow = 20'000'000;

struct Spent {
  double share = 0;  // of the time
  double open = 0;   // share of the time that windows were open
  std::int64_t windows = 0;
};

// A run of so many seconds; `cost` says what a window that begins then costs, a part of which is known late.
Spent simulate(double budget, double seconds, const std::function<double(double second)>& cost, double late = 0) {
  Duty duty(budget, 1'000'000);
  std::int64_t now = 0;
  duty.begin(now);
  Spent spent;
  const auto end = static_cast<std::int64_t>(seconds * kSecond);
  while (now < end) {
    if (const std::int64_t rest = duty.rest_ns(now); rest > 0) {
      now += std::min(rest, end - now);
      continue;
    }
    const double of_window = cost(static_cast<double>(now) / kSecond);
    now += kWindow;
    duty.window(now, static_cast<std::int64_t>(of_window * (1 - late)));
    duty.spend(now, static_cast<std::int64_t>(of_window * late));
    spent.share += of_window;
    spent.open += kWindow;
    ++spent.windows;
  }
  spent.share /= static_cast<double>(now);
  spent.open /= static_cast<double>(now);
  return spent;
}

void stays_at(double budget, const Spent& spent) {
  CHECK(spent.share < budget * 1.2);
  CHECK(spent.share > budget * 0.8);
}

}  // namespace

TEST_CASE("a constant cost is spent at the budget, whatever it is") {
  for (const double budget : {0.005, 0.02, 0.1}) {
    for (const double cost : {2.5e6, 4e6, 12e6}) stays_at(budget, simulate(budget, 120, [=](double) { return cost; }));
  }
}

TEST_CASE("loads that change stay at the budget") {
  // Steps between a cheap phase (evaluation) and a dear one; a slow wave; a climb without end; noise of a factor ten.
  stays_at(0.02, simulate(0.02, 300, [](double t) { return std::fmod(t, 60) < 30 ? 1e6 : 15e6; }));
  stays_at(0.02, simulate(
                     0.02, 300, [](double t) { return 6e6 + 5e6 * std::sin(t / 7); }, 0.9));
  stays_at(0.02, simulate(
                     0.02, 300, [](double t) { return 1e6 * (1 + t / 10); }, 0.5));
  std::mt19937 random(5);
  std::uniform_real_distribution<double> factor(-0.5, 0.5);
  stays_at(0.02, simulate(0.02, 600, [&](double) { return 3e6 * std::pow(10, factor(random)); }));
}

TEST_CASE("a window that is dear beyond measure is paid back, and what costs nothing is never kept from measuring") {
  bool first = true;
  const Spent once = simulate(
      0.02, 600, [&](double) { return std::exchange(first, false) ? 2e9 : 2e6; }, 1.0);
  CHECK(once.share < 0.02 * 1.2);
  CHECK(once.windows > 100);
  CHECK(simulate(0.02, 10, [](double) { return 0; }).open > 0.9);
  CHECK(simulate(0, 10, [](double) { return 1e6; }).windows == 0);
}

TEST_CASE("rest is not saved without end") {
  Duty duty(0.02, 1'000'000);
  duty.begin(0);
  std::int64_t now = 3600 * kSecond;  // nothing ran for an hour, so no window was opened
  std::int64_t spent = 0;
  const std::int64_t end = now + kSecond;
  while (now < end && duty.rest_ns(now) == 0) {
    now += kWindow;
    duty.window(now, 10'000'000);
    spent += 10'000'000;
  }
  CHECK(spent < 300'000'000);
}
