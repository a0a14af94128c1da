// A program of a scenario on a fake GPU, as far as CUDA and HIP are alike: their fakes name what a program calls by the
// same names (testing/nvidia/fakes.h, testing/amd/fakes.h).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>

#include "testing/scenario_text.h"

namespace leadline::testing {

template <class Fakes, class Gpu, class Kernel, class LaunchConfig>
class GpuProgram : public ScenarioProgram {
 public:
  GpuProgram(Fakes& fakes, Gpu& gpu) : fakes_(fakes), gpu_(gpu) {}

 protected:
  // What the vendor does in its own way.
  virtual void set_registers(Kernel& kernel, std::int32_t registers) = 0;
  // False: no way of launching of this vendor's.
  virtual bool launch_by(const std::string& how, Kernel& kernel, const LaunchConfig& config) = 0;

  Fakes& fakes_;
  Gpu& gpu_;

 private:
  void launch(const ScenarioLaunch& launch, Stream stream) final {
    Kernel& kernel = kernels_[launch.kernel];
    names_.push_back(launch.kernel);
    kernel.name = names_.back().c_str();
    kernel.duration_ns = launch.duration_ns;
    kernel.fails = launch.how == "fails";
    set_registers(kernel, launch.registers);
    const LaunchConfig config{{launch.grid, 1, 1}, {launch.block, 1, 1}, 0, stream};
    if (launch.how == "ex") {
      fakes_.launch_ex(&config, &kernel, nullptr);
    } else if (launch.how == "cooperative") {
      fakes_.launch_cooperative(&kernel, config.grid, config.block, nullptr, 0, stream);
    } else if (!launch_by(launch.how, kernel, config)) {
      fakes_.launch(&kernel, config.grid, config.block, nullptr, 0, stream);
    }
  }
  Stream stream(std::uint32_t number, std::int32_t device) final { return gpu_.stream(number, device); }
  void copy(bool to_device, std::size_t bytes, Stream stream) final {
    fakes_.memcpy_async(nullptr, nullptr, bytes, to_device ? 1 : 2, stream);
  }
  void set(std::size_t bytes, Stream stream) final { fakes_.memset_async(nullptr, 0, bytes, stream); }
  void synchronize_device() final { fakes_.device_synchronize(); }
  void synchronize(Stream stream) final { fakes_.stream_synchronize(stream); }
  void synchronize_event(std::uint32_t event) final { fakes_.event_synchronize(gpu_.event(event)); }
  void record(std::uint32_t event, Stream stream) final { fakes_.event_record(gpu_.event(event), stream); }
  void wait(std::uint32_t event, Stream stream) final { fakes_.stream_wait_event(stream, gpu_.event(event), 0); }
  void* allocate(std::size_t bytes) final {
    void* address = nullptr;
    fakes_.malloc(&address, bytes);
    return address;
  }
  void free(void* address) final { fakes_.free(address); }
  void begin_capture(Stream stream) final { fakes_.begin_capture(stream, 0); }
  void* end_capture(Stream stream) final {
    void* graph = nullptr;
    fakes_.end_capture(stream, &graph);
    return graph;
  }
  void replay(void* executable, Stream stream) final { fakes_.graph_launch(executable, stream); }
  void compute(std::int64_t ns) final { gpu_.tick(ns); }
  void poll() final { fakes_.get_last_error(); }

  std::map<std::string, Kernel> kernels_;
  std::deque<std::string> names_;
};

}  // namespace leadline::testing
