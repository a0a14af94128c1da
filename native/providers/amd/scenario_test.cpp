// Every scenario file: the program on its left gives exactly the folded tree and the losses on its right; those of the
// NVIDIA fakes that say nothing of a vendor give the same tree here, in HIP's words.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "testing/amd/scenario.h"

namespace leadline::testing {
namespace {

std::string in_hip_words(const std::string& text) {
  std::set<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (const std::string said = rocm::in_hip_words(line); !said.empty()) lines.insert(said);
  }
  std::string all;
  for (const std::string& line : lines) all += line + "\n";
  return all;
}

}  // namespace

TEST_CASE("AMD's scenarios fold to what they say") {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(LEADLINE_AMD_SCENARIOS)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  REQUIRE(files.size() > 0);
  for (const std::filesystem::path& file : files) {
    CAPTURE(file.filename().string());
    const ScenarioResult result = rocm::run_scenario(file.string(), LEADLINE_AMD_FAKES);
    CHECK(result.error == "");
    CHECK(result.got == result.wanted);
    CHECK(result.got_losses == result.wanted_losses);
  }
}

// A line that only CUPTI has a meaning for makes a scenario NVIDIA's; all others are of no vendor, but three: which
// nodes ran of a graph that was captured before measuring is told by CUPTI's numbers only, chips differ (below), and
// that work of no bytes has no record is known of CUPTI.
TEST_CASE("scenarios of no vendor give the same tree as on NVIDIA's fakes") {
  const std::set<std::string> others = {"late_start", "latency", "nothing_copied"};
  std::set<std::string> same;
  for (const auto& entry : std::filesystem::directory_iterator(LEADLINE_NEUTRAL_SCENARIOS)) {
    const std::string name = entry.path().stem().string();
    CAPTURE(name);
    const ScenarioResult result = rocm::run_scenario(entry.path().string(), LEADLINE_AMD_FAKES);
    if (others.contains(name) || result.error.find("says nothing known") != std::string::npos) continue;
    CHECK(result.error == "");
    CHECK(in_hip_words(result.got) == in_hip_words(result.wanted));
    CHECK(result.got_losses == result.wanted_losses);
    same.insert(name);
  }
  CHECK(same == std::set<std::string>{"again", "collectives", "dropped", "events", "failed_launch", "graphs", "idle",
                                      "launches", "many_devices", "memory", "out_of_order", "paused", "shuffled",
                                      "threads"});
}

// Occupancy and registers differ with the chip; how long a launch waits and what is queued before it does not.
TEST_CASE("the queue before a launch and how long it waits are the same as on NVIDIA's fakes") {
  const auto of_the_queue = [](const std::string& text) {
    std::string kept;
    std::istringstream in(in_hip_words(text));
    for (std::string line; std::getline(in, line);) {
      if (line.find("| queue_depth ") != std::string::npos || line.find("| launch_latency ") != std::string::npos ||
          line.find("| grid_blocks ") != std::string::npos || line.find("| block_threads ") != std::string::npos)
        kept += line + "\n";
    }
    return kept;
  };
  const ScenarioResult result =
      rocm::run_scenario(std::string(LEADLINE_NEUTRAL_SCENARIOS) + "/latency.txt", LEADLINE_AMD_FAKES);
  CHECK(result.error == "");
  CHECK(of_the_queue(result.got) == of_the_queue(result.wanted));
  CHECK(of_the_queue(result.wanted).find("queue_depth count 1 sum 2") != std::string::npos);
}

}  // namespace leadline::testing
