"""Drawn traces against the independent reader: spans nested, overlapping, cut and repeated, launches whose numbers come
again, several processes in one file."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.agree import said
from tests.agree.oracle import covered, read

from leadline.schema import EventKind, FrameKind
from leadline.trace.importers import import_traces

Event = dict[str, Any]
NAMES = ("aten::mm", "aten::add", "aten::relu")
RANGES = ("fetch", "Optimizer.step#SGD.step", "enumerate(DataLoader)#_Iter.__next__", "## forward ##")


@st.composite
def traces(draw: st.DrawFn) -> tuple[list[Event], dict[int, int]]:
    """Events and the process of each device. Times are whole microseconds, spans last 5 at least."""
    whole = st.integers(0, 400)
    events: list[Event] = []
    processes = draw(st.integers(1, 3))

    def add(category: str, name: str, ts: int, dur: int, pid: int, tid: int, **args: Any) -> None:
        events.append(
            {"ph": "X", "cat": category, "name": name, "ts": ts, "dur": dur, "pid": pid, "tid": tid, "args": args}
        )

    for process in range(processes):
        pid = 100 + process
        for _ in range(draw(st.integers(1, 6))):  # operators nest, and repeat
            at, outer = draw(whole), draw(st.integers(30, 90))
            for step in range(draw(st.integers(1, 2))):
                begin = at + 500 * step
                if any(one["pid"] == pid and one["cat"] == "cpu_op" and one["ts"] < begin + outer and begin < one["ts"] + one["dur"]
                       for one in events):  # fmt: skip
                    continue
                add("cpu_op", draw(st.sampled_from(NAMES)), begin, outer, pid, pid)
                add("cpu_op", draw(st.sampled_from(NAMES)), begin + 10, outer - 20, pid, pid)
        for _ in range(draw(st.integers(0, 4))):  # ranges begin in a function and overlap as they like
            at = draw(whole)
            add("python_function", "torch/autograd/profiler.py(783): __enter__", at, 6, pid, pid + 50)
            add("user_annotation", draw(st.sampled_from(RANGES)), at + 3, draw(st.integers(5, 300)), pid, pid + 50)
        for _ in range(draw(st.integers(1, 6))):  # numbers come again, some launches were cut off
            at, number = draw(whole), draw(st.integers(1, 3))
            if draw(st.integers(0, 4)):
                add("cuda_runtime", "cudaLaunchKernel", at, 2, pid, pid + 60, correlation=number)
            add("kernel", f"k{number}", at + draw(st.integers(20, 90)), draw(st.integers(5, 60)), process, 7,
                device=process, stream=7, correlation=number)  # fmt: skip
        add("cuda_runtime", "cudaLaunchKernel", 0, 2, pid, pid + 60, correlation=9)
        add("kernel", "first", 20, 5, process, 7, device=process, stream=7, correlation=9)
    return draw(st.permutations(events)), {process: 100 + process for process in range(processes)}


@given(traces())
@settings(max_examples=10, deadline=None, derandomize=True)
def test_a_drawn_trace_says_what_the_second_reader_says(drawn: tuple[list[Event], dict[int, int]]) -> None:
    events, process_of_device = drawn
    with TemporaryDirectory() as folder:
        path = Path(folder, "trace.json")
        path.write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
        profile = import_traces([path])
    truth = read(events, process_of_device=process_of_device)
    assert said.of_events(profile, EventKind.OPERATOR) == truth.operators
    assert said.of_tree(profile, FrameKind.OPERATOR) == truth.operators
    assert said.of_events(profile, EventKind.PHASE) == truth.phases
    assert said.of_tree(profile, FrameKind.REGION) == truth.ranges
    assert said.of_device(profile) == truth.device
    assert {one.index: one.detail["busy_ns"] for one in profile.devices} == truth.busy
    if len(process_of_device) == 1:  # of several programs in one file times and numbers may fit both
        found, lost = said.launched(profile)
        assert (found, lost) == (truth.launched, truth.unlaunched)
    own = sum(said.of_own_time(profile).values())
    assert own == sum(covered(spans) for spans in on_threads(events).values())


def on_threads(events: list[Event]) -> dict[int, list[tuple[int, int]]]:
    found: dict[int, list[tuple[int, int]]] = {}
    for event in events:
        if event["cat"] in ("cpu_op", "user_annotation", "cuda_runtime"):
            found.setdefault(event["tid"], []).append((1000 * event["ts"], 1000 * (event["ts"] + event["dur"])))
    return found
