// Which calls are followed, and which copy of CUPTI is tried first.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "providers/nvidia/api_names.h"
#include "providers/nvidia/cupti_library.h"

namespace leadline::nvidia {
TEST_CASE("names: ABI suffixes go, a driver function's version stays") {
  CHECK(plain_name("cudaLaunchKernel_ptsz_v7000") == "cudaLaunchKernel");
  CHECK(plain_name("cudaGraphInstantiate_v12000") == "cudaGraphInstantiate");
  CHECK(plain_name("cuMemcpyHtoDAsync_v2_ptsz") == "cuMemcpyHtoDAsync_v2");
  CHECK(plain_name("cuMemFree_v2") == "cuMemFree_v2");
  CHECK(classify("cudaLaunchKernel_ptsz_v7000").per_thread_stream);
  CHECK(classify("cuLaunchKernelEx_v2").kind == LEADLINE_GPU_LAUNCH);  // not released yet, followed all the same
  CHECK_FALSE(classify("cudaGetLastError_v3020").followed);
  CHECK_FALSE(classify("cudaStreamQuery_v3020").followed);
  CHECK_FALSE(classify("cuMemGetInfo_v2").followed);
  CHECK(classify("cudaMallocHost_v3020").kind == LEADLINE_GPU_OTHER);  // host memory is not the device's
}

TEST_CASE("the CUPTI of the program's own CUDA is tried first, one newer than the driver not at all") {
  const std::vector<std::string> all{"/site/libcupti.so.13", "/site/libcupti.so.12", "libcupti.so"};
  CHECK(fitting_candidates(all, 0, 13) == all);
  CHECK(fitting_candidates(all, 12, 13) ==
        std::vector<std::string>{"/site/libcupti.so.12", "/site/libcupti.so.13", "libcupti.so"});
  CHECK(fitting_candidates(all, 13, 12) == std::vector<std::string>{"/site/libcupti.so.12", "libcupti.so"});
}

}  // namespace leadline::nvidia
