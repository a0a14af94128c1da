"""A program that starts a thousand children: looking for steps passes over the tree as often as for one, and the tables of
threads have an end."""

from __future__ import annotations

import pytest

from leadline.profiles.build import build
from leadline.profiles.merge import merge_profiles
from leadline.profiles.profile import Profile
from leadline.report import ReportOptions, build_report
from leadline.report.text import render_text
from leadline.steps import of_tree


def children(number: int) -> Profile:
    one = """
    process child.py | pid={pid}
      thread main | tid={pid} wall_ns={wall} operator_ns=900000 cpu_ns=900000
        module m | call_time=9,9,9
          operator aten::mm | time=5,7,6 call_time=9,9,9
    """
    return merge_profiles([build(one.format(pid=100 + at, wall=1_000_000 + at)) for at in range(number)])


def test_steps_of_many_processes_are_found_in_as_many_passes_as_those_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    passes = []
    nearest = of_tree.nearest
    monkeypatch.setattr(of_tree, "nearest", lambda shape, wanted: passes.append(shape.size) or nearest(shape, wanted))
    found = {}
    for number in (1, 50):
        passes.clear()
        found[number] = [(one.steps, one.rests_on) for one in of_tree.counted(children(number))], len(passes)
    (one, once), (many, often) = found[1], found[50]
    assert len(one) == 1
    assert many == one * 50
    assert often == once


def test_the_tables_of_threads_show_the_longest_and_say_how_many_are_left_out() -> None:
    profile = children(100)
    text = render_text(build_report(profile, ReportOptions()))
    shown = [line for line in text.splitlines() if line.lstrip().startswith("process ") and " ms " in line]
    assert len(shown) == 32
    assert "process 199" in text
    assert "68 more threads ran for less time" in text
