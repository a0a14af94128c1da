"""What the NVIDIA provider costs per launch and per record, without a GPU: the vendor's libraries are our fakes.

    python bench/gpu_provider.py --program now=build/native/testing/nvidia_bench [--program before=PATH]

`nvidia_bench` (target of the build) gives the native figures: callbacks of a launch and the fold of a record, with the
real monitor and collector. The launch from Python adds what the program's own frames cost: a loop of launches that
fail, so that the fake device makes no record, at several depths of the Python stack, profiled less unprofiled; beside
it what callbacks that do nothing add, which is the fakes' own share: they look up who wants to be called. Modes take
turns. Needs g++ for the fakes. CUPTI's own work is in no figure.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from ctypes import c_size_t, c_void_p
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.nvidia import fake_gpu

import leadline
from common import Spread, add_results_option, machine, markdown_table, write_results

ROUNDS, LAUNCHES, DEPTHS = 7, 20_000, (5, 40)
NOTHING = 'extern "C" void nothing(void*, int, unsigned, const void*) {}'


def launcher(folder: Path) -> Callable[[], None]:
    """A loop of launches on the fake GPU."""
    cuda = ctypes.CDLL(str(folder / "libcuda.so.1"), mode=ctypes.RTLD_GLOBAL)
    cudart = ctypes.CDLL(str(folder / "libcudart.so.13"), mode=ctypes.RTLD_GLOBAL)
    ctypes.CDLL(str(folder / "libcupti.so.13"), mode=ctypes.RTLD_GLOBAL)
    cuda.fake_test_setup(130001, b"")
    launch = cudart.cudaLaunchKernel
    launch.argtypes = [c_void_p, fake_gpu.Dim3, fake_gpu.Dim3, c_void_p, c_size_t, c_void_p]
    kernel = ctypes.byref(fake_gpu.Kernel(b"gemm", 1000, 32, 0, True))
    grid, block = fake_gpu.Dim3(132, 1, 1), fake_gpu.Dim3(256, 1, 1)

    def loop() -> None:
        for _ in range(LAUNCHES):
            launch(kernel, grid, block, None, 0, None)

    return loop


def launch_ns(loop: Callable[[], None], depth: int) -> float:
    """CPU time of this thread per launch, with so many more Python frames on the stack."""
    if depth > 0:
        return launch_ns(loop, depth - 1)
    begin = time.thread_time_ns()
    loop()
    return (time.thread_time_ns() - begin) / LAUNCHES


@contextlib.contextmanager
def callbacks_that_do_nothing(folder: Path) -> Iterator[None]:
    """A function that returns at once is called at the begin and end of every call but getters, as Leadline is."""
    built = folder / "nothing.so"
    if not built.exists():
        command = ["g++", "-O2", "-shared", "-fPIC", "-x", "c++", "-", "-o", str(built)]
        subprocess.run(command, input=NOTHING, text=True, check=True)
    cupti = ctypes.CDLL(str(folder / "libcupti.so.13"))
    subscriber, name = c_void_p(), ctypes.c_char_p()
    cupti.cuptiSubscribe(ctypes.byref(subscriber), ctypes.cast(ctypes.CDLL(str(built)).nothing, c_void_p), None)
    for domain in (1, 2):  # the driver's and the runtime's calls
        for number in range(1, 1000):
            cupti.cuptiGetCallbackName(domain, number, ctypes.byref(name))
            if name.value and b"Get" not in name.value:
                cupti.cuptiEnableCallback(1, subscriber, domain, number)
    try:
        yield
    finally:
        cupti.cuptiUnsubscribe(subscriber)


def from_python() -> dict[str, list[float]]:
    """Added nanoseconds per launch, by round."""
    added: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fake_gpu.build(folder, "g++", "-O2")
        loop = launcher(folder)
        modes: dict[str, Callable[[], contextlib.AbstractContextManager[object]]] = {
            "plain": contextlib.nullcontext,
            "nothing": lambda: callbacks_that_do_nothing(folder),
            "leadline": lambda: leadline.profile(folder / "x.leadline", quiet=True),
        }
        for number in range(ROUNDS):
            for depth in DEPTHS:
                ns = {}
                for mode in random.Random(number).sample(sorted(modes), len(modes)):
                    with modes[mode]():
                        ns[mode] = min(launch_ns(loop, depth) for _ in range(3))
                what = f"launch from Python, {depth} frames deep"
                added.setdefault(f"{what}: added in all", []).append(ns["leadline"] - ns["plain"])
                added.setdefault(f"{what}: callbacks that do nothing", []).append(ns["nothing"] - ns["plain"])
                added.setdefault(f"{what}: Leadline beyond them", []).append(ns["leadline"] - ns["nothing"])
    return added


def native(program: str) -> dict[str, float]:
    """The best of a few runs of `nvidia_bench`, each already the best of its rounds."""
    best: dict[str, float] = {}
    for _ in range(3):
        answer: dict[str, Any] = json.loads(subprocess.check_output([program, "JSON"]))
        best = {name: min(ns, best.get(name, ns)) for name, ns in answer.items()}
    return best


def main(argv: Sequence[str] | None = None) -> int:
    """Run, print and write the results."""
    parser = argparse.ArgumentParser(description="Measure what the NVIDIA provider adds per launch and per record.")
    parser.add_argument("--program", action="append", default=[], metavar="NAME=PATH", help="a built nvidia_bench")
    add_results_option(parser)
    arguments = parser.parse_args(argv)
    facts = machine()
    programs = dict(text.split("=", 1) for text in arguments.program)
    if not programs:
        parser.error("Name at least one build: --program now=build/native/testing/nvidia_bench.")
    figures = {name: native(path) for name, path in programs.items()}
    operations = list(dict.fromkeys(operation for found in figures.values() for operation in found))
    rows = [
        [name, *(f"{found[name]:.0f}" if name in found else "" for found in figures.values())] for name in operations
    ]
    added = from_python()
    spreads = [[name, Spread.of(values).text(0)] for name, values in added.items()]
    table = markdown_table(["native, ns", *figures], rows) + "\n" + markdown_table(["added, ns", "now"], spreads)
    write_results(arguments.results, "gpu_provider", facts, {"native_ns": figures, "python_ns": added}, table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
