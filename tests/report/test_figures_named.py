"""A row is named after all that it holds: classes of a group, callers of a line, operators of a count."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

import leadline
from leadline._package import sum_cost
from leadline.cli import main as cli
from leadline.profiles.build import build
from leadline.profiles.writer import write_profile
from leadline.report import ReportOptions, build_report
from leadline.report.json_report import report_object
from leadline.report.text import render_text

TRACES = Path(__file__).parents[3] / "shared" / "traces"


def sequential(*classes: str):
    lines = "".join(
        f"      module m.{i} [{name}]\n        operator aten::op{i} | time=1000/5 call_time=1000/5\n"
        for i, name in enumerate(classes)
    )
    return build(f"process train.py | pid=1\n  thread main\n    module m [Sequential] | call_time=9000/5\n{lines}")


@pytest.mark.parametrize(
    ("classes", "expected"),
    [
        (("Conv2d", "ReLU", "MaxPool2d", "Flatten"), "Conv2d, Flatten, MaxPool2d, ReLU"),
        (("Block", "Block"), "Block"),
        (("A", "B", "C", "D", "E", "F"), "A, B, C and 3 others"),
    ],
)
def test_a_group_of_modules_is_named_after_all_its_classes(classes, expected):
    report = build_report(sequential(*classes), ReportOptions(merge_layers=True))
    assert {row.name: row.class_name for row in report.modules}["m.*"] == expected


def test_a_line_with_several_callers_says_so():
    called = (
        "        python infer @ /a/t.py:4 | first_line=3\n          operator aten::mm | time={0}/5 call_time={0}/5\n"
    )
    callers = "".join(f"      python f{i} @ /a/t.py:{10 + i}\n{called.format(1000 - 5 * i)}" for i in range(3))
    report = build_report(
        build(f"process train.py | pid=1\n  thread main\n    python <module> @ /a/t.py:20\n{callers}"), ReportOptions()
    )
    text = render_text(report)
    assert "from t.py:10 f0 ← t.py:20 and 2 other callers" in text
    assert report_object(report)["paths"][0]["callers"] == 3
    one = build_report(
        build(
            f"process t.py | pid=1\n  thread main\n    python <module> @ /a/t.py:20\n      python f0 @ /a/t.py:10\n{called.format(10)}"
        ),
        ReportOptions(),
    )
    assert "other caller" not in render_text(one)


def test_calls_of_operators_are_of_operators():
    report = build_report(sequential("A", "B"), ReportOptions(top=1))
    assert report.operator_calls == 10  # the container's own five calls are none of an operator
    assert report_object(report)["totals"]["call_time"]["count"] == 15


def test_only_who_states_a_cost_is_counted():
    nobody = [{"pid": 1, "wall_ns": 100}, {"pid": 2, "wall_ns": 100, "cost": {}}]
    assert sum_cost(nobody)["percent"] is None
    assert sum_cost([*nobody, {"wall_ns": 100, "cost": {"callbacks_ns": 10}}])["percent"] == 10


@pytest.mark.parametrize(
    ("command", "ending", "begins"),
    [
        (["diff", "{0}", "{0}"], "html", "<!doctype html>"),
        (["diff", "{0}", "{0}"], "json", "{"),
        (["query", "{0}", "operator:*"], "json", "{"),
        (["query", "{0}", "operator:*"], "csv", "node,kind"),
        (["report", "{0}"], "md", "#"),
    ],
)
def test_the_ending_of_the_output_says_the_format(command, ending, begins, tmp_path):
    file, out = tmp_path / "a.leadline", tmp_path / f"out.{ending}"
    write_profile(file, sequential("A"))
    assert cli.main([*(word.format(file) for word in command), "-o", str(out)]) == 0
    assert out.read_text().lower().lstrip().startswith(begins)


def test_eight_imported_ranks_state_no_own_cost():
    found = sorted(TRACES.glob("param-dlrm-8rank-v100/*.tar.gz"))
    if not found:
        pytest.skip("the shared traces are not here")
    with tarfile.open(found[0]) as archive:
        assert len(archive.getnames()) >= 8
    text = render_text(build_report(leadline.open(found[0]), ReportOptions()))
    assert "overhead not known" in " ".join(text.split())
