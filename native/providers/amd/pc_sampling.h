// Samples of the program counter of AMD's devices: by hardware with reasons where a device has it (MI300 and later),
// else by traps without. The SDK takes the service only while it configures its tools, and it runs in windows that cost
// no more than was asked for.
//
// Each sample brings back the correlation id of its dispatch, so it is known which launch it is of. What is loaded is
// remembered from the first on, since samples name code objects.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gpu/code_objects.h"
#include "gpu/instruction_samples.h"
#include "providers/amd/agents.h"
#include "providers/amd/pc_sampling_abi.h"
#include "providers/amd/provider.h"
#include "providers/amd/sdk_library.h"

namespace leadline::amd {

struct PcSamplingOptions {
  std::string code_folder;
  std::uint64_t code_bytes = 256u << 20;
};

class PcSampler {
 public:
  explicit PcSampler(const PcSamplingOptions& options) : code_(options.code_folder, options.code_bytes) {}
  PcSampler(const PcSampler&) = delete;
  PcSampler& operator=(const PcSampler&) = delete;

  // While the SDK configures its tools. False, with a sentence in details(), where no device can be sampled.
  bool set_up(const SdkFunctions& sdk, const Agents& agents, sdk::BufferCallback callback);

  // Callbacks of the SDK.
  void code_loaded(const sdk::CodeObjectLoad& load) noexcept;
  void kernel_loaded(const sdk::KernelSymbol& symbol) noexcept;
  void take(sdk::RecordHeader** headers, std::size_t count, std::uint64_t dropped) noexcept;

  // Of the thread of windows.
  void open();
  void close();

  gpu::InstructionSamples& samples() noexcept { return samples_; }
  bool works() const noexcept { return works_; }
  InstructionDetails details() const;

 private:
  struct Function {
    std::string name;
    std::uint64_t begin = 0;  // from where its code object was loaded to
  };
  struct Code {
    std::uint64_t hash = 0;
    std::uint64_t base = 0;
    std::int32_t device = -1;
    std::vector<Function> functions;  // by `begin`
  };
  struct Key {
    std::uint64_t code_object = 0;
    std::uint64_t offset = 0;
    std::uint32_t call = 0;
    std::uint32_t reason = 0;
    auto operator<=>(const Key&) const = default;
  };
  struct Count {
    std::uint64_t samples = 0;
    std::uint64_t latency = 0;
  };

  bool configure(const SdkFunctions& sdk, const GpuAgent& gpu, std::string* why);
  void add(const sdk::SampledPlace& place, std::uint64_t external, std::uint32_t reason, bool latency);
  void give_batches(std::int64_t start_ns, std::int64_t end_ns);

  const SdkFunctions* sdk_ = nullptr;
  sdk::ContextId context_;
  sdk::BufferId buffer_;
  bool works_ = false;
  std::int64_t opened_ns_ = 0;
  std::vector<std::int32_t> devices_;
  const Agents* agents_ = nullptr;
  gpu::CodeObjects code_;
  gpu::InstructionSamples samples_;
  mutable std::mutex mutex_;  // of everything below
  std::map<std::uint64_t, Code> codes_;
  std::map<Key, Count> counts_;  // of the window that is open
  InstructionDetails said_;
};

// What frames hold of a reason; nullptr: the wave was issued, or nobody told.
const char* amd_stall_name(std::uint32_t reason);

}  // namespace leadline::amd
