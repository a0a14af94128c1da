"""The pruned tree of the page: bounded, and no sum is lost."""

from __future__ import annotations

from collections import defaultdict

import pytest
from drawings import training
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.profiles.build import build
from leadline.profiles.builder import ProfileBuilder
from leadline.report.flame import flame


def sums(data, metric):
    return sum(next(one for one in data["metrics"] if one["name"] == metric)["values"])


def inclusive(data, metric):
    """name path -> inclusive sum, pruned nodes left out."""
    own = defaultdict(int)
    column = next(one for one in data["metrics"] if one["name"] == metric)
    for row, value in zip(column["rows"], column["values"], strict=True):
        own[row] += value
    whole = dict(own)
    for row in sorted(range(len(data["parent"])), key=lambda row: -depth(data, row)):
        parent = data["parent"][row]
        if parent >= 0:
            whole[parent] = whole.get(parent, 0) + whole.get(row, 0)
    names = data["frames"]["name"]
    pruned = data["kinds"].index("pruned")
    kinds = data["frames"]["kind"]
    return {
        path(data, names, row): whole.get(row, 0)
        for row in range(len(data["parent"]))
        if kinds[data["frame"][row]] != pruned
    }


def depth(data, row):
    steps = 0
    while data["parent"][row] >= 0:
        row, steps = data["parent"][row], steps + 1
    return steps


def path(data, names, row):
    made = []
    while row >= 0:
        made.append(names[data["frame"][row]])
        row = data["parent"][row]
    return tuple(reversed(made))


def test_nothing_small_nothing_pruned():
    data = flame(training().tree).data
    assert data["pruned"]["nodes"] == 0
    assert sums(data, "time") == 5_000_000
    assert sums(data, "calls") == 25
    assert [metric["name"] for metric in data["metrics"]] == ["time", "alloc_bytes", "peak_live_bytes", "calls"]
    assert len(data["parent"]) == len(training().tree)


def test_small_paths_hang_as_one_below_their_parent():
    profile = build("""
    python main @ /a/t.py:1
      operator big | time=500000
      operator tiny1 | time=3
        operator inner | time=1
      operator tiny2 | time=2
    """)
    drawn = flame(profile.tree)
    names = [drawn.data["frames"]["name"][frame] for frame in drawn.data["frame"]]
    assert names == ["root", "program", "MainThread", "main", "big", "(3 paths below 0.01 %)"]
    assert drawn.data["pruned"]["nodes"] == 3
    assert sums(drawn.data, "time") == 500_006
    inner = profile.tree.find(name="inner")[0].row
    assert names[drawn.kept_row[inner]] == "main"


def test_a_path_is_kept_when_any_metric_of_it_is_large():
    profile = build("""
    operator slow | time=9000000
    operator big | time=1 alloc_bytes=4096
    """)
    names = flame(profile.tree).data["frames"]["name"]
    assert "big" in names


@pytest.mark.parametrize("most", [1, 2, 10, 50])
def test_no_more_nodes_than_allowed(most):
    builder = ProfileBuilder()
    node = builder.node_of_thread(builder.thread(builder.process("p"), "t"))
    for i in range(200):
        builder.add(builder.child(node, builder.frame("operator", f"op{i}")), "time", 1000)  # all alike: a tie
    drawn = flame(builder.profile().tree, most_nodes=most)
    kept = len(drawn.data["parent"])
    assert kept <= 2 * most + 1, "each kept node has at most one pruned child; the root is always kept"
    assert sums(drawn.data, "time") == 200_000


def test_a_stack_of_ten_thousand_frames():
    builder = ProfileBuilder()
    node = builder.node_of_thread(builder.thread(builder.process("p"), "t"))
    frame = builder.frame("python", "recurse", file="/a/t.py", line=1)
    for _ in range(10_000):
        node = builder.child(node, frame)
    builder.add(node, "time", 7)
    data = flame(builder.profile().tree).data
    assert len(data["parent"]) == 10_003
    assert sums(data, "time") == 7


def test_a_profile_without_measurements():
    data = flame(build("process idle.py").tree).data
    assert data["metrics"] == []
    assert [data["frames"]["name"][frame] for frame in data["frame"]] == ["root", "(1 path below 0.01 %)"]


trees = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 5), st.integers(0, 5000), st.integers(0, 64)), max_size=60
)


@settings(max_examples=80, deadline=None)
@given(trees, st.sampled_from([0.0, 0.01, 0.2, 2.0]), st.integers(1, 40))
def test_every_kept_path_has_its_whole_value(rows, share, most):
    builder = ProfileBuilder()
    nodes = [builder.node_of_thread(builder.thread(builder.process("p"), "t"))]
    for parent, name, time, memory in rows:
        node = builder.child(nodes[parent % len(nodes)], builder.frame("operator", f"op{name}"))
        nodes.append(node)
        builder.add(node, "time", time)
        builder.add(node, "alloc_bytes", memory)
    tree = builder.profile().tree
    full = flame(tree, smallest_share=0.0, most_nodes=10**6).data
    cut = flame(tree, smallest_share=share, most_nodes=most).data
    for metric in cut["metrics"]:
        expected = inclusive(full, metric["name"])
        for where, value in inclusive(cut, metric["name"]).items():
            assert value == expected[where]
