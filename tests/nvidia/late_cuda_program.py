"""A program without torch that starts CUDA after measuring has begun; run under `leadline run` by the tests.

late_cuda_program.py launch|look    `look` starts CUDA and makes no context, as a launcher that counts devices does
"""

import ctypes
import os
import sys
from ctypes import c_size_t, c_void_p
from pathlib import Path

from fake_gpu import Dim3, Kernel

fakes = os.environ["FAKES"]
cuda = ctypes.CDLL(fakes + "/libcuda.so.1", mode=ctypes.RTLD_GLOBAL)
cudart = ctypes.CDLL(fakes + "/libcudart.so.13", mode=ctypes.RTLD_GLOBAL)
ctypes.CDLL(fakes + "/libcupti.so.13", mode=ctypes.RTLD_GLOBAL)
cuda.fake_test_setup(130001, b"")
cuda.fake_test_not_started()


cudart.cudaLaunchKernel.argtypes = [c_void_p, Dim3, Dim3, c_void_p, c_size_t, c_void_p]
gemm = Kernel(b"_Z4gemmPf", 50_000, 64, 0, False)


def train():
    for _ in range(3):
        assert cudart.cudaLaunchKernel(ctypes.byref(gemm), Dim3(132, 1, 1), Dim3(256, 1, 1), None, 0, None) == 0
    cudart.cudaDeviceSynchronize()


def threads():
    return len(list(Path("/proc/self/task").iterdir()))


before = threads()
assert cuda.cuInit(0) == 0
assert threads() == before
if sys.argv[1] == "launch":
    train()
