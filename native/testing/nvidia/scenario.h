// A scenario file: what a program and its GPU do on the left of "expect", what must come out on the right.
//
//   # comment
//   cupti 130001 | driver 12000 | holder NAME | shares | refuse CODE | inner-ids | order reversed | hold-back 5 | drop
//   3 devices 2 thread NAME            following lines run on a thread of this name (all threads of a file run one
//   after the other,
//                          unless the file says "together")
//   region NAME / end      phase NAME / end
//   launch KERNEL stream=7 duration=1000 grid=4 block=128 registers=32 [how=driver|ex|cooperative|per-thread|fails]
//   [times=3] copy HtoD|DtoH bytes=1000 stream=7      set bytes=100 stream=7 sync device|stream=7|event=1 record
//   event=1 stream=7       wait event=1 stream=8 alloc NAME bytes=512 / free NAME        capture stream=7 ... captured
//   GRAPH   instantiate GRAPH EXEC   replay EXEC stream=7 compute 5000           the CPU works for so many nanoseconds
//   start / flush / pause TOOL / resume / stop   of the provider
//   expect METRIC...       the lines of the folded result with these metrics, until the end of the file or "losses"
//   losses                 "kind count" lines: every loss, none else
#pragma once

#include <string>

namespace leadline::testing {

struct ScenarioResult {
  std::string wanted;
  std::string got;
  std::string wanted_losses;
  std::string got_losses;
  std::string error;  // the file itself is wrong
};

// `fakes`: folder with the fake libraries. Resets the fake GPU and the test monitor first.
ScenarioResult run_scenario(const std::string& file, const std::string& fakes);

}  // namespace leadline::testing
