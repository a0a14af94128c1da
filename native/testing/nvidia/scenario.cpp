#include "testing/nvidia/scenario.h"

#include "providers/nvidia/provider.h"
#include "testing/gpu_program.h"
#include "testing/nvidia/fakes.h"

namespace leadline::testing {
namespace {

class Program final : public GpuProgram<Fakes, FakeGpu, FakeKernel, LaunchConfig> {
 public:
  explicit Program(Fakes& fakes) : GpuProgram(fakes, fakes.gpu()) {}

 private:
  void set_registers(FakeKernel& kernel, std::int32_t registers) override { kernel.registers = registers; }
  bool launch_by(const std::string& how, FakeKernel& kernel, const LaunchConfig& config) override {
    if (how == "driver") {
      fakes_.cu_launch(&kernel, config.grid.x, 1, 1, config.block.x, 1, 1, 0, config.stream, nullptr, nullptr);
    } else if (how == "per-thread") {
      fakes_.launch_per_thread(&kernel, config.grid, config.block, nullptr, 0, config.stream);
    } else {
      return false;
    }
    return true;
  }
  void* instantiate(void* graph) override {
    void* executable = nullptr;
    fakes_.graph_instantiate(&executable, graph, 0);
    return executable;
  }
  void destroy(void* graph, bool executable) override { gpu_.destroy(static_cast<FakeGraph*>(graph), executable); }
  bool other(const ScenarioLine& line) override {
    if (line.verb() == "destroy-context") {
      gpu_.destroy_context(static_cast<std::int32_t>(line.number("device", 0)));
    } else if (line.verb() == "new-context") {
      const auto device = static_cast<std::int32_t>(line.number("device", 0));
      const cupti::ResourceData resource{gpu_.keep(std::make_unique<FakeContext>(FakeContext{99, device})), nullptr,
                                         nullptr};
      const auto which = static_cast<std::uint32_t>(cupti::Resource::kContextCreated);
      if (gpu_.is_enabled(cupti::Domain::kResource, which)) {
        gpu_.callback(gpu_.callback_user, cupti::Domain::kResource, which, &resource);
      }
    } else if (line.verb() == "pc") {
      FakePc pc{line.words[1], static_cast<std::uint64_t>(line.number("offset", 0)),
                fake_stall_reason(line.text("stall")), static_cast<std::uint32_t>(line.number("count", 1)),
                static_cast<std::uint32_t>(line.number("latency", 0))};
      if (const std::string in = line.text("in"); !in.empty()) pc.function = in;
      gpu_.sampling.pcs[line.words[1]].push_back(pc);
    } else if (line.verb() == "rates") {
      FakeRates& rates = gpu_.counting.rates[line.words[1]];
      const auto set = [&](const char* key, double& value) {
        if (const std::string text = line.text(key); !text.empty()) value = std::stod(text);
      };
      set("active", rates.active);
      set("warps", rates.warps);
      set("tensor", rates.tensor);
      set("dram", rates.dram);
      set("l2", rates.l2);
      set("issue", rates.issue);
      set("bytes", rates.bytes);
      set("instructions", rates.instructions);
      set("wavefronts", rates.wavefronts);
      set("conflicts", rates.conflicts);
      set("requests", rates.requests);
      set("sectors", rates.sectors);
    } else if (line.verb() == "load-code") {
      gpu_.load_code(line.words[1].data(), line.words[1].size(), static_cast<std::int32_t>(line.number("device", 0)));
    } else if (line.verb() == "unload-code") {
      gpu_.unload_code(static_cast<std::int32_t>(line.number("device", 0)));
    } else if (line.verb() == "copy-on-host") {
      fakes_.memcpy_async(nullptr, nullptr, static_cast<std::size_t>(line.number("bytes", 1)), 0,
                          gpu_.stream(static_cast<std::uint32_t>(line.number("stream", 7)), 0));
    } else if (line.verb() == "loads") {
      gpu_.loads_ns = line.number("duration", 1000);
    } else if (line.verb() == "hold") {
      gpu_.add_graph(static_cast<FakeGraph*>(graph(line.words[1])), static_cast<FakeGraph*>(graph(line.words[2])));
    } else if (line.verb() == "lose-device") {
      gpu_.lose_device();
    } else {
      return false;
    }
    return true;
  }
};

bool configure(FakeGpu& gpu, nvidia::Options& options, const ScenarioLine& line) {
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
  else if (verb == "buffers-of-threads")
    gpu.delivery.per_thread = true;
  else if (verb == "hold-back")
    gpu.delivery.hold_back = static_cast<std::size_t>(number());
  else if (verb == "drop")
    gpu.delivery.drop = static_cast<std::size_t>(number());
  else if (verb == "devices")
    gpu.devices.resize(static_cast<std::size_t>(number()), gpu.devices.front());
  else if (verb == "no-devices")
    gpu.devices.clear();
  else if (verb == "instructions")
    options.instructions = line.words[1];
  else if (verb == "gpu-metrics")
    options.gpu_metrics.assign(line.words.begin() + 1, line.words.end());
  else if (verb == "counter-interval")
    options.counter_interval_ns = number();
  else if (verb == "replay-kernels")
    options.replay = true;
  else if (verb == "replay-launches")
    options.replay_launches = number();
  else if (verb == "refuse-ranges")
    gpu.counting.range_result = static_cast<cupti::Result>(number());
  else if (verb == "passes-missing")
    gpu.counting.passes_missing = 1;
  else if (verb == "replayed-records")
    gpu.counting.records_of_replayed = true;
  else if (verb == "range-too-many")
    gpu.counting.range_too_many = true;
  else if (verb == "chip")
    gpu.counting.chip = line.words[1];
  else if (verb == "no-counter")
    gpu.counting.unknown.insert(line.words[1]);
  else if (verb == "multiprocessor-counters")
    gpu.counting.multiprocessors = static_cast<std::size_t>(number());
  else if (verb == "refuse-counting")
    gpu.counting.enable_result = static_cast<cupti::Result>(number());
  else if (verb == "refuse-counting-start")
    gpu.counting.start_result = static_cast<cupti::Result>(number());
  else if (verb == "counter-overflow")
    gpu.counting.overflow = true;
  else if (verb == "counter-clock-error")
    gpu.counting.clock_error_ns = number();
  else if (verb == "readings-at-once")
    gpu.counting.at_once = static_cast<std::size_t>(number());
  else if (verb == "refuse-sampling")
    gpu.sampling.enable_result = static_cast<cupti::Result>(number());
  else if (verb == "refuse-mode")
    gpu.sampling.refused_mode = static_cast<std::int32_t>(number());
  else if (verb == "refuse-buffer")
    gpu.sampling.refuses_hardware_buffer = true;
  else if (verb == "drop-samples")
    gpu.sampling.drop = static_cast<std::uint64_t>(number());
  else if (verb == "buffer-full")
    gpu.sampling.buffer_full = true;
  else if (verb == "late-samples")
    gpu.sampling.late = line.words[1] == "on";
  else if (verb == "at-once")
    gpu.sampling.at_once = static_cast<std::size_t>(number());
  else if (verb == "whole-graphs")
    options.whole_graphs = true;
  else
    return false;
  return true;
}

bool ask_provider(const nvidia::Options& options, const ScenarioLine& line) {
  const std::string& verb = line.verb();
  if (verb == "start") {
    nvidia::start(options);
  } else if (verb == "flush") {
    nvidia::flush(0);
  } else if (verb == "window") {
    nvidia::sample_window(line.words[1] == "open");
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
  } else {
    return false;
  }
  return true;
}

}  // namespace

ScenarioResult run_scenario(const std::string& file, const std::string& folder, const std::function<void()>& started) {
  Fakes fakes(folder);
  FakeGpu& gpu = fakes.gpu();
  gpu.reset();
  TestMonitor::reset([] { return FakeGpu::instance().now_ns.load(); });
  nvidia::Options options;
  options.flush_interval_s = 3600;  // deliveries happen where the scenario says so
  options.wait_at_stop_s = 0.05;
  options.sample_window_s = 0;
  options.cupti_candidates = {folder + "/libcupti.so.13"};
  const auto provider = [&](const ScenarioLine& line) {
    const bool done = ask_provider(options, line) || configure(gpu, options, line);
    if (started && line.verb() == "start") started();
    return done;
  };
  ScenarioResult result = run_scenario_in({[&] { return std::make_unique<Program>(fakes); }, provider}, file);
  if (!options.gpu_metrics.empty() && (!options.replay || gpu.counting.ranges_enabled > 0) &&
      !gpu.subscribed_when_counting_ended && gpu.counting.enable_result == 0 && gpu.counting.chip != "GX999") {
    result.error = "Counting was ended after the subscription, or never.";
  }
  if (gpu.noisy_callbacks_enabled > 0) result.error = "Callbacks of calls of no interest were enabled.";
  if (gpu.counting.graphs_replayed > 0) result.error = "A graph was launched while kernels were replayed.";
  if (gpu.sampling.calls_while_off > 0) result.error = "Sampling was used where it was not on.";
  if (gpu.calls_after_finalize > 0) result.error = "CUPTI was called after it had been finalised.";
  return result;
}

}  // namespace leadline::testing
