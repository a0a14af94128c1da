"""Merging: trees laid over each other, processes side by side, in any order and grouping."""

import io
import json
import zipfile
from collections.abc import Hashable
from itertools import permutations

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
from leadline.profiles.lineage import event_clocks
from leadline.profiles.merge import merge_profiles, merge_tables
from leadline.profiles.rollup import Shape
from leadline.profiles.writer import add_columns


@st.composite
def profiles(choose: st.DrawFn, begin: int = 0) -> Profile:
    """Profiles whose frames, names and process ids meet often; no process stands in two with different `begin`."""
    lines = []
    for pid in choose(st.lists(st.integers(1, 3), max_size=2, unique=True)):
        lines += [
            f"process p | pid={pid} start_ns={begin + 10 * choose(st.integers(0, 2))}",
            "  thread t",
            "  thread u",
        ]
        depth = 2
        for _ in range(choose(st.integers(0, 8))):
            depth = choose(st.integers(2, depth))
            frame = choose(st.sampled_from(["python f @ f.py:3", "operator a", "operator b", "kernel k"]))
            values = ",".join(map(str, choose(st.lists(st.integers(-9, 99), max_size=2))))
            place = choose(st.sampled_from(["time", "gpu_time@0:1", "gpu_time@1:2", "call_time"]))
            lines.append("  " * depth + frame + (f" | {place}={values}" if values else ""))
            depth += 1
    sentences = choose(st.lists(st.sampled_from(["Full.", "No memory.", ""]), max_size=3, unique=True))
    losses = [("events_dropped", count + 1, sentence) for count, sentence in enumerate(sentences)]
    return build("\n".join(lines), losses=losses if lines else [])


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


def contents(profile: Profile) -> bytes:
    """The file that would be written."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(zipfile.ZipInfo("meta.json"), json.dumps(profile.meta))
        add_columns(archive, profile.tables)
    return file.getvalue()


@settings(deadline=None)
@given(profiles(1), profiles(2), profiles(3))
def test_any_order_and_grouping_gives_the_same_bytes(one: Profile, two: Profile, three: Profile) -> None:
    for start, part in enumerate((one, two, three)):
        part.meta["started_at_ns"] = start
    together = contents(merge_profiles([one, two, three]))
    for order in permutations((one, two, three)):
        assert contents(merge_profiles(order)) == together
    assert contents(merge_profiles([merge_profiles([one, two]), three])) == together
    assert contents(merge_profiles([merge_profiles([three, one]), merge_profiles([two])])) == together
    assert contents(merge_profiles([three, merge_profiles([two, one])])) == together
    said = [seen(part) for part in (one, two, three)]
    rows = [row for part in said for row in part["metrics"]]
    assert sorted(rows, key=repr) == seen(merge_profiles([one, two, three]))["metrics"], "none lost, none added up"


def test_every_sentence_about_what_was_lost_is_kept_with_its_count() -> None:
    had_it = "While torch.profiler recorded GPU work roctracer was its own."
    losses = [("provider_unavailable", 1, "Grids are not measured."), ("provider_unavailable", 2, had_it)]
    parts = [build(f"process p | pid={pid}", losses=losses[:pid]) for pid in (1, 2)]
    both = merge_profiles(parts)
    told = [(both.processes[one.process].pid, one.count, one.detail) for one in both.losses]
    assert sorted(told) == [(1, 1, "Grids are not measured."), (2, 1, "Grids are not measured."), (2, 2, had_it)]


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
    shape = Shape(merged(one, two).tables["nodes"]["parent"])
    frame = merged(one, two).tables["nodes"]["frame"].astype(np.int64)
    parent, depth = (
        np.maximum(np.concatenate([shape.parent, shape.parent]), 0),
        np.concatenate([shape.depth, shape.depth]),
    )
    parent[shape.size :] += shape.size
    frames = np.concatenate([frame, frame])
    by_node = merging._unify_by_node(parent, depth, frames)
    assert by_node.tolist() == merging._unify_by_level(parent, depth, frames).tolist()
    assert by_node[: shape.size].tolist() == by_node[shape.size :].tolist() == list(range(shape.size))


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


def one_machine(pid: int, event_ns: int, host: str, clock_ns: int) -> Profile:
    """A process with an operator at `event_ns` of its machine's clock, which showed 0 at `clock_ns` of CLOCK_REALTIME."""
    drawing = f"process p | pid={pid} start_ns={1000 + pid}\n  thread t\n    operator a{pid} #a"
    events = f"kind node start_ns duration_ns thread device\noperator a {event_ns} 1 0 -1\nkernel a {event_ns} 1 -1 0"
    profile = build(drawing, events=events)
    clock = {"monotonic_ns": 7, "realtime_ns": clock_ns + 7, "uncertainty_ns": 0}
    record = {"pid": pid, "started_at_ns": 1000 + pid, "clock": clock}
    profile.meta.update(started_at_ns=1000 + pid, host={"hostname": host}, clock=clock, processes=[record])
    return profile


def timeline(profile: Profile) -> list[tuple[int, str]]:
    """Start and name of every operator, in the order of the file."""
    rows = np.flatnonzero(profile.events["thread"] >= 0).tolist()
    return [
        (int(profile.events["start_ns"][row]), profile.tree.node(int(profile.events["node"][row])).name) for row in rows
    ]


def test_events_of_several_machines_are_related_by_their_clocks() -> None:
    """Machine b's clock counts from 5,000,000,000,000 ns later: its event at 10 comes after that at 90 on machine a."""
    hour = 3_600_000_000_000
    first, second = one_machine(1, 90, "a", 0), one_machine(2, 10, "b", hour)
    both = merge_profiles([second, first])
    assert timeline(both) == [(90, "a1"), (hour + 10, "a2")]
    assert both.events["device"].tolist() == [-1, 0, -1, 1], "an event keeps its device, the devices of process 1 first"
    assert list(event_clocks(both)) == [0, 0], "both are now in one clock"
    third = one_machine(3, 40, "b", hour + 2)
    every = merge_profiles([both, third])
    assert timeline(every) == [(90, "a1"), (hour + 10, "a2"), (hour + 40, "a3")], "one machine has one clock"
    assert contents(every) == contents(merge_profiles([merge_profiles([third, first]), second]))


def test_machines_whose_clocks_nearly_agree_are_related_each_by_its_own() -> None:
    both = merge_profiles([one_machine(1, 90, "a", 0), one_machine(2, 10, "b", 1000)])
    assert timeline(both) == [(90, "a1"), (1010, "a2")]


def test_a_process_that_is_in_two_profiles_is_refused() -> None:
    one = one_machine(1, 10, "a", 0)
    both = merge_profiles([one, one_machine(2, 10, "a", 0)])
    with pytest.raises(ValueError, match="two of them hold the process 1 that began at 1001 ns; it would count twice"):
        merge_profiles([both, one])


def test_meta_of_all_is_composed() -> None:
    def run(start: int, wall: int, complete: bool, events: int) -> Profile:
        cost = {"callbacks_ns": 10, "events": events, "held_bytes": 0}
        changes = {"started_at_ns": start, "wall_ns": wall, "complete": complete, "program": {"argv": [str(start)]}}
        meta = {
            **synthetic_meta(),
            **changes,
            "processes": [{"pid": start, "started_at_ns": start, "cost": cost, "wall_ns": 1000}],
        }
        return Profile(build(f"process p | pid={start} start_ns={start}").tables, meta)

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
