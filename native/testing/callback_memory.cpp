#include "testing/callback_memory.h"

#include <atomic>
#include <map>
#include <sstream>

#include "testing/failing_allocator.h"

namespace leadline::testing {
namespace {

// Callbacks come on several threads, one after the other.
std::atomic<std::uint64_t> made{0};
std::atomic<std::uint64_t> until_failing{0};  // 0: none fails
thread_local constinit std::uint32_t inside = 0;

struct Sum {
  std::uint64_t count = 0;
  std::int64_t sum = 0;
};

std::map<std::string, Sum> by_metric(const std::string& folded) {
  std::map<std::string, Sum> sums;
  std::istringstream in(folded);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line.substr(line.rfind(" | ") + 3));
    std::string metric;
    std::string word;
    Sum one;
    words >> metric >> word >> one.count >> word >> one.sum;
    sums[metric].count += one.count;
    sums[metric].sum += one.sum;
  }
  return sums;
}

std::string too_much(const std::string& got, const std::string& wanted) {
  std::map<std::string, Sum> truth = by_metric(wanted);
  for (const auto& [metric, sum] : by_metric(got)) {
    if (sum.count > truth[metric].count || sum.sum > truth[metric].sum) return metric + " is more than in truth";
  }
  return {};
}

}  // namespace

InCallbackOfVendor::InCallbackOfVendor() noexcept {
  if (inside++ > 0) return;
  before_ = t_allocations.made;
  const std::uint64_t left = until_failing;
  t_allocations.fail_at = left == 0 ? 0 : before_ + left;
}

InCallbackOfVendor::~InCallbackOfVendor() {
  if (--inside > 0) return;
  const std::uint64_t here = t_allocations.made - before_;
  t_allocations.fail_at = 0;
  made += here;
  const std::uint64_t left = until_failing;
  until_failing = left > here ? left - here : 0;
}

std::string without_memory(const std::function<ScenarioResult()>& run, std::uint64_t* allocations) {
  made = until_failing = 0;
  const ScenarioResult truth = run();
  *allocations = made;
  if (!truth.error.empty() || truth.got != truth.wanted) return "with memory: " + truth.error + "\n" + truth.got;
  for (std::uint64_t failing = 1; failing <= *allocations; ++failing) {
    until_failing = failing;
    const ScenarioResult result = run();
    until_failing = 0;
    std::string wrong = result.error + too_much(result.got, truth.got);
    if (wrong.empty() && result.got != truth.got && result.got_losses == truth.got_losses)
      wrong = "something is missing and not counted";
    if (!wrong.empty()) return "allocation " + std::to_string(failing) + ": " + wrong + "\n" + result.got;
  }
  const ScenarioResult after = run();
  return after.got == truth.got && after.got_losses == truth.got_losses ? "" : "afterwards:\n" + after.got;
}

}  // namespace leadline::testing
