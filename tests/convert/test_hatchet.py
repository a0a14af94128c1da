"""hatchet: its GraphFrame holds every path and metric, exclusive and inclusive."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from samples import deep, label, model, stacks, strange

from leadline.convert.hatchet import DEEPER, MAX_DEPTH
from leadline.profiles.build import build

hatchet = pytest.importorskip("hatchet", reason="hatchet reads the exports back and is not installed here")


@pytest.fixture
def graph(exported):
    def read(profile, metric=None):
        return hatchet.GraphFrame.from_literal(json.loads(exported("hatchet", profile, metric)))

    return read


def read_stacks(frame, column):
    found = Counter()
    for node in frame.graph.traverse():
        value = int(frame.dataframe.loc[node, column])
        if value:
            found[tuple(one.frame["name"] for one in node.path())] += value
    return found


@pytest.mark.parametrize("make", [model, strange])
def test_every_path(make, graph):
    profile = make()
    frame = graph(profile)
    assert read_stacks(frame, "time") == stacks(profile, "time")
    if make is model:
        assert read_stacks(frame, "gpu_time") == stacks(profile, "gpu_time")
        assert read_stacks(frame, "alloc_bytes") == stacks(profile, "alloc_bytes")


def test_device_time_alone_is_what_hatchet_shows_by_default(graph):
    profile = model()
    assert read_stacks(graph(profile, "gpu_time"), "time") == stacks(profile, "gpu_time")


def test_inclusive_values(graph):
    profile = model()
    frame = graph(profile, "time")
    expected = Counter()
    for node in profile.tree.walk():
        value = node.inclusive("time").sum
        if value and node.parent is not None:
            expected[tuple(label(one) for one in node.path()[1:])] += value
    assert read_stacks(frame, "time (inc)") == expected
    assert set(frame.exc_metrics) == {"time"}
    assert set(frame.inc_metrics) == {"time (inc)"}


def test_frames_carry_kind_and_source(graph):
    frame = graph(model())
    found = [node.frame.attrs for node in frame.graph.traverse() if node.frame["name"] == "main"]
    assert found[0] == {"name": "main", "type": "python", "file": "/home/ada/my project/train.py", "line": 9}


def test_hatchet_can_print_the_tree(graph):
    assert "aten::mm" in graph(model()).tree()


def test_deep_paths_end_in_one_frame_that_holds_the_rest(graph):
    frame = graph(deep())
    nodes = list(frame.graph.traverse())
    assert len(nodes) == MAX_DEPTH + 1
    assert nodes[-1].frame["name"] == DEEPER
    assert int(frame.dataframe.loc[nodes[-1], "time"]) == 5_000


def test_nothing_measured_is_an_empty_list(exported):
    assert json.loads(exported("hatchet", build("process idle.py"))) == []
