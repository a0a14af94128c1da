#include "testing/nvidia/scenario.h"

#include <dlfcn.h>

#include <deque>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <thread>
#include <vector>

#include "providers/nvidia/provider.h"
#include "testing/nvidia/fakes.h"
#include "testing/test_monitor.h"

namespace leadline::testing {
namespace {

struct Line {
  std::vector<std::string> words;
  std::map<std::string, std::string> options;
  std::int64_t number(const std::string& key, std::int64_t otherwise) const {
    const auto found = options.find(key);
    return found == options.end() ? otherwise : std::stoll(found->second);
  }
  std::string text(const std::string& key) const {
    const auto found = options.find(key);
    return found == options.end() ? std::string() : found->second;
  }
  const std::string& verb() const { return words[0]; }
};

Line parse(const std::string& text) {
  Line line;
  std::istringstream in(text);
  for (std::string word; in >> word;) {
    const auto equals = word.find('=');
    if (equals == std::string::npos) {
      line.words.push_back(word);
    } else {
      line.options[word.substr(0, equals)] = word.substr(equals + 1);
    }
  }
  if (line.words.empty()) line.words.emplace_back();
  return line;
}

class Program {
 public:
  explicit Program(Fakes& fakes) : fakes_(fakes), gpu_(fakes.gpu()) {}

  // False when the line is none of a program's.
  bool run(const Line& line) {
    const std::string& verb = line.verb();
    FakeStream* stream = line.options.contains("stream")
                             ? gpu_.stream(static_cast<std::uint32_t>(line.number("stream", 0)),
                                           static_cast<std::int32_t>(line.number("device", 0)))
                             : nullptr;
    const auto bytes = static_cast<std::size_t>(line.number("bytes", 0));
    if (verb == "region" || verb == "phase") {
      names_.push_back(line.words[1]);
      open_.push_back(std::make_unique<Region>(names_.back().c_str(),
                                               verb == "phase" ? LEADLINE_REGION_PHASE : LEADLINE_REGION_USER));
    } else if (verb == "end") {
      open_.pop_back();
    } else if (verb == "launch") {
      launch(line, stream);
    } else if (verb == "copy") {
      fakes_.memcpy_async(nullptr, nullptr, bytes, line.words[1] == "HtoD" ? 1 : 2, stream);
    } else if (verb == "set") {
      fakes_.memset_async(nullptr, 0, bytes, stream);
    } else if (verb == "sync") {
      if (stream) {
        fakes_.stream_synchronize(stream);
      } else if (line.options.contains("event")) {
        fakes_.event_synchronize(gpu_.event(static_cast<std::uint32_t>(line.number("event", 0))));
      } else {
        fakes_.device_synchronize();
      }
    } else if (verb == "record") {
      fakes_.event_record(gpu_.event(static_cast<std::uint32_t>(line.number("event", 0))), stream);
    } else if (verb == "wait") {
      fakes_.stream_wait_event(stream, gpu_.event(static_cast<std::uint32_t>(line.number("event", 0))), 0);
    } else if (verb == "alloc") {
      fakes_.malloc(&memory_[line.words[1]], bytes);
    } else if (verb == "free") {
      fakes_.free(memory_[line.words[1]]);
    } else if (verb == "capture") {
      fakes_.begin_capture(stream, 0);
    } else if (verb == "captured") {
      fakes_.end_capture(stream, &graphs_[line.words[1]]);
    } else if (verb == "instantiate") {
      fakes_.graph_instantiate(&graphs_[line.words[2]], graphs_[line.words[1]], 0);
    } else if (verb == "replay") {
      fakes_.graph_launch(graphs_[line.words[1]], stream);
    } else if (verb == "destroy") {
      gpu_.destroy(static_cast<FakeGraph*>(graphs_[line.words[1]]), line.words.size() > 2);
    } else if (verb == "destroy-context") {
      gpu_.destroy_context(static_cast<std::int32_t>(line.number("device", 0)));
    } else if (verb == "lose-device") {
      gpu_.lose_device();
    } else if (verb == "compute") {
      gpu_.tick(std::stoll(line.words[1]));
    } else if (verb == "poll") {
      fakes_.get_last_error();
    } else {
      return false;
    }
    return true;
  }

 private:
  void launch(const Line& line, FakeStream* stream) {
    FakeKernel& kernel = kernels_[line.words[1]];
    kernel_names_.push_back(line.words[1]);
    kernel.name = kernel_names_.back().c_str();
    kernel.duration_ns = line.number("duration", 1000);
    kernel.registers = static_cast<std::int32_t>(line.number("registers", 32));
    const std::string how = line.text("how");
    kernel.fails = how == "fails";
    const auto grid = static_cast<std::uint32_t>(line.number("grid", 1));
    const auto block = static_cast<std::uint32_t>(line.number("block", 32));
    const LaunchConfig config{{grid, 1, 1}, {block, 1, 1}, 0, stream};
    for (std::int64_t i = line.number("times", 1); i > 0; --i) {
      if (how == "driver") {
        fakes_.cu_launch(&kernel, grid, 1, 1, block, 1, 1, 0, stream, nullptr, nullptr);
      } else if (how == "ex") {
        fakes_.launch_ex(&config, &kernel, nullptr);
      } else if (how == "cooperative") {
        fakes_.launch_cooperative(&kernel, config.grid, config.block, nullptr, 0, stream);
      } else if (how == "per-thread") {
        fakes_.launch_per_thread(&kernel, config.grid, config.block, nullptr, 0, stream);
      } else {
        fakes_.launch(&kernel, config.grid, config.block, nullptr, 0, stream);
      }
    }
  }

