"""A program that trains on the fake AMD GPU; run by the tests under `leadline run`."""

import ctypes
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from fake_gpu import Kernel, hip, launch, roctx

if "SECOND_SDK" in os.environ:  # as a wheel beside the installation's
    second = ctypes.CDLL(os.environ["SECOND_SDK"])
roctx()  # as a framework loads it, before HIP starts
gemm = Kernel(b"_Z4gemmPf", 50_000, 128, 16_384, False, 128, 64, 32)
relu = Kernel(b"relu", 10_000, 32, 0, False, 0, 16, 0)

if "LATE" in os.environ:
    hip().hipGetLastError()  # HIP is there before Leadline is
    import leadline

    profiling = leadline.profile(os.environ["LATE"], quiet=True)
    profiling.__enter__()


def forward():
    launch(gemm, block=int(os.environ.get("BLOCK", "256")))  # the line of gemm
    launch(relu)


def train():
    hip().hipMemcpyAsync(None, None, 1 << 20, 1, None)
    for _ in range(int(os.environ.get("STEPS", "3"))):
        roctx().roctxRangePushA(b"step")
        forward()
        roctx().roctxRangePop()
        sum(range(100_000))
        if "PAUSE" in os.environ:
            time.sleep(0.01)  # so that windows open and close meanwhile
    hip().hipMemcpyAsync(None, None, 4096, 2, None)
    memory = ctypes.c_void_p()
    hip().hipMalloc(ctypes.addressof(memory), 1 << 20)
    hip().hipDeviceSynchronize()


if "PEER" in os.environ:
    for _ in range(3):
        hip().hipMemcpyPeerAsync(None, 1, None, 0, ctypes.c_size_t(1 << 20), None)  # the line between devices
if "HOST" in os.environ:  # memory that is locked, and memory that is not
    locked, plain = ctypes.c_void_p(), ctypes.create_string_buffer(4096)
    hip().hipHostMalloc(ctypes.byref(locked), ctypes.c_size_t(1 << 16), 0)
    for address in (locked.value + 4096, ctypes.addressof(plain)):
        hip().hipMemcpyAsync(None, address, 1000, 1, None)
    rccl = ctypes.CDLL(f"{os.environ['FAKES']}/librccl.so.1")
    rccl.ncclAllReduce(None, None, ctypes.c_size_t(8), 7, 0, None, None)
train()
if "LATE" in os.environ:
    profiling.__exit__(None, None, None)
