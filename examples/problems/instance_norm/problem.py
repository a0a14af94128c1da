"""Instance norm in blocks of 32 threads, as chosen for warps of 32: a device that runs 64 in step leaves half empty.

The case that DeepContext found in PyTorch's kernels on AMD GPUs, as a kernel of one's own.
"""

import ctypes

from device import arguments, check, hip, kernel, memory, step

PLANES, SIZE = 64 * 32, 320 * 320
SOURCE = """
extern "C" __global__ void instance_norm(const float* x, float* y, int size) {
  __shared__ float sums[1024], squares[1024];
  const float* plane = x + (size_t)blockIdx.x * size;
  float sum = 0, square = 0;
  for (int i = threadIdx.x; i < size; i += blockDim.x) sum += plane[i], square += plane[i] * plane[i];
  sums[threadIdx.x] = sum, squares[threadIdx.x] = square;
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x >= half) continue;
    sums[threadIdx.x] += sums[threadIdx.x + half];
    squares[threadIdx.x] += squares[threadIdx.x + half];
  }
  __syncthreads();
  const float mean = sums[0] / size, scale = rsqrtf(squares[0] / size - mean * mean + 1e-5f);
  for (int i = threadIdx.x; i < size; i += blockDim.x) y[(size_t)blockIdx.x * size + i] = (plane[i] - mean) * scale;
}
extern "C" __global__ void relu(float* y, size_t size) {
  for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < size; i += (size_t)gridDim.x * blockDim.x)
    y[i] = y[i] > 0 ? y[i] : 0;
}
"""
normalise, activate = kernel(SOURCE, "instance_norm"), kernel(SOURCE, "relu")


def instance_norm(x, y):
    size = ctypes.c_int(SIZE)
    given = arguments(x, y, size)
    check(hip.hipModuleLaunchKernel(normalise, PLANES, 1, 1, 32, 1, 1, 0, None, given, None))  # problem


def relu(y):
    size = ctypes.c_size_t(PLANES * SIZE)
    given = arguments(y, size)
    check(hip.hipModuleLaunchKernel(activate, 1216, 1, 1, 256, 1, 1, 0, None, given, None))


def main():
    x, y = memory(4 * PLANES * SIZE), memory(4 * PLANES * SIZE)
    for _ in range(20):
        with step():
            instance_norm(x, y)
            relu(y)
            check(hip.hipDeviceSynchronize())


main()
