"""A program whose steps launch two kernels each, some of them left out; run with the fakes, prints the steps measured.

duty_program.py OUT
"""

import ctypes
import os
import sys
import time
from ctypes import c_size_t, c_void_p

from fake_gpu import Dim3, Kernel

import leadline
from leadline.capture import duty

STEPS = 180

duty.WARM_UP_S, duty.BLOCK_S, duty.SETTLE_S = 0.05, 0.25, 0.05
fakes = os.environ["FAKES"]
cuda = ctypes.CDLL(fakes + "/libcuda.so.1", mode=ctypes.RTLD_GLOBAL)
cudart = ctypes.CDLL(fakes + "/libcudart.so.13", mode=ctypes.RTLD_GLOBAL)
ctypes.CDLL(fakes + "/libcupti.so.13", mode=ctypes.RTLD_GLOBAL)
cuda.fake_test_setup(130001, b"")
cudart.cudaLaunchKernel.argtypes = [c_void_p, Dim3, Dim3, c_void_p, c_size_t, c_void_p]
gemm = Kernel(b"_Z4gemmPf", 50_000, 64, 0, False)

with leadline.profile(sys.argv[1], quiet=True, duty=50.0, cpu_sample=0.0):
    for _ in range(STEPS):
        for _ in range(2):
            assert cudart.cudaLaunchKernel(ctypes.byref(gemm), Dim3(132, 1, 1), Dim3(256, 1, 1), None, 0, None) == 0
        cudart.cudaDeviceSynchronize()
        time.sleep(0.01)
        leadline.step()
