"""Thread states of a recording of the whole machine against those that Perfetto's engine derives from the same switches."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from tests.convert.trace_processor import query

from leadline.capture.kernel.recording import Refused
from leadline.capture.kernel.tracefs import TracefsRecorder
from leadline.convert import EXPORTERS, Request, What, write
from leadline.convert.sinks import MemorySink
from leadline.profiles.builder import ProfileBuilder
from leadline.schema import KernelEventKind
from leadline.trace.kernel.attach import with_events
from leadline.trace.kernel.columns import in_order
from leadline.trace.kernel.tracefs import decode
from leadline.trace.kernel.window import states_of
from leadline.trace.states import State

PROGRAM = """
import threading, time
lock = threading.Lock()
def work():
    for turn in range(20):
        with lock:
            time.sleep(0.001)
        end = time.thread_time() + 0.002
        while time.thread_time() < end:
            pass
threads = [threading.Thread(target=work) for _ in range(4)]
for one in threads: one.start()
for one in threads: one.join()
"""


def test_states_are_those_of_perfettos_engine(tmp_path: Path) -> None:
    try:
        recorder = TracefsRecorder("sched")
    except Refused as error:
        pytest.skip(f"this user may not use the kernel's tracer: {error}")
    try:
        for name in ("set_event_pid", "set_event_notrace_pid"):  # of everybody
            (recorder._instance / name).write_text("", encoding="ascii")
        recorder.switch.write_text("1", encoding="ascii")
        with subprocess.Popen([sys.executable, "-c", PROGRAM]) as child:
            assert child.wait(timeout=60) == 0
        recorder.end()
        recording = recorder.save(tmp_path)
    finally:
        recorder.remove()
    raw = {int(path.stem.removeprefix("cpu")): path.read_bytes() for path in tmp_path.glob("cpu*.raw")}
    parts, lost = decode(raw, recording.details["formats"], recording.details["machine"])
    assert lost == 0
    events = in_order(parts)
    begin, end = int(events["time_ns"][0]), int(events["time_ns"][-1])

    builder = ProfileBuilder()
    process = builder.process("train.py", pid=child.pid, start_ns=1)
    thread = builder.thread(process, "main", tid=child.pid)
    node = builder.child(builder.node_of_thread(thread), builder.frame("region", "everything"))
    builder.event("region", node, begin, end - begin, thread=thread)
    profile = builder.profile()
    clock = {"monotonic_ns": 0, "realtime_ns": 10**18}
    profile.meta["processes"] = [{"pid": child.pid, "started_at_ns": 1, "clock": clock}]
    about = {"source": "tracefs", "level": "sched", "from_ns": begin, "until_ns": end, "lost": 0, "sentences": []}
    profile = with_events(profile, events, about)

    sink = MemorySink()
    exporter = next(one for one in EXPORTERS if one.name == "perfetto")
    with sink:
        write(profile, exporter, Request(What.WINDOW), sink)
    (rows, complaints) = query(
        bytes(sink.data), tmp_path,
        "select tid, ts, dur, state from thread_state join thread using (utid) where tid > 0",
        "select name, value from stats where severity in ('error', 'data_loss') and value > 0",
    )  # fmt: skip
    assert complaints == []
    theirs: dict[int, list[tuple[int, int, State]]] = defaultdict(list)
    for row in rows:
        if row["dur"] > 0:
            state = {"Running": State.RUNNING, "R": State.RUNNABLE, "R+": State.RUNNABLE}.get(
                row["state"], State.BLOCKED
            )
            theirs[row["tid"]].append((begin + row["ts"], begin + row["ts"] + row["dur"], state))

    states = states_of(profile, every=True)
    exits = events["kind"] == KernelEventKind.EXIT
    # ours end where they say so, Perfetto's with their last switch: what tearing them down takes lies between
    ended = dict(zip(events["tid"][exits].tolist(), events["time_ns"][exits].tolist(), strict=True))
    forked = events["target"][events["kind"] == KernelEventKind.FORK].tolist()
    program = {child.pid, *forked} & theirs.keys() & ended.keys()
    assert len(program) >= 5, "the main thread and four workers"
    for tid in program:
        low, high = min(start for start, _, _ in theirs[tid]), ended[tid]
        told: Counter[int] = Counter()
        for start, until, state in theirs[tid]:
            told[int(state)] += max(min(until, high) - start, 0)
        mine = states.of(tid)
        ours: Counter[int] = Counter()
        for start, until, number in zip(mine.start_ns.tolist(), mine.end_ns.tolist(), mine.state.tolist(), strict=True):
            ours[number] += max(min(until, high) - max(start, low), 0)
        assert sum(ours.values()) == sum(told.values())
        assert ours[State.RUNNING] == told[State.RUNNING]
        assert ours[State.RUNNABLE] == told[State.RUNNABLE], "sent off while it could run is no sleep"
