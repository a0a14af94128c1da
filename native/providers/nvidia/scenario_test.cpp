// Every scenario file: the program on its left gives exactly the folded tree and the losses on its right.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "testing/nvidia/scenario.h"

namespace leadline::testing {

TEST_CASE("scenarios fold to what they say") {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(LEADLINE_NVIDIA_SCENARIOS))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  REQUIRE(files.size() > 0);
  for (const std::filesystem::path& file : files) {
    CAPTURE(file.filename().string());
    const ScenarioResult result = run_scenario(file.string(), LEADLINE_NVIDIA_FAKES);
    CHECK(result.error == "");
    CHECK(result.got == result.wanted);
    CHECK(result.got_losses == result.wanted_losses);
  }
}

}  // namespace leadline::testing
