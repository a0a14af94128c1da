#include "providers/amd/roctracer.h"

#include <array>
#include <cstdlib>
#include <string_view>

#include "gpu/in_callback.h"
#include "providers/amd/chips.h"
#include "providers/amd/measuring.h"

namespace leadline::amd {
namespace {

using InCallback = gpu::InCallback<Measuring>;

constexpr std::size_t kBufferBytes = 1u << 20;
constexpr std::uint32_t kMostCalls = 1024;  // ROCm 6.1 has some 420
constexpr auto kHipWork = static_cast<std::uint32_t>(tracer::Domain::kHipWork);
constexpr auto kHipCalls = static_cast<std::uint32_t>(tracer::Domain::kHipCalls);
constexpr std::array<std::uint32_t, 2> kWork{static_cast<std::uint32_t>(tracer::Operation::kDispatch),
                                             static_cast<std::uint32_t>(tracer::Operation::kCopy)};
// It tells nothing of grids, registers and local memory.
constexpr gpu::Vendor kTraced{"HIP graph", nullptr, false};

void on_hip(std::uint32_t, std::uint32_t operation, const void* data, void*) {
  const InCallback self;
  if (!self || data == nullptr) return;
  self->start_thread();
  self->callbacks().traced_hip(operation, *static_cast<const tracer::HipCall*>(data));
}

void on_records(const char* begin, const char* end, void*) {
  const InCallback self;
  if (self) self->fold_traced(begin, end);
}

// The tools of rocprof (of before rocprofv3), which begin before the program does.
bool rocprof_is_parent() {
  for (const char* variable : {"HSA_TOOLS_LIB", "LD_PRELOAD"}) {
    const char* const value = std::getenv(variable);
    const std::string_view named = value == nullptr ? "" : value;
    if (named.find("libroctracer_tool") != std::string_view::npos ||
        named.find("librocprofiler_tool") != std::string_view::npos ||
        named.find("librocprofiler64") != std::string_view::npos) {
      return true;
    }
  }
  return false;
}

// HIP's own word on the devices, which it has started by then; by numbers that tests/amd/test_roctracer_abi.py
// compares.
std::vector<GpuAgent> devices_of_hip() {
  constexpr std::int32_t kMultiprocessors = 63;
  constexpr std::int32_t kWarpSize = 87;
  constexpr std::int32_t kSuccess = 0;
  std::vector<GpuAgent> devices;
  const std::optional<Library> hip = Library::find_loaded("libamdhip64.so");
  if (!hip) return devices;
  const auto count_of = hip->symbol<int(int*)>("hipGetDeviceCount");
  const auto name_of = hip->symbol<int(char*, int, int)>("hipDeviceGetName");
  const auto memory_of = hip->symbol<int(std::size_t*, int)>("hipDeviceTotalMem");
  const auto attribute_of = hip->symbol<int(int*, int, int)>("hipDeviceGetAttribute");
  int count = 0;
  if (!count_of || count_of(&count) != kSuccess) return devices;
  for (int index = 0; index < count; ++index) {
    GpuAgent device;
    device.id = static_cast<std::uint64_t>(index);
    device.info.index = index;
    std::array<char, 128> name{};
    if (name_of && name_of(name.data(), static_cast<int>(name.size()) - 1, index) == kSuccess)
      device.info.name = name.data();
    std::size_t bytes = 0;
    if (memory_of && memory_of(&bytes, index) == kSuccess) device.info.memory_bytes = static_cast<std::int64_t>(bytes);
    int value = 0;
    if (attribute_of && attribute_of(&value, kMultiprocessors, index) == kSuccess) device.info.multiprocessors = value;
    if (attribute_of && attribute_of(&value, kWarpSize, index) == kSuccess && value > 0) device.info.warp_size = value;
    devices.push_back(std::move(device));
  }
  return devices;
}

}  // namespace

Roctracer& Roctracer::instance() {
  static Roctracer& made = *new Roctracer;  // never destroyed: the library may call until the very end
  return made;
}

bool Roctracer::open(const std::vector<std::string>& candidates, std::string* error) {
  std::optional<Library> library = Library::find_loaded("libroctracer64.so");
  if (!library) library = Library::open(candidates, error);
  if (!library) return false;
  const char* missing = nullptr;
  const auto bind = [&]<class Function>(const char* name, Function*& slot) {
    slot = library->symbol<Function>(name);
    if (slot == nullptr && missing == nullptr) missing = name;
  };
  bind("roctracer_version_major", call_.major);
  bind("roctracer_version_minor", call_.minor);
  bind("roctracer_op_string", call_.op_string);
  bind("roctracer_set_properties", call_.set_properties);
  bind("roctracer_enable_op_callback", call_.enable_call);
  bind("roctracer_disable_op_callback", call_.disable_call);
  bind("roctracer_open_pool_expl", call_.open_pool);
  bind("roctracer_enable_op_activity_expl", call_.enable_work);
  bind("roctracer_disable_op_activity", call_.disable_work);
  bind("roctracer_flush_activity_expl", call_.flush);
  bind("roctracer_next_record", call_.next_record);
  bind("roctracer_get_timestamp", call_.timestamp);
  path_ = library->path();
  if (missing != nullptr) {
    *error = "the library " + path_ + " has no function " + missing;
    return false;
  }
  for (std::uint32_t op = 1; op < kMostCalls; ++op) {
    const char* const name = call_.op_string(kHipCalls, op, 0);
    if (name != nullptr && std::string_view(name).starts_with("hip")) {
      names_.calls.add(static_cast<std::int32_t>(op), name, Interface::kTracer);
    }
  }
  if (names_.calls.followed().empty()) {
    *error = "roctracer " + version() + " (" + path_ + ") names none of HIP's calls";
    return false;
  }
  return true;
}

bool Roctracer::start(const std::vector<std::string>& candidates, bool early, std::string* error) {
  const std::lock_guard lock(mutex_);
  if (rocprof_is_parent()) {
    *error = "rocprof measures this program and roctracer serves one tool at a time; run it without rocprof";
    return false;
  }
  if (!hip_is_loaded()) {
    *error = "roctracer is of use only where the program has loaded HIP";
    return false;
  }
  if (!early) host_memory_.miss();  // what was locked before
  if (!is_open_) is_open_ = open(candidates, error);
  return is_open_ && enable(error);
}

bool Roctracer::enable(std::string* error) {
  const auto check = [&](tracer::Status status, const char* doing) {
    if (status == tracer::kSuccess) return true;
    *error = std::string("roctracer refuses ") + doing + " (status " + std::to_string(status) + ")";
    return false;
  };
  call_.set_properties(kHipCalls, nullptr);
  if (pool_ == nullptr) {
    tracer::Properties properties{};
    properties.buffer_bytes = kBufferBytes;
    properties.full = on_records;
    if (!check(call_.open_pool(&properties, &pool_), "a buffer")) return false;
  }
  for (const std::uint32_t work : kWork) {
    if (!check(call_.enable_work(kHipWork, work, pool_), "records of work")) return false;
  }
  for (const std::int32_t call : names_.calls.followed()) {
    if (!check(call_.enable_call(kHipCalls, static_cast<std::uint32_t>(call), on_hip, nullptr), "callbacks"))
      return false;
  }
  return true;
}

void Roctracer::rest() noexcept {
  const std::lock_guard lock(mutex_);
  host_memory_.miss();  // what will be locked meanwhile
  for (const std::int32_t call : names_.calls.followed())
    call_.disable_call(kHipCalls, static_cast<std::uint32_t>(call));
  for (const std::uint32_t work : kWork) call_.disable_work(kHipWork, work);
}

std::string Roctracer::version() const {
  return call_.major ? std::to_string(call_.major()) + "." + std::to_string(call_.minor()) : "";
}

const gpu::Vendor& Roctracer::vendor() const noexcept { return kTraced; }

bool Roctracer::timestamp(std::uint64_t* ns) const noexcept { return call_.timestamp(ns) == tracer::kSuccess; }

const Agents& Roctracer::agents() {
  if (agents_.gpus().empty()) agents_.take(devices_of_hip());
  return agents_;
}

void Roctracer::flush() noexcept { call_.flush(pool_); }

const char* Roctracer::work_name(const tracer::Record& record) const noexcept {
  const char* const name = call_.op_string(static_cast<std::uint32_t>(record.domain),
                                           static_cast<std::uint32_t>(record.operation), record.kind);
  return name == nullptr ? "" : name;
}

const tracer::Record* Roctracer::next(const tracer::Record* record) const noexcept {
  const tracer::Record* next = nullptr;
  return call_.next_record(record, &next) == tracer::kSuccess ? next : nullptr;
}

}  // namespace leadline::amd
