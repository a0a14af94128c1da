// What a kernel's name tells, and how copies are called.
#include <doctest/doctest.h>

#include <string_view>

#include "gpu/kernel_names.h"
#include "gpu/work.h"

namespace leadline::gpu {
TEST_CASE("collectives are told by their kernels' names, old and new") {
  CHECK(collective_of("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)") == "AllReduce");
  CHECK(collective_of("ncclKernel_AllGather_RING_LL_Sum_int8_t(ncclDevComm*)") == "AllGather");
  CHECK(collective_of("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)") == "SendRecv");
  CHECK(collective_of("void gemm<float>()") == "");
}

TEST_CASE("a source learnt later reaches a kernel met before") {
  KernelSources sources;
  KernelNames names(sources);
  CHECK(names.get("triton_poi_fused_add_0").frame.line == 0);
  sources.put("triton_poi_fused_add_0", {"model.py", 12, "{\"operators\": [\"aten.add\"]}"});
  CHECK(names.get("triton_poi_fused_add_0").frame.line == 12);
  CHECK(names.get("_ZN2at6native3fooEv").text == "at::native::foo()");
  CHECK(names.get(nullptr).text == "(unnamed kernel)");
}

TEST_CASE("copies and sets are named as torch.profiler names them") {
  Work work;
  CHECK(std::string_view(copy_name(work)) == "Memcpy Unknown (Unknown -> Unknown)");
  CHECK(copy_detail(work) == nullptr);
  work.direction = Direction::kHtoD;
  work.source = Memory::kPinned;
  work.destination = Memory::kDevice;
  CHECK(std::string_view(copy_name(work)) == "Memcpy HtoD (Pinned -> Device)");
  CHECK(std::string_view(copy_detail(work)) == "{\"direction\": \"HtoD\"}");
  work.direction = Direction::kPtoP;
  work.source = work.destination = Memory::kManagedStatic;
  CHECK(std::string_view(copy_name(work)) == "Memcpy PtoP (Managed Static -> Managed Static)");
  CHECK(std::string_view(set_name(work)) == "Memset (Managed Static)");
}

}  // namespace leadline::gpu
