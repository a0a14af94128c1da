"""speedscope: valid by its published schema, and its own importer finds every path with its value."""

from __future__ import annotations

import json

import jsonschema
import pytest
from reread import speedscope_stacks
from samples import deep, model, stacks, strange

from leadline.convert.request import UnknownMetricError
from leadline.profiles.build import build


@pytest.mark.parametrize("make", [model, strange, lambda: build("process idle.py")])
def test_schema(make, exported, speedscope_schema):
    jsonschema.validate(json.loads(exported("speedscope", make())), speedscope_schema)


def test_one_profile_per_thread_and_metric_device_time_first(exported):
    document = json.loads(exported("speedscope", model()))
    assert [(one["name"], one["unit"], one["endValue"]) for one in document["profiles"]] == [
        ("gpu_time: MainThread", "nanoseconds", 7_000_000),
        ("time: MainThread", "nanoseconds", 2_153_000),
        ("time: worker", "nanoseconds", 40_000),
        ("alloc_bytes: MainThread", "bytes", 4096),
    ]


@pytest.mark.parametrize(("name", "make"), [("model", model), ("strange", strange)])
def test_speedscope_reads_every_path(name, make, read_by_speedscope):
    document = read_by_speedscope[name, "speedscope"]
    expected = stacks(make(), "time", below="process")
    found = sum((speedscope_stacks(document, i) for i, one in enumerate(document["profiles"])
                 if one["name"].startswith("time")), start=type(expected)())  # fmt: skip
    assert found == expected


def test_source_lines_arrive(read_by_speedscope):
    frames = read_by_speedscope["model", "speedscope"]["shared"]["frames"]
    assert {"name": "main", "file": "/home/ada/my project/train.py", "line": 9} in frames


def test_several_ranks_and_their_children_are_told_apart(exported):
    process = "process p{0} | pid={0} rank={1}\n  thread T | tid={0}\n    operator x | time=5\n"
    document = json.loads(exported("speedscope", build(process.format(10, 0) + process.format(20, 1))))
    assert [one["name"] for one in document["profiles"]] == ["time: rank 0, T", "time: rank 1, T"]
    document = json.loads(exported("speedscope", build(process.format(10, 0) + process.format(11, 0))))
    names = ["time: rank 0 process 10, T", "time: rank 0 process 11, T"]
    assert [one["name"] for one in document["profiles"]] == names


def test_ten_thousand_frames_take_twenty_thousand_events(exported):
    document = json.loads(exported("speedscope", deep()))
    assert len(document["profiles"][0]["events"]) == 2 * 10_001
    assert document["profiles"][0]["endValue"] == 5_000


def test_one_metric_only(exported):
    document = json.loads(exported("speedscope", model(), "alloc_bytes"))
    assert [one["unit"] for one in document["profiles"]] == ["bytes"]
    with pytest.raises(UnknownMetricError, match="it has time, alloc_bytes, gpu_time"):
        exported("speedscope", model(), "sync_time")
