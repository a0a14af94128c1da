// The root mean square norm of Llama as it was slow: half precision in, every element converted on its way, a constant
// read in each round. Compiled with `nvcc -lineinfo`; what the tests compare is in README.md.
#include <cuda_fp16.h>

__constant__ float epsilon[4];

__device__ __forceinline__ float to_float(__half value) {
  return __half2float(value);
}

__device__ __forceinline__ float square(__half value) {
  const float wide = to_float(value);
  return wide * wide;
}

__device__ float warp_sum(float value) {
  for (int step = 16; step > 0; step /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, step);
  }
  return value;
}

__global__ void rmsnorm(const __half* in, const __half* weight, __half* out, int width) {
  __shared__ float sums[32];
  const __half* row = in + blockIdx.x * width;
  float sum = 0;
  for (int at = threadIdx.x; at < width; at += blockDim.x) {
    sum += square(row[at]);
  }
  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = warp_sum(threadIdx.x < blockDim.x / 32 ? sums[threadIdx.x % 32] : 0);
  const float scale = rsqrtf(sum / width + epsilon[blockIdx.x % 4]);
  for (int at = threadIdx.x; at < width; at += blockDim.x) {
    out[blockIdx.x * width + at] = __float2half(to_float(row[at]) * scale * to_float(weight[at]));
  }
}
