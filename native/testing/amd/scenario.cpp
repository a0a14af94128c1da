#include "testing/amd/scenario.h"

#include <map>

#include "providers/amd/provider.h"
#include "testing/amd/fakes.h"
#include "testing/gpu_program.h"

namespace leadline::testing::rocm {
namespace {

class Program final : public GpuProgram<Fakes, FakeRocm, Kernel, LaunchConfig> {
 public:
  explicit Program(Fakes& fakes) : GpuProgram(fakes, fakes.rocm()) {}

 private:
  void set_registers(Kernel& kernel, std::int32_t registers) override { kernel.vgprs = registers; }
  bool launch_by(const std::string& how, Kernel& kernel, const LaunchConfig& config) override {
    if (how.starts_with("scratch")) {  // scratch64: so many bytes a work-item
      kernel.scratch = std::stoi(how.substr(7));
      return false;
    }
    if (how != "driver") return false;
    fakes_.module_launch(&kernel, config.grid.x, 1, 1, config.block.x, 1, 1, 0, config.stream, nullptr, nullptr);
    return true;
  }
  void* instantiate(void* graph) override {
    void* executable = nullptr;
    fakes_.graph_instantiate(&executable, graph, nullptr, nullptr, 0);
    return executable;
  }
  void destroy(void* graph, bool executable) override {
    executable ? fakes_.graph_exec_destroy(graph) : fakes_.graph_destroy(graph);
  }
  bool other(const ScenarioLine& line) override {
    const auto number = [&](std::size_t at) { return static_cast<std::size_t>(std::stoll(line.words[at])); };
    if (line.verb() == "allreduce") {
      fakes_.all_reduce(nullptr, nullptr, 1024, 7, 0, nullptr, fakes_.rocm().stream(7));
    } else if (line.verb() == "hsa-copy") {
      fakes_.hsa_copy(nullptr, 100, nullptr, 1, number(1));
    } else if (line.verb() == "host-malloc") {
      fakes_.host_malloc(&host_[line.words[1]], number(2), 0);
    } else if (line.verb() == "host-free") {
      fakes_.host_free(host_[line.words[1]]);
    } else if (line.verb() == "host-copy") {  // NAME OFFSET BYTES to|from, or - for memory of nobody's
      void* const there =
          line.words[1] == "-" ? static_cast<void*>(this) : static_cast<char*>(host_[line.words[1]]) + number(2);
      const bool to = line.words[4] == "to";
      void* const device = reinterpret_cast<void*>(0x7e0000000000);
      fakes_.memcpy_async(to ? device : there, to ? there : device, number(3), to ? 1 : 2, fakes_.rocm().stream(7));
    } else if (line.verb() == "scratch") {  // NUMBER of the stream, free|reclaim
      using Operation = sdk::ScratchOperation;
      fakes_.rocm().take_scratch_back(fakes_.rocm().stream(static_cast<std::uint32_t>(number(1))),
                                      line.words[2] == "free" ? Operation::kFree : Operation::kReclaim);
    } else if (line.verb() == "peer-copy") {
      fakes_.memcpy_peer_async(nullptr, 1, nullptr, 0, number(1), fakes_.rocm().stream(7));
    } else if (line.verb() == "range") {
      fakes_.range_push(line.words[1].c_str());
    } else if (line.verb() == "pop") {
      fakes_.range_pop();
    } else if (line.verb() == "range-start") {
      started()[line.words[1]] = fakes_.range_start(line.words[1].c_str());
    } else if (line.verb() == "range-stop") {
      fakes_.range_stop(started()[line.words[1]]);
    } else {
      return false;
    }
    return true;
  }

  std::map<std::string, void*> host_;

  // Of all threads: a range may be stopped by another one than it was started by.
  static std::map<std::string, std::uint64_t>& started() {
    static auto& numbers = *new std::map<std::string, std::uint64_t>;
    return numbers;
  }
};

bool configure(FakeRocm& rocm, const ScenarioLine& line) {
  const std::string& verb = line.verb();
  const auto number = [&] { return static_cast<std::size_t>(std::stoll(line.words[1])); };
  if (verb == "sdk")
    rocm.sdk_version = static_cast<std::uint32_t>(number());
  else if (verb == "order")
    rocm.delivery.order = line.words[1] == "reversed" ? Delivery::Order::kReversed : Delivery::Order::kShuffled;
  else if (verb == "hold-back")
    rocm.delivery.hold_back = number();
  else if (verb == "drop")
    rocm.delivery.drop = number();
  else if (verb == "devices")
    rocm.devices.resize(number(), rocm.devices.front());
  else if (verb == "blind")
    rocm.blind = true;
  else if (verb == "no-scratch-sizes")
    rocm.scratch_sizes = false;
  else if (verb == "unasked")
    rocm.unasked = true;
  else
    return false;
  return true;
}

bool ask_provider(const amd::Options& options, const ScenarioLine& line) {
  const std::string& verb = line.verb();
  if (verb == "start") {
    amd::start(options);
  } else if (verb == "flush") {
    amd::flush(0);
  } else if (verb == "pause") {
    amd::pause();
  } else if (verb == "resume") {
    amd::resume();
  } else if (verb == "stop") {
    amd::stop();
  } else {
    return false;
  }
  return true;
}

}  // namespace

ScenarioResult run_scenario(const std::string& file, const std::string& folder, const std::function<void()>& started,
                            double wait_at_stop_s) {
  Fakes fakes(folder);
  FakeRocm& rocm = fakes.rocm();
  rocm.reset();
  TestMonitor::reset([] { return FakeRocm::instance().now_ns.load(); });
  amd::Options options;
  options.flush_interval_s = 3600;  // deliveries happen where the scenario says so
  options.wait_at_stop_s = wait_at_stop_s;
  options.candidates = {folder + "/librocprofiler-sdk.so.1"};
  const auto provider = [&](const ScenarioLine& line) {
    const bool done = ask_provider(options, line) || configure(rocm, line);
    if (started && line.verb() == "start") started();
    return done;
  };
  ScenarioResult result = run_scenario_in({[&] { return std::make_unique<Program>(fakes); }, provider}, file);
  if (rocm.noisy_operations > 0) result.error = "Callbacks of calls of no interest were asked for.";
  return result;
}

std::string in_hip_words(const std::string& line) {
  if (line.find(" | set_bytes ") != std::string::npos) return {};
  std::string text = line;
  const auto replace = [&](const std::string& from, const std::string& to) {
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
  };
  replace("Memset (Device)", "__amd_rocclr_fillBufferAligned");
  replace("(Pinned -> Device)", "(Host -> Device)");
  replace("(Device -> Pageable)", "(Device -> Host)");
  replace("cuda", "hip");
  // CUPTI's launches are named as the driver's call, HIP's as the call that the program made.
  for (const char* call : {"cuLaunchCooperativeKernel", "hipLaunchCooperativeKernel"})
    replace(call, "launched together");
  for (const char* call :
       {"cuLaunchKernelEx", "cuLaunchKernel", "hipLaunchKernelExC", "hipModuleLaunchKernel", "hipLaunchKernel"})
    replace(call, "launched");
  if (const auto at = text.find(" | sync_time count "); at != std::string::npos) text.erase(text.find(" sum ", at));
  return text;
}

}  // namespace leadline::testing::rocm
