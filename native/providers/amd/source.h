// Where finished work comes from: rocprofiler-sdk (tool.h), or roctracer where a ROCm has no SDK yet (roctracer.h).
#pragma once

#include <cstdint>
#include <string>

#include "gpu/device.h"
#include "gpu/host_memory.h"
#include "providers/amd/agents.h"
#include "providers/amd/counters.h"
#include "providers/amd/kernel_symbols.h"
#include "providers/amd/pc_sampling.h"
#include "providers/amd/sdk_names.h"
#include "providers/amd/stream_numbers.h"

namespace leadline::amd {

class Source {
 public:
  virtual ~Source() = default;

  virtual const char* name() const noexcept = 0;  // as the vendor calls it
  virtual std::string path() const = 0;           // of its library
  virtual std::string version() const = 0;
  virtual const gpu::Vendor& vendor() const noexcept = 0;
  // It came after HIP, so work on queues of before may be missing.
  virtual bool late() const noexcept = 0;
  // It asks for a correlation id when work is handed to a device, and brings that back with the record.
  virtual bool asks() const noexcept = 0;

  virtual bool timestamp(std::uint64_t* ns) const noexcept = 0;
  virtual const SdkNames& names() const noexcept = 0;
  virtual KernelSymbols& kernels() noexcept = 0;
  virtual StreamNumbers& streams() noexcept = 0;
  virtual gpu::HostMemory& host_memory() noexcept = 0;
  // Asks the library; for one thread at a time.
  virtual const Agents& agents() = 0;  // throws std::bad_alloc
  virtual void flush() noexcept = 0;
  // No measuring listens any more.
  virtual void rest() noexcept {}
  // Null where it does not, or nobody wanted it in time.
  virtual PcSampler* sampler() noexcept { return nullptr; }
  virtual DispatchCounter* counters() noexcept { return nullptr; }
};

}  // namespace leadline::amd
