"""The programs of gpu_programs.py for a rehearsal: the same shapes of work, launched on the fake GPU without torch.

    python -m fake_programs PROGRAM TOOL OUTPUT     TOOL: none, leadline, torch

What torch.profiler would have written is written from what was launched. Programs that need what the fakes lack say so.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpu_run import FAKES_VARIABLE

os.environ["FAKES"] = os.environ[FAKES_VARIABLE]

from tests.nvidia import fake_gpu

Facts = dict[str, Any]

_IN_FLIGHT_NS = 2_000_000


@dataclass
class Tool:
    """What measures, the file it writes, and what was launched meanwhile."""

    name: str
    output: str
    launched: list[tuple[str, int]] = field(default_factory=list)

    @contextlib.contextmanager
    def measuring(self, **options: Any) -> Iterator[None]:
        """The body under Leadline, under the stand-in for torch.profiler, or under nothing."""
        self.launched.clear()
        if self.name == "leadline":
            import leadline

            with leadline.profile(self.output, quiet=True, **options):
                yield
                if self.launched:
                    synchronize()
        else:
            yield
        if self.name == "torch":
            events = [{"cat": "kernel", "name": name, "dur": ns / 1000} for name, ns in self.launched]
            Path(self.output).write_text(json.dumps({"traceEvents": events}))

    def launch(self, name: str, duration_ns: int, stream: ctypes.c_void_p | None = None) -> None:
        fake_gpu.launch(name.encode(), duration_ns, stream)
        self.launched.append((name, duration_ns))


def synchronize() -> None:
    assert fake_gpu.runtime().cudaDeviceSynchronize() == 0


def step(tool: Tool) -> None:
    """Forward and backward, as phases."""
    import leadline

    with leadline.region("backward"):
        tool.launch("gemm", 50_000)
    tool.launch("relu", 10_000)


def train(tool: Tool, steps: int = 40) -> Facts:
    with tool.measuring():
        for _ in range(steps):
            step(tool)
        synchronize()
    return {}


def short_train(tool: Tool) -> Facts:
    return train(tool, 3)


def window(tool: Tool) -> Facts:
    import leadline

    with tool.measuring(trace="steps=3"):
        for number in range(6):
            leadline.step(number)
            step(tool)
            synchronize()
    return {}


def captured_graph(tool: Tool) -> ctypes.c_void_p:
    runtime, stream = fake_gpu.runtime(), fake_gpu.new_stream()
    captured, made = ctypes.c_void_p(), ctypes.c_void_p()

    def first_layer() -> None:
        tool.launch("gemm", 50_000, stream)

    def second_layer() -> None:
        tool.launch("relu", 10_000, stream)

    assert runtime.cudaStreamBeginCapture(stream, 0) == 0
    first_layer()
    second_layer()
    assert runtime.cudaStreamEndCapture(stream, ctypes.byref(captured)) == 0
    assert runtime.cudaGraphInstantiate(ctypes.byref(made), captured, ctypes.c_ulonglong(0)) == 0
    return made


def replay(made: ctypes.c_void_p, times: int = 10) -> None:
    for _ in range(times):
        assert fake_gpu.runtime().cudaGraphLaunch(made, None) == 0
    synchronize()


def graph(tool: Tool) -> Facts:
    with tool.measuring():
        replay(captured_graph(tool))
    return {}


def late_graph(tool: Tool) -> Facts:
    made = captured_graph(tool)
    with tool.measuring():
        replay(made)
    return {}


def nvtx(tool: Tool) -> Facts:
    with tool.measuring():
        try:
            import nvtx as ranges
        except ImportError:
            return {"why": "The rehearsal of NVTX needs the package nvtx."}
        for _ in range(5):
            with ranges.annotate("outer"), ranges.annotate("inner"):
                tool.launch("relu", 10_000)
        started = ranges.start_range("started")
        tool.launch("relu", 10_000)
        ranges.end_range(started)
    return {}


def streams(tool: Tool) -> Facts:
    with tool.measuring():
        for stream in (None, *(fake_gpu.new_stream() for _ in range(4))):
            for _ in range(10):
                tool.launch("gemm", 500_000, stream)
        synchronize()
    return {}


def coexistence(tool: Tool) -> Facts:
    """The other tool is told of and gone again, as torch.profiler would be."""
    from leadline import _native

    with tool.measuring():
        for _ in range(10):
            tool.launch("gemm", 50_000)
        synchronize()
        _native.nvidia_yield("torch.profiler")
        for _ in range(10):
            tool.launch("gemm", 50_000)
        synchronize()
        _native.nvidia_take_back()
        for _ in range(10):
            tool.launch("gemm", 50_000)
    return {"other_saw": 10}


def teardown(tool: Tool) -> Facts:
    import leadline

    def timed() -> float:
        begin = time.perf_counter()
        for _ in range(1000):
            tool.launch("gemm", 1)
        return (time.perf_counter() - begin) / 1000

    before = timed()
    stops = []
    for _ in range(3):
        leadline.start(tool.output, quiet=True)
        for _ in range(20):
            tool.launch("gemm", _IN_FLIGHT_NS)
        begin = time.perf_counter()
        leadline.stop()
        stops.append(time.perf_counter() - begin)
    return {"stop_s": stops, "before_s": before, "after_s": timed()}


def forked(tool: Tool) -> Facts:
    with tool.measuring():
        for _ in range(10):
            tool.launch("gemm", 50_000)
        child = os.fork()
        if child == 0:
            sys.exit(0)
        _, child_status = os.waitpid(child, 0)
        for _ in range(10):
            tool.launch("gemm", 50_000)
    return {"child_status": child_status, "child_tried": False}


def hidden(tool: Tool) -> Facts:
    """No device: the driver is there and shows none."""
    with tool.measuring():
        pass
    return {"available": False}


def launcher(tool: Tool) -> Facts:
    subprocess.run([sys.executable, "-m", "fake_programs", "nvtx", "none", "unused"], check=True)
    return {}


def lacking(tool: Tool) -> Facts:
    return {"why": "The fakes have no compiler and no NCCL; `make test-triton` and tests/nvidia rehearse these."}


def workload(name: str) -> Callable[[], Any]:
    """One step of a workload of the cost table: so many launches, of so long."""
    fake_gpu.load()
    tool = Tool("none", "")
    launches, duration_ns = {"decode": (100, 1_000)}.get(name, (10, 100_000))

    def step() -> None:
        for _ in range(launches):
            tool.launch("gemm", duration_ns)
        tool.launched.clear()

    return step


def timed(step: Callable[[], Any], steps: int) -> float:
    """Seconds per step."""
    synchronize()
    begin = time.perf_counter()
    for _ in range(steps):
        step()
    synchronize()
    return (time.perf_counter() - begin) / steps


PROGRAMS: dict[str, Callable[[Tool], Facts]] = {
    "train": train, "short-train": short_train, "window": window, "graph": graph, "late-graph": late_graph,
    "nvtx": nvtx, "streams": streams, "compiled": lacking, "triton": lacking, "collective": lacking,
    "coexistence": coexistence, "teardown": teardown, "forked": forked, "hidden": hidden, "launcher": launcher,
}  # fmt: skip
_WITHOUT_CUDA = ("hidden", "launcher")


def main() -> None:
    program, tool, output = sys.argv[1:4]
    if program not in _WITHOUT_CUDA:
        fake_gpu.load()
    print(json.dumps(PROGRAMS[program](Tool(tool, output))))


if __name__ == "__main__":
    main()
