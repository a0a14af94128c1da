"""A program that runs kernels of a real cubin on the fake GPU, which samples what it is told to; run by the tests."""

import ctypes
import os
import time
from ctypes import c_char_p, c_double, c_uint32, c_uint64, c_void_p
from pathlib import Path

fakes = os.environ["FAKES"]
cuda = ctypes.CDLL(fakes + "/libcuda.so.1", mode=ctypes.RTLD_GLOBAL)
cudart = ctypes.CDLL(fakes + "/libcudart.so.13", mode=ctypes.RTLD_GLOBAL)
ctypes.CDLL(fakes + "/libcupti.so.13", mode=ctypes.RTLD_GLOBAL)
cuda.fake_test_setup(130001, b"")
cuda.fake_test_not_started()
cuda.fake_test_sample.argtypes = [c_char_p, c_uint64, c_char_p, c_uint32, c_uint32]
for told in os.environ.get("SAMPLES", "").split():
    kernel, offset, stall, count = told.split(",")
    cuda.fake_test_sample(kernel.encode(), int(offset, 0), stall.encode(), int(count), 0)
cuda.fake_test_rates.argtypes = [c_char_p, *[c_double] * 4]
for told in os.environ.get("RATES", "").split():
    kernel, *rates = told.split(",")
    cuda.fake_test_rates(kernel.encode(), *map(float, rates))
cuda.fake_test_memory.argtypes = [c_char_p, *[c_double] * 4]
for told in os.environ.get("MEMORY", "").split():
    kernel, *rates = told.split(",")
    cuda.fake_test_memory(kernel.encode(), *map(float, rates))
if "REFUSE" in os.environ:
    cuda.fake_test_refuse_sampling(int(os.environ["REFUSE"]))
assert cuda.cuInit(0) == 0
image = Path(os.environ["CUBIN"]).read_bytes()
module, function = c_void_p(), c_void_p()
cuda.cuModuleLoadData(ctypes.byref(module), image)
cuda.cuModuleGetFunction(ctypes.byref(function), module, os.environ["KERNEL"].encode())
cuda.cuLaunchKernel.argtypes = [c_void_p, *[c_uint32] * 7, c_void_p, c_void_p, c_void_p]


def norm():
    return cuda.cuLaunchKernel(function, 64, 1, 1, 128, 1, 1, 0, None, None, None)


import leadline  # noqa: E402  # as in a program: measuring begins after CUDA has

for _ in range(int(os.environ.get("STEPS", "40"))):
    with leadline.region("layer"):
        norm()
    cudart.cudaDeviceSynchronize()
    leadline.step()
    time.sleep(0.01)  # so that windows open and close meanwhile
