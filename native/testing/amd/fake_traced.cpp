// What roctracer is told of, and what HSA loads: the parts of FakeRocm for a ROCm of before rocprofiler-sdk.
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string_view>
#include <thread>

#include "testing/amd/fake_rocm.h"

namespace leadline::testing::rocm {

void FakeRocm::load_hsa_tools() {
  const char* named = std::getenv("HSA_TOOLS_LIB");
  std::istringstream all(named ? named : "");
  for (std::string path; all >> path;) {
    void* tool = ::dlopen(path.c_str(), RTLD_NOW);
    using OnLoad = bool(void*, std::uint64_t, std::uint64_t, const char* const*);
    auto* entry = tool ? reinterpret_cast<OnLoad*>(::dlsym(tool, "OnLoad")) : nullptr;
    if (entry && !entry(nullptr, 1, 0, nullptr)) std::abort();
  }
}

namespace {
thread_local std::uint64_t this_traced_call = 0;
}

void FakeRocm::trace(const char* name, tracer::Phase phase, const void* arguments, std::size_t bytes) {
  const auto operation = static_cast<std::uint32_t>(hip_operation(name) + 1);
  Traced told;
  {
    const std::lock_guard lock(mutex);
    if (phase == tracer::Phase::kEnter) this_traced_call = traced_work.empty() ? 0 : ++traced_correlation_;
    const auto found = traced_calls.find(operation);
    if (found == traced_calls.end()) return;
    told = found->second;
  }
  struct {
    std::uint64_t correlation;
    tracer::Phase phase;
    alignas(8) std::uint8_t arguments[320];
  } call{this_traced_call, phase, {}};
  // What pointers point to stands behind them there.
  const std::string_view is = name;
  const std::size_t pointer = is.starts_with("hipLaunch") && is != "hipLaunchKernelExC" ? 40
                              : is == "hipStreamEndCapture"                             ? 16
                              : is == "hipMalloc" || is == "hipHostMalloc"              ? 8
                              : is.starts_with("hipGraphInstantiate")                   ? 8
                                                                                        : bytes;
  const auto* from = static_cast<const std::uint8_t*>(arguments);
  std::memcpy(call.arguments, from, std::min(pointer, bytes));
  if (pointer < bytes) std::memcpy(call.arguments + pointer + 8, from + pointer, bytes - pointer);
  told.callback(static_cast<std::uint32_t>(tracer::Domain::kHipCalls), operation, &call, told.user);
}

void FakeRocm::keep_traced(tracer::Operation operation, std::uint32_t kind, const Stream& stream, std::int64_t start,
                           std::size_t bytes, const char* kernel) {
  if (!traced_work.contains(static_cast<std::uint32_t>(operation))) return;
  tracer::Record record{};
  record.domain = tracer::Domain::kHipWork;
  record.kind = kind;
  record.operation = operation;
  record.correlation = this_traced_call;
  record.begin = static_cast<std::uint64_t>(start + kEpoch);
  record.end = static_cast<std::uint64_t>(stream.ready_ns + kEpoch);
  record.device = stream.device;
  record.queue = stream.id;
  if (kernel != nullptr) {
    record.kernel = traced_names_.insert(kernel).first->c_str();
  } else {
    record.bytes = bytes;
  }
  traced_.push_back(record);
}

void FakeRocm::flush_traced() {
  std::vector<tracer::Record> out;
  {
    const std::lock_guard lock(mutex);
    out.swap(traced_);
  }
  if (out.empty() || traced_pool.full == nullptr) return;
  const auto* begin = reinterpret_cast<const char*>(out.data());
  std::thread([&] { traced_pool.full(begin, begin + out.size() * sizeof out[0], traced_pool.full_data); }).join();
}

}  // namespace leadline::testing::rocm