  Fakes& fakes_;
  FakeGpu& gpu_;
  std::deque<std::string> names_;
  std::vector<std::unique_ptr<Region>> open_;
  std::map<std::string, FakeKernel> kernels_;
  std::deque<std::string> kernel_names_;
  std::map<std::string, void*> memory_;
  std::map<std::string, void*> graphs_;
};

bool configure(FakeGpu& gpu, nvidia::Options& options, const Line& line) {
  const std::string& verb = line.verb();
  const auto number = [&] { return std::stoll(line.words[1]); };
  if (verb == "cupti")
    gpu.cupti_version = static_cast<std::uint32_t>(number());
  else if (verb == "driver")
    gpu.driver_cuda_version = static_cast<std::int32_t>(number());
  else if (verb == "init")
    gpu.init_result = static_cast<std::int32_t>(number());
  else if (verb == "holder")
    gpu.holder = line.words[1];
  else if (verb == "shares")
    gpu.holder_shares = true;
  else if (verb == "refuse")
    gpu.subscribe_result = static_cast<std::int32_t>(number());
  else if (verb == "refuse-records")
    gpu.activity_result = static_cast<std::int32_t>(number());
  else if (verb == "inner-ids")
    gpu.inner_ids_differ = true;
  else if (verb == "order")
    gpu.delivery.order = line.words[1] == "reversed" ? Delivery::Order::kReversed : Delivery::Order::kShuffled;
  else if (verb == "hold-back")
    gpu.delivery.hold_back = static_cast<std::size_t>(number());
  else if (verb == "drop")
    gpu.delivery.drop = static_cast<std::size_t>(number());
  else if (verb == "devices")
    gpu.devices.resize(static_cast<std::size_t>(number()), gpu.devices.front());
  else if (verb == "no-devices")
    gpu.devices.clear();
  else if (verb == "whole-graphs")
    options.whole_graphs = true;
  else
    return false;
  return true;
}

}  // namespace

ScenarioResult run_scenario(const std::string& file, const std::string& folder) {
  ScenarioResult result;
  Fakes fakes(folder);
  FakeGpu& gpu = fakes.gpu();
  gpu.reset();
  TestMonitor::reset([] { return FakeGpu::instance().now_ns.load(); });
  nvidia::Options options;
  options.flush_interval_s = 3600;  // deliveries happen where the scenario says so
  options.wait_at_stop_s = 0.05;
  options.cupti_candidates = {folder + "/libcupti.so.13"};
  std::ifstream in(file);
  if (!in) {
    result.error = "The scenario " + file + " cannot be read.";
    return result;
  }
  Program program(fakes);
  std::vector<std::string> metrics;
  std::vector<std::vector<Line>> threads;
  bool collecting = false;
  const auto run_threads = [&] {
    std::vector<std::thread> running;
    for (const std::vector<Line>& lines : threads) {
      running.emplace_back([&fakes, &lines] {
        Program mine(fakes);
        for (const Line& line : lines) mine.run(line);
      });
    }
    for (std::thread& thread : running) thread.join();
    threads.clear();
  };
  enum class Part { kProgram, kExpect, kLosses } part = Part::kProgram;
  for (std::string text; std::getline(in, text);) {
    if (part == Part::kProgram || text == "losses") {
      if (const auto hash = text.find('#'); hash != std::string::npos) text.erase(hash);
    }
    if (text.find_first_not_of(' ') == std::string::npos) continue;
    if (text == "losses") {
      part = Part::kLosses;
      continue;
    }
    if (part == Part::kExpect) {
      result.wanted += text + "\n";
      continue;
    }
    if (part == Part::kLosses) {
      result.wanted_losses += text + "\n";
      continue;
    }
    const Line line = parse(text);
    const std::string& verb = line.verb();
    if (verb == "expect") {
      metrics.assign(line.words.begin() + 1, line.words.end());
      part = Part::kExpect;
    } else if (verb == "thread") {
      threads.emplace_back();
      collecting = true;
    } else if (verb == "together") {
      collecting = false;
      run_threads();
    } else if (collecting) {
      threads.back().push_back(line);
    } else if (verb == "start") {
      nvidia::start(options);
    } else if (verb == "flush") {
      nvidia::flush(0);
    } else if (verb == "pause") {
      nvidia::pause();
    } else if (verb == "resume") {
      nvidia::resume();
    } else if (verb == "yield") {
      nvidia::yield_to(line.words[1]);
    } else if (verb == "take-back") {
      nvidia::take_back();
    } else if (verb == "stop") {
      nvidia::stop();
    } else if (!configure(gpu, options, line) && !program.run(line)) {
      result.error = "The scenario " + file + " has a line that says nothing known: " + text;
      nvidia::stop();
      return result;
    }
  }
  nvidia::stop();
  result.got = TestMonitor::folded(metrics);
  for (const auto& [kind, count] : TestMonitor::losses())
    result.got_losses += kind + " " + std::to_string(count) + "\n";
  if (gpu.noisy_callbacks_enabled > 0) result.error = "Callbacks of calls of no interest were enabled.";
  if (gpu.calls_after_finalize > 0) result.error = "CUPTI was called after it had been finalised.";
  return result;
}

}  // namespace leadline::testing
