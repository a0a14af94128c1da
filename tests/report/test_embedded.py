"""The profile that the page holds: whole where it fits, else cut so that no sum is lost."""

from __future__ import annotations

import io

import numpy as np
import pytest
from drawings import training
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.profiles import open_profile
from leadline.profiles.build import build
from leadline.profiles.builder import ProfileBuilder
from leadline.profiles.check import check_tables
from leadline.report.embedded import cut_tree, embedded


def read(data, tmp_path):
    path = tmp_path / "embedded.leadline"
    path.write_bytes(data)
    return open_profile(path)


def names(tables):
    strings = tables.strings
    return [strings[int(tables["frames"]["name"][frame])] for frame in tables["nodes"]["frame"].tolist()]


def test_what_fits_is_whole(tmp_path):
    held = embedded(training())
    again = read(held.data, tmp_path)
    assert held.row_of is None
    assert len(again.tree) == len(training().tree)
    assert "pruned" not in again.meta


def test_the_trace_window_goes_before_any_path(tmp_path):
    builder = ProfileBuilder()
    thread = builder.thread(builder.process("p"), "t")
    node = builder.child(builder.node_of_thread(thread), builder.frame("operator", "a"))
    builder.add(node, "time", 5)
    rng = np.random.default_rng(1)
    for start in np.cumsum(rng.integers(1, 10**9, 5_000)).tolist():
        builder.event("operator", node, start, 1, thread=thread)
    held = embedded(builder.profile(), most_bytes=20_000)
    again = read(held.data, tmp_path)
    assert len(held.data) <= 20_000
    assert len(again.tree) == len(builder.profile().tree)
    assert again.meta["pruned"] == {"said": "the trace window of 5,000 events is left out"}


def test_a_large_tree_is_cut_to_the_size(tmp_path):
    builder = ProfileBuilder()
    node = builder.node_of_thread(builder.thread(builder.process("p"), "t"))
    for i in range(20_000):
        builder.add(builder.child(node, builder.frame("operator", f"op{i * 7919}")), "time", 1 + i)
    held = embedded(builder.profile(), most_bytes=100_000)
    again = read(held.data, tmp_path)
    assert len(held.data) <= 100_000
    assert again.tree.inclusive("time").sum[0] == builder.profile().tree.inclusive("time").sum[0]
    assert "are drawn together" in again.meta["pruned"]["said"]
    assert held.row(0) == 0


def test_small_paths_hang_as_one_below_their_parent():
    profile = build("""
    python main @ /a/t.py:1
      operator big | time=500000
      operator tiny1 | time=3
        operator inner | time=1
      operator tiny2 | time=2
    """)
    tables, row_of, _ = cut_tree(profile.tree, profile.tables, 6)
    shown = names(tables)
    assert shown[:-1] == ["root", "program", "MainThread", "main", "big"]
    assert shown[-1].startswith("(3 paths below ")
    assert shown[row_of[profile.tree.find(name="inner")[0].row]] == "main"


def test_a_stack_of_ten_thousand_frames(tmp_path):
    builder = ProfileBuilder()
    node = builder.node_of_thread(builder.thread(builder.process("p"), "t"))
    frame = builder.frame("python", "recurse", file="/a/t.py", line=1)
    for _ in range(10_000):
        node = builder.child(node, frame)
    builder.add(node, "time", 7)
    assert len(read(embedded(builder.profile()).data, tmp_path).tree) == 10_003


trees = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 5), st.integers(0, 5000), st.integers(0, 64)), max_size=60
)


@settings(max_examples=80, deadline=None)
@given(trees, st.integers(1, 40))
def test_every_kept_path_has_its_whole_value(rows, most):
    builder = ProfileBuilder()
    nodes = [builder.node_of_thread(builder.thread(builder.process("p"), "t"))]
    for parent, name, time, memory in rows:
        node = builder.child(nodes[parent % len(nodes)], builder.frame("operator", f"op{name}"))
        nodes.append(node)
        builder.add(node, "time", time)
        builder.add(node, "alloc_bytes", memory)
    profile = builder.profile()
    tables, row_of, _ = cut_tree(profile.tree, profile.tables, most)
    cut = type(profile)(check_tables(tables.columns), {})
    kept = {new: old for old, new in reversed(list(enumerate(row_of.tolist())))}
    for metric in ("time", "alloc_bytes"):
        before, after = profile.tree.inclusive(metric).sum, cut.tree.inclusive(metric).sum
        for new, old in kept.items():
            assert after[new] == before[old]


@pytest.mark.parametrize("drawing", ["process idle.py", "operator a | call_time=0"])
def test_a_profile_with_almost_nothing(drawing, tmp_path):
    assert len(read(embedded(build(drawing)).data, tmp_path).tree) == len(build(drawing).tree)


def test_the_bytes_are_those_of_a_file():
    assert io.BytesIO(embedded(training()).data).read(2) == b"PK"
