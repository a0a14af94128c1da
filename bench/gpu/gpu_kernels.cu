// Kernels whose faults are known, for programs of gpu_tiny.py: compiled where nvcc is, loaded by the driver.
// nvcc -arch=sm_90 -lineinfo -cubin
#include <mma.h>

using namespace nvcuda;

extern "C" __global__ void scattered(const float* in, float* out, int rows, int columns) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int i = 0; i < columns; ++i) sum += in[(long long)at * columns + i];
  if (at < rows) out[at] = sum;
}

extern "C" __global__ void conflicts(const float* in, float* out, int rows, int columns) {
  __shared__ float tile[32 * 32];
  float sum = 0;
  for (int i = 0; i < columns; ++i) {
    tile[threadIdx.x % 32 * 32 + threadIdx.x / 32] = sum + i;
    __syncthreads();
    sum += tile[threadIdx.x % 32 * 32 + (threadIdx.x / 32 + i) % 32];
    __syncthreads();
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum + in[0] * rows;
}

extern "C" __global__ void copying(const float* in, float* out, int rows, int columns) {
  long long count = (long long)rows * columns;
  for (long long at = blockIdx.x * (long long)blockDim.x + threadIdx.x; at < count;
       at += (long long)gridDim.x * blockDim.x)
    out[at] = in[at];
}

extern "C" __global__ void multiplying(const float* in, float* out, int rows, int columns) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> a;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> b;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> first, second;
  wmma::fill_fragment(a, __float2half(in[0]));
  wmma::fill_fragment(b, __float2half(in[1]));
  wmma::fill_fragment(first, 0.f);
  wmma::fill_fragment(second, 1.f);
  for (int i = 0; i < columns * 8; ++i) {
    wmma::mma_sync(first, a, b, first);
    wmma::mma_sync(second, a, b, second);
  }
  for (int i = 0; i < first.num_elements; ++i) first.x[i] += second.x[i];
  wmma::store_matrix_sync(out + (blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32) * 256, first, 16,
                          wmma::mem_row_major);
}

extern "C" __global__ void short_one(const float* in, float* out, int rows, int columns) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < rows) out[at] = in[at] + columns;
}
