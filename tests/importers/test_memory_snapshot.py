"""Torch's memory snapshots as profiles: against a ledger kept beside, and against torch's own reader."""

from __future__ import annotations

import io
import os
import pickle
import random
from pathlib import Path

import pytest

import leadline
from leadline.profiles import ProfileFileError

MIB = 1 << 20
LIBRARY = "/opt/python/site-packages/torch"
STACKS = [
    [("forward", "/home/ada/net.py", 12), ("_call_impl", f"{LIBRARY}/nn/modules/module.py", 1786),
     ("step", "/home/ada/train.py", 30)],
    [("_engine_run_backward", f"{LIBRARY}/autograd/graph.py", 823), ("backward", f"{LIBRARY}/_tensor.py", 600),
     ("step", "/home/ada/train.py", 31)],
    [("_init_group", f"{LIBRARY}/optim/adamw.py", 146), ("step", f"{LIBRARY}/optim/adamw.py", 220),
     ("step", "/home/ada/train.py", 32)],
]  # fmt: skip


def frames(stack):
    return [{"name": name, "filename": file, "line": line} for name, file, line in stack]


def snapshot(seed: int, count: int = 400, lost: int = 0, places: int = 0):
    """A random history (`places`: of so many addresses, each used again), its ledger: (pickled object, bytes alive at the most, of them by line of the user's)."""
    draw = random.Random(seed)
    shared = [frames(stack) for stack in STACKS]
    history, alive, peak, at_peak, live = [], {}, 0, {}, 0
    for moment in range(count):
        if alive and draw.random() < 0.45:
            address = draw.choice(sorted(alive))
            size, which = alive.pop(address)
            for action in ("free_requested", "free_completed"):
                history.append((action, address, size, which, moment))
            live -= size
        else:
            address = (moment + 1) * 64 * MIB
            if places:
                free = [place for place in range(1, places + 1) if place * 64 * MIB not in alive]
                address = draw.choice(free) * 64 * MIB if free else address
            size, which = draw.randint(1, 32 * MIB), draw.randrange(3)
            alive[address] = (size, which)
            history.append(("alloc", address, size, which, moment))
            live += size
        if live > peak and moment >= lost:
            peak = live
            at_peak = {which: sum(size for size, of in alive.values() if of == which) for which in range(3)}
    trace = [
        {"action": action, "addr": address, "size": size, "stream": 0, "time_us": 5_000_000 + 10 * moment,
         "frames": shared[which]}
        for action, address, size, which, moment in history
        if moment >= lost
    ]  # fmt: skip
    segments = [
        {"device": 0, "address": address, "total_size": 64 * MIB, "allocated_size": size, "active_size": size,
         "requested_size": size, "stream": 0, "segment_type": "large", "segment_pool_id": (0, 0),
         "blocks": [
             {"address": address, "size": size, "requested_size": size, "state": "active_allocated",
              "frames": shared[which]},
             {"address": address + size, "size": 64 * MIB - size, "requested_size": 0, "state": "inactive",
              "frames": []}]}
        for address, (size, which) in alive.items()
    ]  # fmt: skip
    return {"segments": segments, "device_traces": [trace]}, peak, at_peak


def opened(tmp_path: Path, content: object):
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps(content))
    return leadline.open(path)


def by_phase(profile, metric):
    rows = {}
    for node in profile.tree.walk():
        if node.kind == "phase":
            rows[node.name] = node.inclusive(metric).sum
    return rows


@pytest.mark.parametrize("seed", range(6))
def test_the_peak_and_who_held_it(tmp_path, seed):
    content, peak, at_peak = snapshot(seed)
    profile = opened(tmp_path, content)
    assert profile.tree.root.inclusive("peak_live_bytes").sum == peak
    wanted = dict(zip(("forward", "backward", "optimizer"), (at_peak[which] for which in range(3)), strict=True))
    assert by_phase(profile, "peak_live_bytes") == wanted


@pytest.mark.parametrize("seed", range(4))
def test_an_address_that_is_used_again_holds_what_is_there_now(tmp_path, seed):
    content, peak, at_peak = snapshot(seed, places=12)
    profile = opened(tmp_path, content)
    assert profile.tree.root.inclusive("peak_live_bytes").sum == peak
    wanted = dict(zip(("forward", "backward", "optimizer"), (at_peak[which] for which in range(3)), strict=True))
    assert by_phase(profile, "peak_live_bytes") == {name: size for name, size in wanted.items() if size} or wanted
    allocated = sum(one["size"] for one in content["device_traces"][0] if one["action"] == "alloc")
    freed = sum(one["size"] for one in content["device_traces"][0] if one["action"] == "free_completed")
    assert profile.tree.root.inclusive("alloc_bytes").sum == allocated
    assert profile.tree.root.inclusive("free_bytes").sum == freed


