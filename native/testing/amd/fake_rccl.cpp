// The fake RCCL: a collective is a call of its own with a kernel that it launches through HIP.
#include <cstring>

#include "testing/amd/fake_rocm.h"

using namespace leadline::testing::rocm;  // NOLINT: one file, exported C names only

extern "C" int hipLaunchKernel(const void*, sdk::Dim3, sdk::Dim3, void**, std::size_t, void*);

namespace {

struct Payload {
  std::uint64_t size = sizeof(Payload);
  struct {
    const void* send;
    void* receive;
    std::size_t count;
    int type;
    int operation;
    void* communicator;
    void* stream;
  } arguments{};
  std::uint64_t result = 0;
};

}  // namespace

extern "C" int ncclAllReduce(const void* send, void* receive, std::size_t count, int type, int operation,
                             void* communicator, void* stream) {
  FakeRocm& rocm = FakeRocm::instance();
  Payload payload;
  payload.arguments = {send, receive, count, type, operation, communicator, stream};
  rocm.tell(rocm.kind_rccl(), 1, sdk::Phase::kEnter, &payload);
  Kernel kernel;
  kernel.name = "_Z21ncclDevKernel_Generic24ncclDevKernelArgsStorage";
  const int result = hipLaunchKernel(&kernel, {8, 1, 1}, {256, 1, 1}, nullptr, 0, stream);
  rocm.tell(rocm.kind_rccl(), 1, sdk::Phase::kExit, &payload);
  return result;
}
