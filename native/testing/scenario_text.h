// A scenario file: what a program and its GPU do on the left of "expect", what must come out on the right.
//
//   # comment
//   thread NAME            following lines run on a thread of this name, all of a file at once at "together"
//   region NAME / end      phase NAME / end
//   launch KERNEL stream=7 duration=1000 grid=4 block=128 registers=32 [how=...] [times=3]
//   copy HtoD|DtoH bytes=1000 stream=7      set bytes=100 stream=7
//   sync device|stream=7|event=1      record event=1 stream=7      wait event=1 stream=8
//   alloc NAME bytes=512 / free NAME
//   capture stream=7 ... captured GRAPH stream=7      instantiate GRAPH EXEC      replay EXEC stream=7
//   compute 5000           the CPU works for so many nanoseconds
//   start / flush / pause / resume / stop   of the provider
//   expect METRIC...       the lines of the folded result with these metrics, until the end of the file or "losses"
//   losses                 "kind count" lines: every loss, none else
//
// A vendor's scenarios may say more: see the folder of its fakes.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "testing/test_monitor.h"

namespace leadline::testing {

struct ScenarioLine {
  std::vector<std::string> words;
  std::map<std::string, std::string> options;
  std::int64_t number(const std::string& key, std::int64_t otherwise) const;
  std::string text(const std::string& key) const;
  const std::string& verb() const { return words[0]; }
};

struct ScenarioLaunch {
  std::string kernel;
  std::int64_t duration_ns = 1000;
  std::uint32_t grid = 1;
  std::uint32_t block = 32;
  std::int32_t registers = 32;
  std::string how;
};

// A program on a fake GPU: the calls of one vendor.
class ScenarioProgram {
 public:
  virtual ~ScenarioProgram() = default;
  // False when the line is none of a program's.
  bool run(const ScenarioLine& line);

 protected:
  using Stream = void*;  // the vendor's handle; nullptr: none was named
  virtual Stream stream(std::uint32_t number, std::int32_t device) = 0;
  virtual void launch(const ScenarioLaunch& launch, Stream stream) = 0;
  virtual void copy(bool to_device, std::size_t bytes, Stream stream) = 0;
  virtual void set(std::size_t bytes, Stream stream) = 0;
  virtual void synchronize_device() = 0;
  virtual void synchronize(Stream stream) = 0;
  virtual void synchronize_event(std::uint32_t event) = 0;
  virtual void record(std::uint32_t event, Stream stream) = 0;
  virtual void wait(std::uint32_t event, Stream stream) = 0;
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void free(void* address) = 0;
  virtual void begin_capture(Stream stream) = 0;
  virtual void* end_capture(Stream stream) = 0;
  virtual void* instantiate(void* graph) = 0;
  virtual void replay(void* executable, Stream stream) = 0;
  virtual void destroy(void* graph, bool executable) = 0;
  virtual void compute(std::int64_t ns) = 0;
  virtual void poll() = 0;
  virtual bool other(const ScenarioLine&) { return false; }
  void* graph(const std::string& name) { return graphs_[name]; }

 private:
  std::deque<std::string> names_;
  std::vector<std::unique_ptr<Region>> open_;
  std::map<std::string, void*> memory_;
  std::map<std::string, void*> graphs_;
};

struct ScenarioResult {
  std::string wanted;
  std::string got;
  std::string wanted_losses;
  std::string got_losses;
  std::string error;  // the file itself is wrong
};

// What a vendor brings. `provider` handles start, flush, pause, resume, stop and what else the vendor's scenarios say;
// false: none of its.
struct ScenarioWorld {
  std::function<std::unique_ptr<ScenarioProgram>()> new_program;
  std::function<bool(const ScenarioLine&)> provider;
};

// Runs the file; the provider is stopped at its end.
ScenarioResult run_scenario_in(const ScenarioWorld& world, const std::string& file);

}  // namespace leadline::testing
