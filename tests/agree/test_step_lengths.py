"""Drawn traces whose steps are of known length: every verb says that length, whatever else is in the trace."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from leadline.cli.main import main

STEP_US, STEPS = 1000.0, 6
LAST_US = 10.0
"""Between two marks, which belongs to the step before."""


def span(category: str, name: str, ts: float, dur: float, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": category, "name": name, "pid": 9, "tid": 9, "ts": ts, "dur": dur, "args": args}


def kernel(name: str, ts: float, dur: float, number: int, stream: int = 7) -> dict[str, Any]:
    made = span("kernel", name, ts, dur, device=0, stream=stream, correlation=number)
    return {**made, "pid": 0, "tid": stream}


def loop(step_us: float = STEP_US, counted: bool = True) -> list[dict[str, Any]]:
    """Steps that end with Python: the last operator ends in the middle of each."""
    events = []
    for step in range(STEPS):
        at = 500.0 + step * step_us
        events += [
            span("user_annotation", f"ProfilerStep#{step if counted else 0}", at, step_us - LAST_US),
            span("cpu_op", "aten::mm", at + 100, 300),
            span("cuda_runtime", "cudaLaunchKernel", at + 150, 20, correlation=step + 1),
            kernel("gemm", at + 180, 150, step + 1),
        ]
    return events


TRACES = {
    "Python behind the last operator": loop(),
    "hours": loop(step_us=1.6e9),
    "a kernel of the first step that waits until the end": [
        *loop(),
        span("cuda_runtime", "cudaLaunchKernel", 700, 5, correlation=99),
        kernel("waits", 710, 5_600, 99, stream=20),
    ],
    "numbers that begin anew": loop(counted=False),
}


def told(path: Path, verb: str, *more: str) -> Any:
    with redirect_stdout(io.StringIO()) as out:
        assert main([verb, str(path), *more]) in (0, 1)
    return json.loads(out.getvalue())


@pytest.mark.parametrize("name", TRACES)
def test_every_verb_says_how_long_a_step_is(name: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": TRACES[name]}))
    marks = [one for one in TRACES[name] if one["name"].startswith("ProfilerStep")]
    whole = marks[-1]["ts"] + marks[-1]["dur"] - marks[0]["ts"]
    expected = pytest.approx(whole * 1000 / STEPS, rel=1e-6)
    report, analyzed = told(path, "report", "--format", "json"), told(path, "analyze", "--format", "json")
    assert not report["losses"]
    assert (report["steps"]["number"], report["steps"]["mean_ns"]) == (STEPS, expected)
    assert (analyzed["steps"], analyzed["step_ns"]) == (STEPS, expected)
    account = report["verdict"]["account"]
    assert (account["of"], account["steps"], account["wall_ns"]) == ("step", STEPS, expected)
    summary = told(path, "summary", "--json")["steps"]
    assert (summary["measured"], summary["mean_ns"]) == (STEPS, expected)
    if "waits" not in {one["name"] for one in TRACES[name]}:  # a replay ends when all has ended
        assert told(path, "whatif", "--format", "json")["measured_ns"] == expected
