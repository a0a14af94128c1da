// Leadline as a tool of rocprofiler-sdk: configured once per process, before HIP starts, and running ever after.
//
// The SDK takes tools only while it configures itself, and contexts that were stopped do not reliably see HIP calls
// again when they are started, so what is measured when is decided here and not there. What is known of loaded kernels,
// streams and devices outlives every measuring.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "providers/amd/agents.h"
#include "providers/amd/kernel_symbols.h"
#include "providers/amd/pc_sampling.h"
#include "providers/amd/sdk_library.h"
#include "providers/amd/sdk_names.h"
#include "providers/amd/source.h"
#include "providers/amd/stream_numbers.h"

namespace leadline::amd {

class Tool final : public Source {
 public:
  static Tool& instance();
  // nullptr where nobody has asked for it yet; takes neither lock nor memory, as the child of a fork must not.
  static Tool* known() noexcept;
  // What a child of a fork is told: its parent had started HIP.
  static constexpr const char* kForked =
      "This process was forked after HIP had started, and HIP does not survive a fork, so GPU work is not measured "
      "here; use the start method \"spawn\" or \"forkserver\".";
  // In such a child: the first call that makes work says so, since only a child that wants HIP has lost something.
  static void tell_at_first_work() noexcept;

  // What the SDK calls for every tool when it configures itself, and rocprofiler_configure() hands on.
  static sdk::ToolConfiguration* configure(std::uint32_t version, const char* description, std::uint32_t priority,
                                           sdk::ClientId* client);

  // As above, now, where nobody has asked yet. False with one sentence in *error, and *missing where there is no SDK.
  bool force(const std::vector<std::string>& candidates, std::string* error, bool* missing);

  bool configured() const noexcept { return configured_.load(std::memory_order_acquire); }
  // Why it is not though the SDK asked; empty: it did not ask.
  std::string failure() const;
  // Called when the SDK has configured the tool, on the thread that starts HIP.
  void on_configured(void (*told)()) noexcept { told_.store(told, std::memory_order_release); }

  // Valid where configured.
  const SdkFunctions& call() const noexcept { return library_->call(); }
  bool has_old_layout() const noexcept { return old_layout_; }  // of before 1.0
  const SdkLibrary& library() const noexcept { return *library_; }

  const char* name() const noexcept override { return "rocprofiler-sdk"; }
  std::string path() const override { return library_->path(); }
  std::string version() const override { return sdk_version_name(library_->version()); }
  const gpu::Vendor& vendor() const noexcept override;
  bool late() const noexcept override { return late_; }
  bool asks() const noexcept override { return true; }
  bool timestamp(std::uint64_t* ns) const noexcept override { return call().get_timestamp(ns) == sdk::kSuccess; }
  const SdkNames& names() const noexcept override { return names_; }
  KernelSymbols& kernels() noexcept override { return kernels_; }
  StreamNumbers& streams() noexcept override { return streams_; }
  gpu::HostMemory& host_memory() noexcept override { return host_memory_; }
  const Agents& agents() override;
  void flush() noexcept override;

  // Instructions are to be sampled, or counters read, which the SDK must be asked for while it configures its tools.
  void want_samples(const PcSamplingOptions& options);
  void want_counters(const std::vector<std::string>& metrics);
  PcSampler* sampler() noexcept override { return sampler_.load(std::memory_order_acquire); }
  DispatchCounter* counters() noexcept override { return counters_.load(std::memory_order_acquire); }

 private:
  int initialize();
  bool set_up(std::string* error);

  std::atomic<bool> configured_{false};
  std::atomic<void (*)()> told_{nullptr};
  mutable std::mutex mutex_;
  std::string failure_;
  std::optional<SdkLibrary> library_;
  SdkNames names_;
  KernelSymbols kernels_;
  StreamNumbers streams_;
  Agents agents_;
  std::mutex agents_mutex_;
  sdk::ContextId code_context_;
  sdk::ContextId context_;
  sdk::BufferId buffer_;
  bool late_ = false;
  bool old_layout_ = false;
  gpu::HostMemory host_memory_;
  std::optional<PcSamplingOptions> wanted_samples_;
  std::atomic<PcSampler*> sampler_{nullptr};  // never destroyed, nor is the next
  std::vector<std::string> wanted_counters_;
  std::atomic<DispatchCounter*> counters_{nullptr};
};

}  // namespace leadline::amd
