"""One measured program: python bench/worker.py WORKLOAD MODE STEPS DIRECTORY; prints one JSON object as its last line.

Modes: `none`, `leadline`, `torch` (torch.profiler, CPU), `torch_stack` (the same with Python stacks).
Times are wall clock in seconds; `step_s` is the median step,
`step_cpu_s` the median CPU time of its thread. Sizes are bytes; `peak_rss` is the process's VmHWM.
`stop_s` is the time from the last step until the program could go on; `write_s` what it took then to have a file.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import workloads

WARMUP = 5  # steps before measuring: allocator, thread pools and optimizer state are in place


@dataclass
class Measured:
    workload: str
    mode: str
    steps: int
    step_s: float = 0.0
    step_cpu_s: float = 0.0
    loop_s: float = 0.0
    start_s: float = 0.0
    stop_s: float = 0.0
    write_s: float = 0.0
    file_bytes: int = 0
    peak_rss: int = 0
    rss_at_100: int = 0
    rss_at_end: int = 0


def memory(field: str) -> int:
    """VmRSS or VmHWM of this process in bytes."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/self/status has no {field}")


def profiler(mode: str, file: Path) -> AbstractContextManager[Any]:
    """The profiler of a mode; entering starts it and leaving stops it."""
    if mode == "none":
        return nullcontext()
    if mode == "leadline":
        import leadline

        made: AbstractContextManager[Any] = leadline.profile(str(file), quiet=True)
        return made
    import torch.profiler

    activities = [torch.profiler.ProfilerActivity.CPU]
    return torch.profiler.profile(activities=activities, with_stack=mode == "torch_stack")


def measure(step: Callable[[], None], mode: str, steps: int, result: Measured, file: Path) -> None:
    clock = time.perf_counter
    times = [0.0] * steps
    cpu_times = [0.0] * steps
    made = profiler(mode, file)
    begin = clock()
    active = made.__enter__()
    result.start_s = clock() - begin
    loop = clock()
    for number in range(steps):
        last, cpu_last = clock(), time.thread_time()
        step()
        cpu_times[number], times[number] = time.thread_time() - cpu_last, clock() - last
        if number == 99:
            result.rss_at_100 = memory("VmRSS")
    result.loop_s = clock() - loop
    result.rss_at_end = memory("VmRSS")
    begin = clock()
    made.__exit__(None, None, None)
    result.stop_s = clock() - begin
    if mode.startswith("torch"):
        begin = clock()
        active.export_chrome_trace(str(file))
        result.write_s = clock() - begin
    result.step_s = statistics.median(times)
    result.step_cpu_s = statistics.median(cpu_times)
    result.file_bytes = file.stat().st_size if file.exists() else 0
    result.peak_rss = memory("VmHWM")


def main(argv: list[str]) -> None:
    workload, mode, steps, directory = argv[0], argv[1], int(argv[2]), Path(argv[3])
    result = Measured(workload, mode, steps)
    step = workloads.load(workload)
    for _ in range(WARMUP):
        step()
    suffix = "leadline" if mode == "leadline" else "json"
    measure(step, mode, steps, result, directory / f"{workload}-{mode}-{steps}.{suffix}")
    print(json.dumps(asdict(result)))


if __name__ == "__main__":
    main(sys.argv[1:])
