#include "testing/amd/scenario.h"

#include "providers/amd/provider.h"
#include "testing/amd/fakes.h"

namespace leadline::testing::rocm {
namespace {

class Program final : public ScenarioProgram {
 public:
  explicit Program(Fakes& fakes) : fakes_(fakes), rocm_(fakes.rocm()) {}

 private:
  using Handle = ScenarioProgram::Stream;
  Handle stream(std::uint32_t number, std::int32_t device) override { return rocm_.stream(number, device); }
  void launch(const ScenarioLaunch& launch, Handle stream) override {
    Kernel& kernel = kernels_[launch.kernel];
    names_.push_back(launch.kernel);
    kernel.name = names_.back().c_str();
    kernel.duration_ns = launch.duration_ns;
    kernel.vgprs = launch.registers;
    kernel.fails = launch.how == "fails";
    const LaunchConfig config{{launch.grid, 1, 1}, {launch.block, 1, 1}, 0, stream};
    if (launch.how == "driver") {
      fakes_.module_launch(&kernel, launch.grid, 1, 1, launch.block, 1, 1, 0, stream, nullptr, nullptr);
    } else if (launch.how == "ex") {
      fakes_.launch_ex(&config, &kernel, nullptr);
    } else if (launch.how == "cooperative") {
      fakes_.launch_cooperative(&kernel, config.grid, config.block, nullptr, 0, stream);
    } else {
      fakes_.launch(&kernel, config.grid, config.block, nullptr, 0, stream);
    }
  }
  void copy(bool to_device, std::size_t bytes, Handle stream) override {
    fakes_.memcpy_async(nullptr, nullptr, bytes, to_device ? 1 : 2, stream);
  }
  void set(std::size_t bytes, Handle stream) override { fakes_.memset_async(nullptr, 0, bytes, stream); }
  void synchronize_device() override { fakes_.device_synchronize(); }
  void synchronize(Handle stream) override { fakes_.stream_synchronize(stream); }
  void synchronize_event(std::uint32_t event) override { fakes_.event_synchronize(rocm_.event(event)); }
  void record(std::uint32_t event, Handle stream) override { fakes_.event_record(rocm_.event(event), stream); }
  void wait(std::uint32_t event, Handle stream) override { fakes_.stream_wait_event(stream, rocm_.event(event), 0); }
  void* allocate(std::size_t bytes) override {
    void* address = nullptr;
    fakes_.malloc(&address, bytes);
    return address;
  }
  void free(void* address) override { fakes_.free(address); }
  void begin_capture(Handle stream) override { fakes_.begin_capture(stream, 0); }
  void* end_capture(Handle stream) override {
    void* graph = nullptr;
    fakes_.end_capture(stream, &graph);
    return graph;
  }
  void* instantiate(void* graph) override {
    void* executable = nullptr;
    fakes_.graph_instantiate(&executable, graph, nullptr, nullptr, 0);
    return executable;
  }
  void replay(void* executable, Handle stream) override { fakes_.graph_launch(executable, stream); }
  void destroy(void* graph, bool executable) override {
    executable ? fakes_.graph_exec_destroy(graph) : fakes_.graph_destroy(graph);
  }
  void compute(std::int64_t ns) override { rocm_.tick(ns); }
  void poll() override { fakes_.get_last_error(); }
  bool other(const ScenarioLine& line) override {
    if (line.verb() == "range") {
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

  // Of all threads: a range may be stopped by another one than it was started by.
  static std::map<std::string, std::uint64_t>& started() {
    static auto& numbers = *new std::map<std::string, std::uint64_t>;
    return numbers;
  }

  Fakes& fakes_;
  FakeRocm& rocm_;
  std::map<std::string, Kernel> kernels_;
  std::deque<std::string> names_;
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

ScenarioResult run_scenario(const std::string& file, const std::string& folder) {
  Fakes fakes(folder);
  FakeRocm& rocm = fakes.rocm();
  rocm.reset();
  TestMonitor::reset([] { return FakeRocm::instance().now_ns.load(); });
  amd::Options options;
  options.flush_interval_s = 3600;  // deliveries happen where the scenario says so
  options.wait_at_stop_s = 0.05;
  options.candidates = {folder + "/librocprofiler-sdk.so.1"};
  ScenarioResult result =
      run_scenario_in({[&] { return std::make_unique<Program>(fakes); },
                       [&](const ScenarioLine& line) { return ask_provider(options, line) || configure(rocm, line); }},
                      file);
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
  replace("cuLaunchKernel", "hipModuleLaunchKernel");
  replace("cuda", "hip");
  if (const auto at = text.find(" | sync_time count "); at != std::string::npos) text.erase(text.find(" sum ", at));
  return text;
}

}  // namespace leadline::testing::rocm
