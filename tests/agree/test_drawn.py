"""Drawn traces against the independent reader: spans nested, overlapping, cut and repeated, launches whose numbers come
again, several processes in one file, spans told by their begins and ends."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.agree import said
from tests.agree.oracle import covered, halves, read, whole

from leadline.schema import EventKind, FrameKind, LossKind
from leadline.trace.importers import import_traces

Event = dict[str, Any]
NAMES = ("aten::mm", "aten::add", "aten::relu")
RANGES = ("fetch", "Optimizer.step#SGD.step", "enumerate(DataLoader)#_Iter.__next__", "## forward ##")


@st.composite
def traces(draw: st.DrawFn) -> tuple[list[Event], dict[int, int]]:
    """Events and the process of each device. Times are whole microseconds, spans last 5 at least, no end sticks out
    of what is around it by 2 or less, and no work begins less than 12 before a launch: that is taken for rounding."""
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
        for _ in range(
            draw(st.integers(0, 4))
        ):  # ranges begin in a function and overlap as they like; functions do not
            at = 7 * draw(st.integers(0, 60))
            if any(one["pid"] == pid and one["cat"] == "python_function" and one["ts"] == at for one in events):
                continue
            add("python_function", "torch/autograd/profiler.py(783): __enter__", at, 6, pid, pid + 50)
            add(
                "user_annotation",
                draw(st.sampled_from(RANGES)),
                at + 3,
                7 * draw(st.integers(0, 42)) + 6,
                pid,
                pid + 50,
            )
        for _ in range(draw(st.integers(1, 6))):  # numbers come again, some launches were cut off
            at, number = 12 * draw(st.integers(1, 33)), draw(st.integers(1, 3))  # a thread is in one call at a time
            if draw(st.integers(0, 4)):
                add("cuda_runtime", "cudaLaunchKernel", at, 2, pid, pid + 60, correlation=number)
            add("kernel", f"k{number}", at + 12 * draw(st.integers(2, 8)), draw(st.integers(5, 60)), process, 7,
                device=process, stream=7, correlation=number)  # fmt: skip
        add("cuda_runtime", "cudaLaunchKernel", 0, 2, pid, pid + 60, correlation=9)
        add("kernel", "first", 20, 5, process, 7, device=process, stream=7, correlation=9)
    return in_halves(draw, events), {process: 100 + process for process in range(processes)}


def in_halves(draw: st.DrawFn, events: list[Event]) -> list[Event]:
    """The events in any order, some told by their begin and their end; of a few of these one half was cut off."""
    told: list[Event] = []
    for event in draw(st.permutations(events)):
        halved = draw(st.sampled_from([False, False, True]))
        if not halved or event["args"].get("correlation") == 9:  # these tell whose a device is
            told.append(event)
            continue
        begin = {**event, "ph": "B"}
        end = {"ph": "E", "pid": event["pid"], "tid": event["tid"], "ts": event["ts"] + begin.pop("dur")}
        cut = draw(st.sampled_from([0, 0, 0, 0, 1, 2]))
        told += [begin, end] if not cut else [(begin, end)[cut - 1]]
    return told


@given(traces())
@settings(max_examples=40, deadline=None, derandomize=True)
def test_a_drawn_trace_says_what_the_second_reader_says(drawn: tuple[list[Event], dict[int, int]]) -> None:
    events, process_of_device = drawn
    with TemporaryDirectory() as folder:
        path = Path(folder, "trace.json")
        path.write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
        profile = import_traces([path])
    truth = read(events, process_of_device=process_of_device)
    dropped = sum(loss.count for loss in profile.losses if loss.kind == LossKind.TRACE_EVENTS_UNREAD)
    assert dropped == halves(events)
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
    for event in whole(events):
        if event["cat"] in ("cpu_op", "user_annotation", "cuda_runtime"):
            found.setdefault(event["tid"], []).append((1000 * event["ts"], 1000 * (event["ts"] + event["dur"])))
    return found
