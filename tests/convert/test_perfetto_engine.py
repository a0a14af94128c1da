"""The timeline as Perfetto's own engine reads it: slices, depths, arrows, counters, thread states, and no complaint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from samples import two_machines, with_allocator
from test_ctf import window
from trace_processor import query

from leadline.profiles.builder import ProfileBuilder

COMPLAINTS = "select name, value from stats where severity in ('error', 'data_loss') and value > 0"
SLICES = "select name, ts, dur, depth from slice order by ts, depth"
COUNTERS = """select t.name as name, c.ts as ts, cast(c.value as int) as value from counter c
    join counter_track t on c.track_id = t.id order by c.ts, t.name"""


def test_slices_and_arrows(exported: Any, tmp_path: Path) -> None:
    complaints, found, arrows = query(
        exported("perfetto", two_machines()), tmp_path, COMPLAINTS, SLICES,
        "select a.name as launch, b.name as work from flow join slice a on slice_out = a.id join slice b on slice_in = b.id",
    )  # fmt: skip
    assert complaints == []
    first = min(row["ts"] for row in found)
    assert sorted((row["name"], row["ts"] - first, row["dur"], row["depth"]) for row in found) == [
        ("aten::add", 30, 10, 0),
        ("aten::linear", 60, 20, 1),
        ("cudaLaunchKernel", 65, 5, 2),
        ("gemm", 90, 40, 0),
        ("other", 50, 100, 0),
        ("outer", 0, 100, 0),
    ]
    assert arrows == [{"launch": "cudaLaunchKernel", "work": "gemm"}]


def test_counters(exported: Any, tmp_path: Path) -> None:
    profile = with_allocator(window([("main", "outer", 0, 900)]))
    complaints, found = query(exported("perfetto", profile), tmp_path, COMPLAINTS, COUNTERS)
    assert complaints == []
    first = min(row["ts"] for row in found)
    assert [(row["name"], row["ts"] - first, row["value"]) for row in found] == [
        ("torch's allocator: blocks in use", 0, 1),
        ("torch's allocator: bytes in use", 0, 5),
        ("torch's allocator: blocks in use", 90, 2),
        ("torch's allocator: bytes in use", 90, -3),
    ]


def test_states_of_threads(exported: Any, tmp_path: Path) -> None:
    """A thread runs, is sent off for another one, sleeps, is woken, and runs again."""
    builder = ProfileBuilder()
    process = builder.process("train.py", pid=100, start_ns=1)
    thread = builder.thread(process, "main", tid=100)
    node = builder.child(builder.node_of_thread(thread), builder.frame("region", "outer"))
    builder.event("region", node, 1_000, 9_000, thread=thread)
    for kind, time, tid, target, value in (
        ("switch", 1_100, 900, 100, 0),  # main comes
        ("switch", 2_000, 100, 900, 0),  # could have gone on
        ("switch", 3_500, 900, 100, 0),
        ("switch", 4_000, 100, 0, 1),  # sleeps
        ("waking", 6_000, 900, 100, 0),
        ("switch", 6_500, 0, 100, 0),
        ("switch", 9_000, 100, 0, 1),
    ):
        name = {100: "main", 900: "hog", 0: "swapper"}[target]
        builder.kernel_event(kind, time, name, tid=tid, target=target, value=value, cpu=0, process=process)
    profile = builder.profile()
    profile.meta["kernel"] = {"source": "tracefs", "level": "sched", "from_ns": 1_000, "until_ns": 10_000}
    profile.meta["processes"] = [{"pid": 100, "started_at_ns": 1, "clock": {"monotonic_ns": 0, "realtime_ns": 10**18}}]
    complaints, states = query(
        exported("perfetto", profile), tmp_path, COMPLAINTS,
        "select state, sum(dur) as dur from thread_state join thread using (utid) where tid = 100 and dur > 0 group by 1",
    )  # fmt: skip
    assert complaints == []
    theirs = {row["state"]: row["dur"] for row in states}
    ours = profile.window.states
    mine = ours["tid"] == 100

    def sum_of(state: str, low: int = 1_100, high: int = 9_000) -> int:
        begin = ours["start_ns"].clip(low, high)
        end = (ours["start_ns"] + ours["duration_ns"]).clip(low, high)
        return int((end - begin)[mine & (ours["state"] == state)].sum())

    assert theirs["Running"] == sum_of("running") == 900 + 500 + 2_500
    assert theirs.get("R", 0) + theirs.get("R+", 0) == sum_of("runnable") == 1_500 + 500
    assert theirs["S"] == sum_of("blocked") == 2_000


def test_who_ran_between_switches_of_ours_is_nobody(exported: Any, tmp_path: Path) -> None:
    """A recording that follows a program sees switches from and to its threads only."""
    builder = ProfileBuilder()
    process = builder.process("train.py", pid=100, start_ns=1)
    thread = builder.thread(process, "main", tid=100)
    node = builder.child(builder.node_of_thread(thread), builder.frame("region", "outer"))
    builder.event("region", node, 1_000, 9_000, thread=thread)
    for time, tid, target, name in (
        (1_100, 900, 100, "main"),
        (2_000, 100, 900, "hog"),
        (8_000, 901, 100, "main"),  # whom 900 gave the CPU nobody saw
        (9_000, 100, 900, "hog"),
    ):
        builder.kernel_event("switch", time, name, tid=tid, target=target, value=0, cpu=0, process=process)
    profile = builder.profile()
    profile.meta["kernel"] = {"source": "tracefs", "level": "sched", "from_ns": 1_000, "until_ns": 10_000}
    profile.meta["processes"] = [{"pid": 100, "started_at_ns": 1, "clock": {"monotonic_ns": 0, "realtime_ns": 10**18}}]
    complaints, ran = query(
        exported("perfetto", profile), tmp_path, COMPLAINTS,
        "select thread.name as name, sum(dur) as dur from sched join thread using (utid) where dur > 0 group by 1",
    )  # fmt: skip
    assert complaints == []
    found = {row["name"]: row["dur"] for row in ran}
    assert found["others (not recorded)"] == 6_000
    assert "hog" not in found
