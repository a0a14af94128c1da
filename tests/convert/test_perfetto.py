"""The trace window as a Perfetto timeline, read back with Perfetto's own message definitions."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest

from leadline.convert.request import NothingThereError
from leadline.profiles import Profile
from leadline.profiles.build import build

messages = pytest.importorskip(
    "perfetto.protos.perfetto.trace.perfetto_trace_pb2", reason="reading a Perfetto trace needs the package perfetto"
)

TREE = """
process train.py | pid=5 rank=0 start_ns=100
  thread main | tid=50
    phase step #step
    region outer #outer
    region other #other
    python main @ train.py:3
      operator aten::linear #linear
        api cudaLaunchKernel #launch
          kernel gemm #gemm
process train.py | pid=5 rank=1 start_ns=200
  thread main | tid=50
    operator aten::add #add
"""
EVENTS = """
start_ns duration_ns kind     node   thread device stream correlation step
1000     100         region   outer  0      -1     -1     0           0
1050     100         region   other  0      -1     -1     0           0
1060     20          operator linear 0      -1     -1     0           0
1065     5           api      launch 0      0      7      11          0
1090     40          kernel   gemm   -1     0      7      11          0
7000     10          operator add    1      -1     -1     0           0
"""


def two_machines() -> Profile:
    """Equal pids; the second machine's clock was 7,000 when the first's was 1,030."""
    profile = build(TREE, events=EVENTS)
    profile.meta["processes"] = [
        {"pid": 5, "started_at_ns": 90, "hostname": "a", "clock": {"monotonic_ns": 0, "realtime_ns": 50_000}},
        {"pid": 5, "started_at_ns": 190, "hostname": "b", "clock": {"monotonic_ns": 0, "realtime_ns": 44_030}},
    ]
    return profile


def slices(data: bytes) -> tuple[dict[str, list[tuple[Any, ...]]], list[str]]:
    """Of every track `PROCESS / TRACK`: (name, begin, end, where in the program); and the names joined by arrows."""
    names, notes, texts, tracks, processes, open_slices = {}, {}, {}, {}, {}, defaultdict(list)
    found, flows = defaultdict(list), defaultdict(list)
    for packet in messages.Trace.FromString(data).packet:
        for entry in packet.interned_data.event_names:
            names[entry.iid] = entry.name
        notes.update({entry.iid: entry.name for entry in packet.interned_data.debug_annotation_names})
        texts.update({entry.iid: entry.str.decode() for entry in packet.interned_data.debug_annotation_string_values})
        if packet.HasField("track_descriptor"):
            one = packet.track_descriptor
            if one.HasField("process"):
                processes[one.process.pid] = one.process.process_name
            else:
                tracks[one.uuid] = f"{processes[one.thread.pid]} / {one.name}"
        if packet.HasField("track_event"):
            event = packet.track_event
            if event.type == messages.TrackEvent.TYPE_SLICE_BEGIN:
                name = names[event.name_iid]
                shown = {notes[note.name_iid]: texts.get(note.string_value_iid, "") for note in event.debug_annotations}
                open_slices[event.track_uuid].append((name, packet.timestamp, shown.get("at", "")))
                for flow in (*event.flow_ids, *event.terminating_flow_ids):
                    flows[flow].append(name)
            else:
                name, begin, where = open_slices[event.track_uuid].pop()
                found[tracks[event.track_uuid]].append((name, begin, packet.timestamp, where))
    assert not any(open_slices.values()), "every slice is closed"
    return {track: sorted(listed, key=lambda one: one[1]) for track, listed in found.items()}, sorted(flows.values())


def test_threads_streams_lines_and_arrows_of_two_machines(exported: Any) -> None:
    found, arrows = slices(exported("perfetto", two_machines()))
    assert found == {
        "rank 0 train.py (5) / main": [
            ("outer", 0, 100, ""),
            ("aten::linear", 60, 80, "train.py:3"),
            ("cudaLaunchKernel", 65, 70, "train.py:3"),
        ],
        "rank 0 train.py (5) / main (overlapping 1)": [("other", 50, 150, "")],
        "rank 0 train.py (5) / GPU 0 stream 7": [("gemm", 90, 130, "train.py:3")],
        "rank 1 train.py (5) / main": [("aten::add", 30, 40, "")],
    }
    assert arrows == [["cudaLaunchKernel", "gemm"]]


def test_a_profile_without_a_window_says_how_to_record_one(exported: Any) -> None:
    with pytest.raises(NothingThereError, match="--trace steps=3"):
        exported("perfetto", build(TREE))
    with pytest.raises(NothingThereError, match="leave --metric out"):
        exported("perfetto", two_machines(), "cpu_time")
