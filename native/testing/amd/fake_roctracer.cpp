// The fake roctracer: its exported functions over the state in fake_rocm.h.
#include <cstring>

#include "testing/amd/fake_rocm.h"

using namespace leadline::testing::rocm;  // NOLINT: one file, exported C names only

namespace {

FakeRocm& rocm() { return FakeRocm::instance(); }

constexpr auto kHipWork = static_cast<std::uint32_t>(tracer::Domain::kHipWork);
constexpr auto kCallDomain = static_cast<std::uint32_t>(tracer::Domain::kHipCalls);
constexpr tracer::Status kInvalidArgument = -3;
constexpr const char* kWork[] = {"KernelExecution", "CopyHostToHost", "CopyHostToDevice", "CopyDeviceToHost",
                                 "CopyDeviceToDevice"};

}  // namespace

extern "C" {

std::uint32_t roctracer_version_major() { return 4; }
std::uint32_t roctracer_version_minor() { return 1; }
const char* roctracer_op_string(std::uint32_t domain, std::uint32_t op, std::uint32_t kind) {
  if (domain == kHipWork) return kind < std::size(kWork) ? kWork[kind] : "Marker";
  const auto known = static_cast<std::uint32_t>(hip_operations());
  return domain == kCallDomain && op >= 1 && op <= known ? kHipCalls[op - 1] : "unknown";
}
tracer::Status roctracer_set_properties(std::uint32_t, void*) { return 0; }
tracer::Status roctracer_enable_op_callback(std::uint32_t domain, std::uint32_t op, tracer::CallCallback callback,
                                            void* user) {
  if (domain != kCallDomain || callback == nullptr) return kInvalidArgument;
  const std::lock_guard lock(rocm().mutex);
  rocm().traced_calls[op] = {callback, user};
  return 0;
}
tracer::Status roctracer_disable_op_callback(std::uint32_t, std::uint32_t op) {
  const std::lock_guard lock(rocm().mutex);
  rocm().traced_calls.erase(op);
  return 0;
}
tracer::Status roctracer_open_pool_expl(const tracer::Properties* properties, tracer::Pool** pool) {
  rocm().traced_pool = *properties;
  *pool = &rocm().traced_pool;
  return 0;
}
tracer::Status roctracer_enable_op_activity_expl(std::uint32_t domain, std::uint32_t op, tracer::Pool* pool) {
  if (domain != kHipWork || pool != &rocm().traced_pool) return kInvalidArgument;
  const std::lock_guard lock(rocm().mutex);
  rocm().traced_work.insert(op);
  return 0;
}
tracer::Status roctracer_disable_op_activity(std::uint32_t, std::uint32_t op) {
  const std::lock_guard lock(rocm().mutex);
  rocm().traced_work.erase(op);
  return 0;
}
tracer::Status roctracer_flush_activity_expl(tracer::Pool*) {
  rocm().flush_traced();
  return 0;
}
tracer::Status roctracer_next_record(const tracer::Record* record, const tracer::Record** next) {
  *next = record + 1;
  return 0;
}
tracer::Status roctracer_get_timestamp(std::uint64_t* ns) {
  *ns = static_cast<std::uint64_t>(rocm().tick(0) + FakeRocm::kEpoch);
  return 0;
}

}  // extern "C"
