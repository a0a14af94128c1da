"""Merging: trees laid over each other, processes side by side, in any order and grouping."""

from collections.abc import Hashable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.profiles import Node, Profile
from leadline.profiles import merge as merging
from leadline.profiles.build import build
from leadline.profiles.builder import ProfileBuilder, synthetic_meta
from leadline.profiles.check import check_tables
from leadline.profiles.draw import draw
from leadline.profiles.merge import merge_profiles, merge_tables


@st.composite
def profiles(choose: st.DrawFn) -> Profile:
    """Profiles whose frames, names and process ids meet often."""
    lines = []
    for pid in choose(st.lists(st.integers(1, 3), max_size=2, unique=True)):
        lines += [f"process p | pid={pid}", "  thread t"]
        depth = 2
        for _ in range(choose(st.integers(0, 8))):
            depth = choose(st.integers(2, depth))
            frame = choose(st.sampled_from(["python f @ f.py:3", "operator a", "operator b", "kernel k"]))
            values = ",".join(map(str, choose(st.lists(st.integers(-9, 99), max_size=2))))
            place = choose(st.sampled_from(["time", "gpu_time@0:1", "gpu_time@1:2", "call_time"]))
            lines.append("  " * depth + frame + (f" | {place}={values}" if values else ""))
            depth += 1
    return build("\n".join(lines), losses=[("events_dropped", 1, "Full.")] if lines else [])


def path(node: Node) -> Hashable:
    return tuple((one.kind, one.name, one.file, one.line, one.tree.text("detail", one.frame)) for one in node.path())


def seen(profile: Profile) -> dict[str, list[Hashable]]:
    """All that a profile says, without the order of its rows."""
    tree = profile.tree
    pids = [one.pid for one in profile.processes]
    devices = [(pids[one.process], one.index, one.name) for one in profile.devices]
    metrics = profile.table("metrics")
    rows = zip(*(metrics[name].tolist() for name in metrics), strict=True)
    events = profile.events
    contents = {
        "nodes": [path(node) for node in tree.walk()],
        "metrics": [
            (path(tree.node(node)), kind, devices[device] if device >= 0 else None, *rest)
            for node, kind, device, *rest in rows
        ],
        "processes": [(one.pid, one.complete, one.name, path(one.node)) for one in profile.processes],
        "threads": [(pids[one.process], one.tid, one.name, path(one.node)) for one in profile.threads],
        "devices": devices,
        "losses": [(pids[one.process], one.kind, one.count, one.detail) for one in profile.losses],
        "events": [path(tree.node(node)) for node in events["node"].tolist()],
    }
    return {name: sorted(listed, key=repr) for name, listed in contents.items()}


def merged(*parts: Profile) -> Profile:
    """Merged, and checked as a file would be."""
    tables = merge_tables([part.tables for part in parts])
    return Profile(check_tables(tables.columns), synthetic_meta())


@settings(deadline=None)
@given(profiles(), profiles(), profiles())
def test_grouping_and_order_do_not_matter(one: Profile, two: Profile, three: Profile) -> None:
    together = seen(merged(one, two, three))
    assert seen(merged(merged(one, two), three)) == together
    assert seen(merged(one, merged(two, three))) == together
    assert seen(merged(three, one, two)) == together


@settings(deadline=None)
@given(profiles())
def test_a_profile_merged_alone_says_the_same(one: Profile) -> None:
    assert seen(merged(one)) == seen(one)


@settings(deadline=None)
@given(profiles(), profiles())
def test_no_measurement_is_lost_and_paths_are_unique(one: Profile, two: Profile) -> None:
    both = merged(one, two)
    for metric in ("time", "gpu_time"):
        parts = [part.tree.root.inclusive(metric) for part in (one, two)]
        whole = both.tree.root.inclusive(metric)
        assert whole.count == sum(part.count for part in parts)
        assert whole.sum == sum(part.sum for part in parts)
    paths = [path(node) for node in both.tree.walk()]
    assert len(paths) == len(set(paths))


