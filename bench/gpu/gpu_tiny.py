"""A program without a framework: one kernel of gpu_kernels.cu again and again, over the driver alone.

    python -m gpu_tiny KERNEL SECONDS [PER_SYNC]

The last line printed is a JSON object that says how often it was launched. For a rehearsal the fake driver takes any
name; what its samples and counters are to read is then in the environment, as tests/nvidia/sampled_program.py has it.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import time
from ctypes import c_char_p, c_double, c_uint32, c_uint64, c_void_p
from pathlib import Path

ROWS, COLUMNS = 1 << 17, 256
SHAPES = {"scattered": (128, 1024), "conflicts": (128, 1024), "copying": (1024, 1024), "multiplying": (528, 256),
          "short_one": (128, 1024)}  # fmt: skip
"""Blocks, and threads of each."""
_PER_SYNC = 20


def driver() -> ctypes.CDLL:
    """The driver, started."""
    fakes = os.environ.get("LEADLINE_BENCH_FAKES")
    if not fakes:
        library = ctypes.CDLL("libcuda.so.1")
        assert library.cuInit(0) == 0
        return library
    library = ctypes.CDLL(f"{fakes}/libcuda.so.1", mode=ctypes.RTLD_GLOBAL)
    for name in ("libcudart.so.13", "libcupti.so.13"):
        ctypes.CDLL(f"{fakes}/{name}", mode=ctypes.RTLD_GLOBAL)
    library.fake_test_setup(130001, b"")
    library.fake_test_not_started()
    library.fake_test_sample.argtypes = [c_char_p, c_uint64, c_char_p, c_uint32, c_uint32]
    library.fake_test_rates.argtypes = library.fake_test_memory.argtypes = [c_char_p, *[c_double] * 4]
    for told in os.environ.get("SAMPLES", "").split():
        kernel, offset, stall, count = told.split(",")
        library.fake_test_sample(kernel.encode(), int(offset, 0), stall.encode(), int(count), 0)
    for variable, function in (("RATES", library.fake_test_rates), ("MEMORY", library.fake_test_memory)):
        for told in os.environ.get(variable, "").split():
            kernel, *rates = told.split(",")
            function(kernel.encode(), *map(float, rates))
    assert library.cuInit(0) == 0
    return library


def main() -> int:
    kernel, seconds = sys.argv[1], float(sys.argv[2])
    per_sync = int(sys.argv[3]) if len(sys.argv) > 3 else _PER_SYNC
    cuda = driver()
    context, module, function = c_void_p(), c_void_p(), c_void_p()
    values, out = c_void_p(), c_void_p()
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert cuda.cuCtxSetCurrent(context) == 0
    image = Path(os.environ["ROUND_CUBIN"]).read_bytes()
    assert cuda.cuModuleLoadData(ctypes.byref(module), image) == 0
    name = os.environ.get("ROUND_KERNEL", kernel).encode()
    assert cuda.cuModuleGetFunction(ctypes.byref(function), module, name) == 0
    size = ctypes.c_size_t(4 * ROWS * COLUMNS)
    for address in (values, out):
        assert cuda.cuMemAlloc_v2(ctypes.byref(address), size) == 0
        assert cuda.cuMemsetD8Async(address, 1, size, None) == 0
    rows, columns = ctypes.c_int(ROWS), ctypes.c_int(COLUMNS)
    arguments = (c_void_p * 4)(*(ctypes.cast(ctypes.pointer(one), c_void_p) for one in (values, out, rows, columns)))
    cuda.cuLaunchKernel.argtypes = [c_void_p, *[c_uint32] * 7, c_void_p, c_void_p, c_void_p]
    blocks, threads = SHAPES[kernel]

    def launch() -> None:
        code = cuda.cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, None, arguments, None)
        assert code == 0, f"the launch answers {code}"

    print(f"{time.monotonic():.3f}: the first launch", file=sys.stderr, flush=True)
    begin, launches = time.perf_counter(), 0
    while time.perf_counter() - begin < seconds:
        for _ in range(per_sync):
            launch()
        launches += per_sync
        assert cuda.cuCtxSynchronize() == 0
        if os.environ.get("LEADLINE_BENCH_FAKES"):
            time.sleep(0.01)  # what a real device takes
    took = time.perf_counter() - begin
    print(f"{time.monotonic():.3f}: all launched", file=sys.stderr, flush=True)
    print(json.dumps({"kernel": kernel, "launches": launches, "seconds": took, "us_a_launch": took / launches * 1e6}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
