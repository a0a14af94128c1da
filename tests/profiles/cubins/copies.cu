// Two kernels of one file: a copy whose threads read far apart, a function that is called and not inlined, and bank
// conflicts in shared memory.
__device__ __noinline__ float slow(float value, int rounds) {
  for (int i = 0; i < rounds; ++i) value = value * 1.0001f + 0.5f;
  return value;
}

__global__ void strided_copy(const float* in, float* out, int width, int height) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  for (int row = 0; row < height; ++row) {
    out[row * width + at] = in[at * height + row];
  }
}

__global__ void conflicts(float* data, int stride, int rounds) {
  __shared__ float tile[32 * 33];
  tile[threadIdx.x * stride % (32 * 33)] = data[threadIdx.x];
  __syncthreads();
  data[threadIdx.x] = slow(tile[threadIdx.x], rounds);
}
