"""Collapsed stacks: one line per path that flamegraph.pl's rule and speedscope both read, whatever the names."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from reread import speedscope_stacks
from samples import deep, model, strange

from leadline.profiles.build import build

# flamegraph.pl: my ($stack, $samples) = (/^(.*)\s+?(\d+(?:\.\d*)?)$/);
FLAMEGRAPH_PL = re.compile(r"^(.*)\s+?(\d+(?:\.\d*)?)$")


def lines(data):
    """{frames: value} by the rule of flamegraph.pl."""
    found = Counter()
    for line in data.decode().split("\n")[:-1]:
        stack, value = FLAMEGRAPH_PL.match(line).groups()
        found[tuple(stack.split(";"))] += int(value)
    return found


def test_model(exported):
    where = "main_(train.py:9)"
    assert lines(exported("collapsed", model(), "time")) == {
        ("train.py", "MainThread", where, "model.h.0_[Block]", "aten::linear"): 150_000,
        (
            "train.py",
            "MainThread",
            where,
            "model.h.0_[Block]",
            "aten::linear",
            "phase:_backward",
            "aten::mm",
        ): 2_000_000,
        ("train.py", "MainThread", where, where, "aten::linear"): 3_000,
        ("train.py", "worker", "region:_load"): 40_000,
    }


def test_strange_names_make_neither_lines_nor_frames(exported):
    data = exported("collapsed", strange())
    found = lines(data)
    assert len(found) == 12
    assert {len(stack) for stack in found} == {4}
    assert sum(found.values()) == sum(range(1, 13)) * 1_000_000
    assert all(c.isprintable() and (c != " ") for stack in found for frame in stack for c in frame)
    assert len(data.decode().splitlines()) == 12


def test_names_that_become_equal_are_added_up(exported):
    profile = build("""
    operator a b | time=1
    operator a_b | time=2
    """)
    assert exported("collapsed", profile) == b"program;MainThread;a_b 3\n"


def test_nothing_measured_is_an_empty_file(exported):
    assert exported("collapsed", build("process idle.py")) == b""


def test_ten_thousand_frames(exported):
    ((stack, value),) = lines(exported("collapsed", deep())).items()
    assert (len(stack), value) == (10_002, 5_000)


@pytest.mark.parametrize(("name", "make"), [("model", model), ("strange", strange)])
def test_speedscope_reads_it(name, make, exported, read_by_speedscope):
    assert speedscope_stacks(read_by_speedscope[name, "collapsed"]) == lines(exported("collapsed", make()))
