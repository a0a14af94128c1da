"""The trace window as a Perfetto timeline, read back with Perfetto's own message definitions."""

from __future__ import annotations

import io
import json
import zipfile
from collections import defaultdict
from typing import Any

import pytest
from samples import TRACKS_OF_TWO_MACHINES, TREE, two_machines

from leadline.convert.request import NothingThereError
from leadline.profiles.build import build

messages = pytest.importorskip(
    "perfetto.protos.perfetto.trace.perfetto_trace_pb2", reason="reading a Perfetto trace needs the package perfetto"
)


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
    assert found == TRACKS_OF_TWO_MACHINES
    assert arrows == [["cudaLaunchKernel", "gemm"]]


def test_a_profile_without_a_window_says_how_to_record_one(exported: Any) -> None:
    with pytest.raises(NothingThereError, match="--trace steps=3"):
        exported("perfetto", build(TREE))
    with pytest.raises(NothingThereError, match="leave --metric out"):
        exported("perfetto", two_machines(), "cpu_time")


def test_the_archive_has_a_trace_for_each_machine_and_says_how_they_relate(exported: Any) -> None:
    archive = zipfile.ZipFile(io.BytesIO(exported("perfetto-archive", two_machines())))
    assert archive.testzip() is None
    told = json.loads(archive.read("perfetto_manifest.json"))["perfetto_manifest"]
    assert told["version"] == 1
    paths = [one["path"] for one in told["files"]]
    assert sorted([*paths, "perfetto_manifest.json"]) == sorted(archive.namelist())
    assert len({one["machine"]["name"] for one in told["files"]}) == len(paths) == 2
    assert "clocks" not in told["files"][0] and told["trace_time"]["file"] == paths[0]
    assert told["files"][1]["clocks"] == {
        "clock": "BOOTTIME", "sync_to": {"file": paths[0], "clock": "BOOTTIME"}, "offset_ns": 0,
    }  # fmt: skip
    whole, _ = slices(exported("perfetto", two_machines()))
    parts = [slices(archive.read(path))[0] for path in paths]
    assert parts[0] | parts[1] == whole, "on one time line, as in one file"
    assert not set(parts[0]) & set(parts[1])
