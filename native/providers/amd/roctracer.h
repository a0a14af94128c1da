// roctracer, AMD's library of before rocprofiler-sdk (ROCm 6.1 and earlier): calls of HIP, kernels and copies.
//
// It has one place for a tool, who comes last has it, and it is of use from when HIP is loaded. What it does not tell
// of (grids, registers, which kernel of a graph) is missing, and said.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "base/library.h"
#include "providers/amd/roctracer_abi.h"
#include "providers/amd/source.h"

namespace leadline::amd {

class Roctracer final : public Source {
 public:
  static Roctracer& instance();

  // The program's own copy, else the first of `candidates`. `early`: the program has made no HIP call yet. False with
  // half a sentence in *error.
  bool start(const std::vector<std::string>& candidates, bool early, std::string* error);

  const char* name() const noexcept override { return "roctracer"; }
  std::string path() const override { return path_; }
  std::string version() const override;
  const gpu::Vendor& vendor() const noexcept override;
  bool late() const noexcept override { return false; }
  bool asks() const noexcept override { return false; }
  bool timestamp(std::uint64_t* ns) const noexcept override;
  const SdkNames& names() const noexcept override { return names_; }
  KernelSymbols& kernels() noexcept override { return kernels_; }
  StreamNumbers& streams() noexcept override { return streams_; }
  gpu::HostMemory& host_memory() noexcept override { return host_memory_; }
  const Agents& agents() override;
  void flush() noexcept override;
  void rest() noexcept override;

  // In its words, such as "CopyHostToDevice"; never null.
  const char* work_name(const tracer::Record& record) const noexcept;
  // The record behind `record`; null where it does not say.
  const tracer::Record* next(const tracer::Record* record) const noexcept;

 private:
  struct Functions {
    std::uint32_t (*major)() = nullptr;
    std::uint32_t (*minor)() = nullptr;
    const char* (*op_string)(std::uint32_t domain, std::uint32_t op, std::uint32_t kind) = nullptr;
    tracer::Status (*set_properties)(std::uint32_t domain, void* properties) = nullptr;
    tracer::Status (*enable_call)(std::uint32_t domain, std::uint32_t op, tracer::CallCallback, void*) = nullptr;
    tracer::Status (*disable_call)(std::uint32_t domain, std::uint32_t op) = nullptr;
    tracer::Status (*open_pool)(const tracer::Properties*, tracer::Pool**) = nullptr;
    tracer::Status (*enable_work)(std::uint32_t domain, std::uint32_t op, tracer::Pool*) = nullptr;
    tracer::Status (*disable_work)(std::uint32_t domain, std::uint32_t op) = nullptr;
    tracer::Status (*flush)(tracer::Pool*) = nullptr;
    tracer::Status (*next_record)(const tracer::Record*, const tracer::Record**) = nullptr;
    tracer::Status (*timestamp)(std::uint64_t*) = nullptr;
  };

  bool open(const std::vector<std::string>& candidates, std::string* error);
  bool enable(std::string* error);

  std::mutex mutex_;
  bool is_open_ = false;
  Functions call_;
  std::string path_;
  tracer::Pool* pool_ = nullptr;  // never closed: records may be on their way
  SdkNames names_;
  KernelSymbols kernels_;
  StreamNumbers streams_;
  gpu::HostMemory host_memory_;
  Agents agents_;
};

}  // namespace leadline::amd
