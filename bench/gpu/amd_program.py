"""What check_amd.sh measures: kernels, copies and memory of known number, over HIP by itself; writes the truth beside.

The kernel is compiled by hiprtc, so nothing but ROCm is needed. Where FAKES is set, over native/testing/amd's fakes.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import time
from pathlib import Path

STEPS, GRID, BLOCK, LDS = 20, 64, 256, 1024
BYTES = 1 << 20
TO_DEVICE, TO_HOST = 1, 2  # hipMemcpyKind
SOURCE = b"""
extern "C" __global__ void turns(float* values, int turns) {
  float value = values[threadIdx.x];
  for (int turn = 0; turn < turns; ++turn) value = value * 1.0001f + 0.5f;
  values[threadIdx.x] = value;
}
"""


def checked(status: int, what: str) -> None:
    if status != 0:
        raise SystemExit(f"{what} failed with {status}.")


class Real:
    """HIP of this machine with a compiled kernel."""

    def __init__(self) -> None:
        self.hip = ctypes.CDLL("libamdhip64.so")
        compiler = ctypes.CDLL("libhiprtc.so")
        program = ctypes.c_void_p()
        checked(compiler.hiprtcCreateProgram(ctypes.byref(program), SOURCE, b"turns.hip", 0, None, None), "hiprtc")
        checked(compiler.hiprtcCompileProgram(program, 0, None), "compiling the kernel")
        size = ctypes.c_size_t()
        checked(compiler.hiprtcGetCodeSize(program, ctypes.byref(size)), "hiprtcGetCodeSize")
        code = ctypes.create_string_buffer(size.value)
        checked(compiler.hiprtcGetCode(program, code), "hiprtcGetCode")
        module = ctypes.c_void_p()
        self.function = ctypes.c_void_p()
        checked(self.hip.hipModuleLoadData(ctypes.byref(module), code), "hipModuleLoadData")
        checked(self.hip.hipModuleGetFunction(ctypes.byref(self.function), module, b"turns"), "hipModuleGetFunction")


class Fake:
    """HIP of native/testing/amd; a function is what its fakes take for one."""

    def __init__(self) -> None:
        from tests.amd.fake_gpu import Kernel, hip

        self.hip = hip()
        self._kernel = Kernel(b"turns", 40_000, 8, 0, False, 0, 16, 0)
        self.function = ctypes.c_void_p(ctypes.addressof(self._kernel))


class Work:
    """One training loop's worth of calls. A method is a line to find work under."""

    def __init__(self, device: Real | Fake) -> None:
        self._device = device  # what the function is in
        self.hip, self.function = device.hip, device.function
        self.memory = ctypes.c_void_p()
        checked(self.hip.hipMalloc(ctypes.byref(self.memory), ctypes.c_size_t(BYTES)), "hipMalloc")
        self.host = ctypes.create_string_buffer(BYTES)
        self._arguments = (ctypes.c_void_p * 2)()
        self._turns = ctypes.c_int(20_000)
        self._arguments[0] = ctypes.addressof(self.memory)
        self._arguments[1] = ctypes.addressof(self._turns)

    def launch(self) -> None:
        dims = [ctypes.c_uint(one) for one in (GRID, 1, 1, BLOCK, 1, 1, LDS)]
        checked(self.hip.hipModuleLaunchKernel(self.function, *dims, None, self._arguments, None), "the launch")

    def forward(self) -> None:
        self.launch()

    def backward(self) -> None:
        self.launch()
        self.launch()

    def upload(self) -> None:
        self._copy(self.memory, self.host, TO_DEVICE)

    def download(self) -> None:
        self._copy(self.host, self.memory, TO_HOST)

    def _copy(self, target: object, source: object, direction: int) -> None:
        status = self.hip.hipMemcpyAsync(target, source, ctypes.c_size_t(BYTES), ctypes.c_int(direction), None)
        checked(status, "the copy")


def main() -> None:
    work = Work(Fake() if "FAKES" in os.environ else Real())
    for _ in range(STEPS):
        work.upload()
        work.forward()
        work.backward()
        work.download()
        if "AMD_PROGRAM_PAUSE" in os.environ:
            time.sleep(0.02)  # so that windows open and close meanwhile
    checked(work.hip.hipDeviceSynchronize(), "hipDeviceSynchronize")
    truth = {"forward": STEPS, "backward": 2 * STEPS, "grid": GRID, "block": BLOCK, "lds": LDS, "bytes": BYTES * STEPS}
    Path(sys.argv[1]).write_text(json.dumps(truth))


main()
