"""V8's .cpuprofile: the protocol's rules, the reading that VS Code does of it, and speedscope's."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from reread import speedscope_stacks
from samples import deep, model, stacks, strange

from leadline.convert.request import UnknownMetricError
from leadline.profiles.build import build
from leadline.profiles.builder import ProfileBuilder


def self_times(document):
    """Microseconds by stack as VS Code counts them: sample i lasts until sample i + 1, the last until the end."""
    nodes = {node["id"]: node for node in document["nodes"]}
    parent = {child: node["id"] for node in document["nodes"] for child in node.get("children", [])}
    found = Counter()
    deltas = [*document["timeDeltas"][1:], document["endTime"] - document["startTime"] - sum(document["timeDeltas"])]
    for sample, delta in zip(document["samples"], deltas, strict=True):
        path, at = [], sample
        while at in parent:
            path.append(nodes[at]["callFrame"]["functionName"])
            at = parent[at]
        found[tuple(reversed(path))] += delta
    return Counter({stack: value for stack, value in found.items() if value})


def in_microseconds(expected):
    return Counter({stack: value // 1000 for stack, value in expected.items()})


@pytest.mark.parametrize(("make", "metric"), [(model, "time"), (model, "gpu_time"), (strange, "time")])
def test_every_path(make, metric, exported):
    document = json.loads(exported("cpuprofile", make(), metric))
    assert self_times(document) == in_microseconds(stacks(make(), metric))


def test_the_rules_of_the_protocol(exported):
    document = json.loads(exported("cpuprofile", model()))
    ids = [node["id"] for node in document["nodes"]]
    assert len(ids) == len(set(ids))
    assert document["nodes"][0]["callFrame"]["functionName"] == "(root)"
    children = [child for node in document["nodes"] for child in node.get("children", [])]
    assert sorted(children) == sorted(set(ids) - {1}), "a tree: every node but the root is a child once"
    assert set(document["samples"]) <= set(ids)
    assert len(document["samples"]) == len(document["timeDeltas"])
    assert all(isinstance(delta, int) and delta >= 0 for delta in document["timeDeltas"])
    assert sum(document["timeDeltas"]) == document["endTime"] - document["startTime"] == 7_000
    for node in document["nodes"]:
        assert set(node["callFrame"]) == {"functionName", "scriptId", "url", "lineNumber", "columnNumber"}


def test_lines_count_from_zero_and_files_are_urls(exported):
    document = json.loads(exported("cpuprofile", model(), "time"))
    frame = next(node["callFrame"] for node in document["nodes"] if node["callFrame"]["functionName"] == "main")
    assert (frame["url"], frame["lineNumber"]) == ("file:///home/ada/my%20project/train.py", 8)


def test_times_below_a_microsecond_are_not_lost_in_the_sum(exported):
    builder = ProfileBuilder()
    node = builder.node_of_thread(builder.thread(builder.process("p"), "t"))
    for i in range(1000):
        builder.add(builder.child(node, builder.frame("operator", f"op{i}")), "time", 300)
    assert json.loads(exported("cpuprofile", builder.profile()))["endTime"] == 300


def test_only_times_fit(exported):
    with pytest.raises(UnknownMetricError, match=r"no metric 'alloc_bytes' that this format can hold; it has time"):
        exported("cpuprofile", model(), "alloc_bytes")
    with pytest.raises(UnknownMetricError, match="holds times and this profile has none; it has alloc_bytes"):
        exported("cpuprofile", build("operator a | alloc_bytes=4"))


def test_nothing_measured_and_ten_thousand_frames(exported):
    assert json.loads(exported("cpuprofile", build("process idle.py")))["samples"] == []
    document = json.loads(exported("cpuprofile", deep()))
    assert len(document["nodes"]) == 10_003
    assert document["endTime"] == 5


@pytest.mark.parametrize(("name", "make", "metric"), [("model", model, "gpu_time"), ("strange", strange, "time")])
def test_speedscope_reads_it(name, make, metric, read_by_speedscope):
    document = read_by_speedscope[name, "cpuprofile"]
    scale = {"microseconds": 1, "nanoseconds": 1e3}[document["profiles"][0]["unit"]]
    found = Counter({stack: round(value / scale) for stack, value in speedscope_stacks(document).items()})
    assert found == in_microseconds(stacks(make(), metric))
