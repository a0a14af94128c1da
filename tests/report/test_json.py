"""The JSON report: its keys, its schema, and that nothing a file may hold breaks it."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from drawings import hostile, training
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.profiles import Profile
from leadline.profiles.build import build
from leadline.report import ReportOptions, build_report
from leadline.report.json_report import render_json

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "json-report.schema.json").read_text())

VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)

WITH_GPU = """
python main @ /home/ada/train.py:3
  operator aten::mm | time=900 call_time=900
    kernel gemm | gpu_time@0:7=6000/3
    copy HtoD | gpu_time@0:7=50 copy_bytes@0:7=9
"""


def report_of(profile, **options):
    text = render_json(build_report(profile, ReportOptions(**options), "run.leadline"))
    return json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


@pytest.mark.parametrize("profile", [training(), hostile(), build(WITH_GPU), build("process idle.py")])
def test_schema(profile):
    VALIDATOR.validate(report_of(profile))
    VALIDATOR.validate(report_of(profile, focus="main", hide_library_frames=True, top=1))


def test_the_schema_is_strict_enough_to_notice_a_missing_key():
    report = report_of(training())
    for key in report:
        with pytest.raises(jsonschema.ValidationError):
            VALIDATOR.validate({name: value for name, value in report.items() if name != key})


def test_operators():
    operators = {row["name"]: row for row in report_of(training())["operators"]}
    time = {"sum": 2_600_000, "self": 200_000, "min": 550_000, "max": 750_000, "mean": 650_000, "std": 100_000}
    assert operators["aten::linear"] == {
        "name": "aten::linear",
        "count": 4,
        "time_ns": time,
        "gpu_time_ns": 0,
        "alloc_bytes": 0,
    }


def test_paths_carry_every_frame():
    path = report_of(training())["paths"][0]
    assert path["frames"][0] == {
        "kind": "process", "name": "train.py", "file": "", "line": 0, "short": "", "module": ""
    }  # fmt: skip
    assert path["frames"][-3] == {
        "kind": "python", "name": "Block.forward", "file": "/home/ada/gpt/model/gpt.py", "line": 12,
        "short": "model/gpt.py", "module": "",
    }  # fmt: skip
    assert path["place"] == {
        "file": "/home/ada/gpt/model/gpt.py", "short": "model/gpt.py", "line": 12, "function": "Block.forward"
    }  # fmt: skip


def test_meta_losses_and_cost():
    report = report_of(training())
    assert report["meta"]["program"] == "train.py --steps 2"
    assert report["meta"]["started_at"] == "2026-11-21T05:20:00Z"
    assert report["meta"]["frameworks"] == ["torch 2.13.0"]
    assert report["meta"]["estimates"] == []
    # Calls took 1 % of the run, and 1.2 times as much beside them: 2.2 of the 97.8 that are left.
    told = {"callbacks_ns": 120_000, "events": 40, "held_bytes": 65_536, "measured": False}
    assert report["cost"] == {**told, "percent": pytest.approx(100 * 2.2 / 97.8)}
    assert [(loss["kind"], loss["count"]) for loss in report["losses"]] == [
        ("free_unknown", 12),
        ("provider_unavailable", 1),
    ]


def test_the_text_is_ascii_whatever_the_names():
    assert render_json(build_report(hostile())).isascii()


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
META_KEYS = ["program", "host", "cost", "asked", "available", "wall_ns", "started_at_ns", "complete", "leadline"]
program = st.dictionaries(st.sampled_from(["argv", "python", "cwd", "torch"]), anything)
cost = st.dictionaries(st.sampled_from(["percent", "callbacks_ns", "events", "held_bytes"]), anything)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.sampled_from(META_KEYS), anything | program | cost))
def test_whatever_meta_says_the_report_is_valid(meta):
    base = training()
    report = report_of(Profile(base.tables, meta))
    VALIDATOR.validate(report)
    assert report["totals"]["time"]["sum"] == 5_000_000
