"""A program that trains on the fake GPU through the runtime library; run by the tests in a process of its own."""

import ctypes
import os
import sys
from ctypes import c_size_t, c_void_p

from fake_gpu import Dim3, Kernel

fakes = os.environ["FAKES"]
cuda = ctypes.CDLL(fakes + "/libcuda.so.1", mode=ctypes.RTLD_GLOBAL)
cudart = ctypes.CDLL(fakes + "/libcudart.so.13", mode=ctypes.RTLD_GLOBAL)
if os.environ.get("CUPTI", "1") == "1":
    ctypes.CDLL(fakes + "/libcupti.so.13", mode=ctypes.RTLD_GLOBAL)
cuda.fake_test_setup(int(os.environ.get("FAKE_CUPTI", "130001")), os.environ.get("HOLDER", "").encode())


cudart.cudaLaunchKernel.argtypes = [c_void_p, Dim3, Dim3, c_void_p, c_size_t, c_void_p]
gemm = Kernel(b"_Z4gemmPf", 50_000, 64, 0, False)
relu = Kernel(b"relu", 10_000, 32, 0, False)


def launch(kernel):
    assert cudart.cudaLaunchKernel(ctypes.byref(kernel), Dim3(132, 1, 1), Dim3(256, 1, 1), None, 0, None) == 0


import leadline  # noqa: E402  # as in a program: measuring begins after CUDA has


def train():
    for _ in range(3):
        with leadline.region("layer"):
            launch(gemm)  # the line of gemm
            launch(relu)
            sum(range(200_000))  # a millisecond or more in which the device, with 60 µs of work, runs dry
        if "LOSE" in os.environ:
            cuda.fake_test_lose_device()
    if "PAUSE" in os.environ:
        leadline.pause()
        with leadline.region("rest"):
            launch(gemm)
            launch(relu)
        leadline.resume()
        with leadline.region("after"):
            launch(relu)
    if "WAIT_NS" in os.environ:
        launch(Kernel(b"long", int(os.environ["WAIT_NS"]), 32, 0, False))
    cudart.cudaDeviceSynchronize()


window = {"trace": os.environ["TRACE"]} if "TRACE" in os.environ else {}
with leadline.profile(sys.argv[1], quiet=True, **window):
    train()
if "WAIT_NS" in os.environ:
    cuda.fake_test_waiting_ran_ns.restype = ctypes.c_int64
    print("the device's waits ran for", cuda.fake_test_waiting_ran_ns(), file=sys.stderr)
