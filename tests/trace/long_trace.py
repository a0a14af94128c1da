"""Writes a Kineto trace of any size, in the long form of torch 2, step after step; run as a program it loads one step
and prints its peak memory."""

from __future__ import annotations

import gzip
import json
import re
import sys
from pathlib import Path
from typing import IO

STEP_US = 50_000


def write(path: Path, *, steps: int, operators: int, marks: bool = True, pad: int = 200) -> None:
    """`operators` operators per step, each with a launch and a kernel; `pad` characters of arguments each."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "wt") as stream:
        stream.write('{"schemaVersion": 1, "deviceProperties": [], "traceEvents": [\n')
        first = True
        for step in range(steps):
            first = _step(stream, step, operators, marks, "x" * pad, first)
        stream.write('\n], "traceName": "long.json", "displayTimeUnit": "ms"}\n')


def _step(stream: IO[str], step: int, operators: int, marks: bool, pad: str, first: bool) -> bool:
    base = 1_700_000_000_000_000 + step * STEP_US
    events = []
    if marks:
        mark = {"cat": "user_annotation", "name": f"ProfilerStep#{step}", "ts": base, "dur": STEP_US - 10, "args": {}}
        events.append({"ph": "X", "pid": 1, "tid": 1, **mark})
    pitch = (STEP_US - 100) / operators
    for number in range(operators):
        at = base + 20 + number * pitch
        correlation = step * operators + number + 1
        arguments = {"External id": correlation, "Input Dims": [[64, 64], [64]], "Input type": ["float"], "Call": pad}
        name = f"aten::op{number % 7}"
        events.append({"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": at, "dur": pitch / 2,
                       "args": arguments})  # fmt: skip
        events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1,
                       "ts": at + pitch / 10, "dur": pitch / 10, "args": {"correlation": correlation}})  # fmt: skip
        kernel = {"device": 0, "stream": 7, "correlation": correlation, "grid": [1, 1, 1], "block": [32, 1, 1]}
        events.append({"ph": "X", "cat": "kernel", "name": f"void kernel{number % 5}<float>()", "pid": 0, "tid": 7,
                       "ts": at + pitch / 5, "dur": pitch / 4, "args": kernel})  # fmt: skip
    for event in events:
        stream.write(("" if first else ",\n") + json.dumps(event, indent=2))
        first = False
    return first


def peak_kib() -> int:
    """Peak resident memory of this program alone; `getrusage` would count what its parent had when it started it."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"))
    assert found is not None
    return int(found[1])


def main(path: str, step: str, large_bytes: str) -> None:
    """Load one step and print: tasks, peak resident memory before and after in KiB."""
    from leadline.trace import window
    from leadline.trace.source import sources

    before = peak_kib()
    chosen = None if step == "all" else (int(step), int(step))
    trace, steps = window.read_window(sources(path)[0], chosen, large_bytes=int(large_bytes))
    after = peak_kib()
    print(json.dumps({"events": len(trace), "steps": [item.number for item in steps.steps], "before": before,
                      "after": after, "warnings": trace.warnings}))  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:])
