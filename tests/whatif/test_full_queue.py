"""A queue in which a launch takes more room than others: what the CPU waits for it is no work of the CPU."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from leadline.whatif.kinds import EdgeType, TaskKind
from leadline.whatif.load import load
from leadline.whatif.predict import replay
from leadline.whatif.simulator import simulate
from leadline.whatif.steady import Steady

ROOM, CALL_US, KERNEL_US = 100, 8.0, 50.0
STEPS, LAUNCHES = 3, 400
PAUSES_US = (2.0, 60.0)
"""Between two launches, in the first and the second half of a step."""


def trace(path: Path) -> Path:
    """Launches of 8 us for kernels of 50; one a step takes nine places of a hundred in the queue. In the first half of a
    step the CPU runs ahead until the queue is full, in the second half the device catches up."""
    events: list[dict[str, Any]] = []
    now, free_at = 1000.0, 0.0
    held: list[tuple[float, int]] = []  # (end of the kernel, places)
    number = 0
    for step in range(STEPS):
        begin = now
        for launch in range(LAUNCHES):
            number += 1
            places = 9 if number % LAUNCHES == 40 else 1
            call = now
            held = [item for item in held if item[0] > now]
            while sum(size for _, size in held) + places > ROOM:
                now, _ = held.pop(0)
            ready = now + CALL_US
            kernel = max(free_at, now + 5.0)
            free_at = kernel + KERNEL_US
            held.append((free_at, places))
            events += [
                event("cuda_runtime", "cudaLaunchKernel", 1, call, ready - call, correlation=number),
                event("kernel", "kernel", 7, kernel, KERNEL_US, correlation=number, stream=7, device=0),
            ]
            now = ready + PAUSES_US[2 * launch // LAUNCHES]
        events.append(event("user_annotation", f"ProfilerStep#{step}", 1, begin, now - begin))
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}), encoding="utf-8")
    return path


def event(category: str, name: str, thread: int, begin: float, length: float, **args: Any) -> dict[str, Any]:
    process = 0 if category == "kernel" else 10
    return {
        "ph": "X", "cat": category, "name": name, "pid": process, "tid": thread, "ts": begin, "dur": length, "args": args,
    }  # fmt: skip


def test_no_wait_counts_as_work_of_the_cpu(tmp_path: Path) -> None:
    graph = load(trace(tmp_path / "trace.json"))
    assert abs(replay(graph).replay_error) < 1e-6
    assert (graph.edges["type"] == EdgeType.ROOM).any()
    calls = graph.select(name="cudaLaunchKernel")
    spent = float(graph.column("duration_ns")[calls.ids].mean())
    assert spent == pytest.approx(CALL_US * 1e3, rel=0.05)
    fast = graph.copy()
    fast.scale(fast.select(kind=TaskKind.GPU), 0.001)
    step_ns = Steady.of(graph, simulate(graph)).step_ns(fast, simulate(fast))
    assert step_ns == pytest.approx(LAUNCHES * (CALL_US + sum(PAUSES_US) / 2) * 1e3, rel=0.05)