@pytest.mark.parametrize("seed", range(3))
def test_the_window_ends_with_what_torchs_reader_says_is_allocated(tmp_path, seed):
    viz = pytest.importorskip("torch.cuda._memory_viz")
    content, *_ = snapshot(seed, lost=150)
    profile = opened(tmp_path, content)
    lines = viz.memory(content, format_flamegraph=lambda text: text).splitlines()
    allocated = sum(int(line.rsplit(" ", 1)[1]) for line in lines if ";active_allocated;" in line)
    assert allocated > 0
    assert int(profile.tables["events"]["bytes"].sum()) == allocated


def test_a_history_that_lost_its_beginning_has_the_peak_of_what_is_left(tmp_path):
    content, peak, _ = snapshot(3, lost=150)
    profile = opened(tmp_path, content)
    assert profile.tree.root.inclusive("peak_live_bytes").sum == peak
    assert any("before the snapshot's history" in node.name for node in profile.tree.walk())


def test_blocks_without_a_history_are_what_is_alive(tmp_path):
    content, *_ = snapshot(1)
    blocks = sum(block["requested_size"] for one in content["segments"] for block in one["blocks"])
    profile = opened(tmp_path, {"segments": content["segments"], "device_traces": []})
    assert profile.tree.root.inclusive("peak_live_bytes").sum == blocks


class Evil:
    def __reduce__(self):
        return (os.system, ("true",))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (pickle.dumps({"segments": [Evil()]}), "posix.system, which no snapshot does"),
        (pickle.dumps({"segments": [{}]}), "damaged or cut off"),
        (pickle.dumps({"segments": [], "device_traces": []}), "holds no allocation"),
        (pickle.dumps(snapshot(1)[0])[:3000], "damaged or cut off"),
        (pickle.dumps({"segments": [{"blocks": [{"size": "x", "state": "inactive"}]}]}), "damaged or cut off"),
    ],
)
def test_bad_snapshots_are_a_sentence(tmp_path, content, words):
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(content)
    with pytest.raises(ProfileFileError, match=words):
        leadline.open(path)


def test_the_text_report_names_the_line(tmp_path):
    from leadline.report import ReportOptions, build_report
    from leadline.report.text import render_text

    content, *_ = snapshot(0)
    text = render_text(build_report(opened(tmp_path, content), ReportOptions(top=5, verdict=True), "snapshot.pickle"))
    assert "net.py:12" in text
    assert "Peak" in text or "peak" in text
    assert io.StringIO(text).readline()


def test_what_is_reserved_by_pool_is_what_the_segments_say(tmp_path):
    """Against sums over the segments, made here; memory that is free in pieces is no use to a large tensor."""
    from leadline.report import ReportOptions, build_report
    from leadline.report.json_report import report_object
    from leadline.report.text import render_text

    content, *_ = snapshot(2)
    segments = content["segments"]
    for number, segment in enumerate(segments):
        segment["segment_type"] = ("small", "large")[number % 2]
        segment["segment_pool_id"] = (0, number % 3)
    report = build_report(opened(tmp_path, content), ReportOptions(verdict=True), "snapshot.pickle")
    (allocator,) = report_object(report)["memory"]["allocators"]
    whole, *pools = allocator["pools"]
    free = [block["size"] for one in segments for block in one["blocks"] if block["state"] == "inactive"]
    assert whole["reserved_bytes"] == sum(one["total_size"] for one in segments)
    assert whole["in_use_bytes"] == sum(one["allocated_size"] for one in segments)
    assert (whole["free_bytes"], whole["largest_free_bytes"]) == (sum(free), max(free))
    assert whole["segments"] == len(segments)
    names = {f"{one['segment_type']} pool" + f" of graph pool {one['segment_pool_id'][1]}" * (one["segment_pool_id"][1] > 0)
             for one in segments}  # fmt: skip
    assert {one["name"] for one in pools} == names
    for key in ("reserved_bytes", "in_use_bytes", "free_bytes", "segments"):
        assert sum(one[key] for one in pools) == whole[key], key
    assert max(one["largest_free_bytes"] for one in pools) == whole["largest_free_bytes"]
    assert "in use at the end; the largest of" in render_text(report)


def test_what_is_reserved_follows_the_segments_of_the_history(tmp_path):
    from leadline.trace.allocator import RESERVED, histories

    content, *_ = snapshot(5)
    trace = content["device_traces"][0]
    trace[0:0] = [{"action": "segment_alloc", "addr": 1 << 40, "size": 256 * MIB, "stream": 0, "time_us": 5_000_000}]
    trace.append({"action": "segment_free", "addr": 1 << 40, "size": 256 * MIB, "stream": 0, "time_us": 6_000_000})
    at_end = sum(one["total_size"] for one in content["segments"])
    record = opened(tmp_path, content).meta["processes"][0]
    (history,) = [one for one in histories(record) if one.time_ns.size > 1]
    values = history.values[RESERVED].tolist()
    assert (values[0], values[-1]) == (at_end + 256 * MIB, at_end)