@settings(deadline=None)
@given(profiles(), profiles())
def test_both_ways_of_unifying_nodes_agree(one: Profile, two: Profile) -> None:
    parts = [one.tables, two.tables]
    strings = merging.StringBuilder()
    maps = [merging._string_map(part, strings) for part in parts]
    frames, frame_of = merging._merge_frames(parts, strings, maps)
    shapes = [one.tree.shape, two.tree.shape]
    parent = np.concatenate([shapes[0].parent, shapes[1].parent + shapes[0].size])
    depth = np.concatenate([shape.depth for shape in shapes])
    frame = np.concatenate(frame_of)
    by_node = merging._unify_by_node(parent, depth, frame)
    by_level = merging._unify_by_level(parent, depth, frame, len(frames))
    assert len(set(zip(by_node.tolist(), by_level.tolist(), strict=True))) == len(set(by_node.tolist()))
    assert len(set(by_node.tolist())) == len(set(by_level.tolist()))


def test_equal_paths_add_up_and_processes_stay_apart() -> None:
    drawing = """
    process worker | pid={pid}
      thread MainThread
        operator aten::add | time={time}
          kernel add | gpu_time@0:7=10
    """
    one = build(drawing.format(pid=1, time=5))
    again = build(drawing.format(pid=1, time=7))
    other = build(drawing.format(pid=2, time=9))
    assert draw(merged(one, again, other), ["time", "gpu_time"], ordered=True, devices=True) == (
        "process worker\n"
        "  thread MainThread\n"
        "    operator aten::add | time=12/2\n"
        "      kernel add | gpu_time@0:7=10 gpu_time@1:7=10\n"
        "process worker\n"
        "  thread MainThread\n"
        "    operator aten::add | time=9\n"
        "      kernel add | gpu_time@2:7=10\n"
    )


def test_events_of_all_are_ordered_and_keep_their_place() -> None:
    drawing = "process p | pid={pid}\n  thread t\n    operator a #a"
    events = "kind node start_ns duration_ns thread device\noperator a {start} 1 0 -1\nkernel a 50 1 -1 0"
    one = build(drawing.format(pid=1), events=events.format(start=90))
    two = build(drawing.format(pid=2), events=events.format(start=10))
    both = merged(one, two)
    assert both.events["start_ns"].tolist() == [10, 50, 50, 90]
    assert both.events["thread"].tolist() == [1, -1, -1, 0]
    assert sorted(both.events["device"].tolist()) == [-1, -1, 0, 1]
    pids = [
        both.processes[both.threads[thread].process].pid for thread in both.events["thread"].tolist() if thread >= 0
    ]
    assert pids == [2, 1]


def test_meta_of_all_is_composed() -> None:
    def run(start: int, wall: int, complete: bool, events: int) -> Profile:
        cost = {"callbacks_ns": 10, "events": events, "held_bytes": 0}
        changes = {"started_at_ns": start, "wall_ns": wall, "complete": complete, "program": {"argv": [str(start)]}}
        meta = {**synthetic_meta(), **changes, "processes": [{"pid": start, "cost": cost, "wall_ns": 1000}]}
        return Profile(build("operator a").tables, meta)

    meta = merge_profiles([run(50, 100, True, 7), run(20, 40, False, 8)]).meta
    assert (meta["started_at_ns"], meta["wall_ns"], meta["complete"], meta["program"]) == (
        20,
        130,
        False,
        {"argv": ["20"]},
    )
    assert [record["pid"] for record in meta["processes"]] == [20, 50]
    assert {"callbacks_ns": 20, "events": 15, "held_bytes": 0, "percent": 1.0}.items() <= meta["cost"].items()


def test_nothing_and_too_much_are_refused() -> None:
    with pytest.raises(ValueError, match="nothing to merge"):
        merge_tables([])
    builder = ProfileBuilder()
    process = builder.process("p")
    for index in range(20_000):
        builder.device(process, index)
    tables = builder.tables()
    with pytest.raises(ValueError, match="more than 32767 devices"):
        merge_tables([tables, tables])
