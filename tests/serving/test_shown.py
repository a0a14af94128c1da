"""What an engine did is the same in text, Markdown, JSON and page."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from tests.analysis.drawn_engines import served

from leadline.engines import engines_of
from leadline.profiles.build import build
from leadline.report import ReportOptions, build_report
from leadline.report.html import page_report
from leadline.report.json_report import report_object
from leadline.report.markdown import render_markdown
from leadline.report.text import render_text

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "json-report.schema.json").read_text())


@pytest.mark.parametrize("problem", ["even", "preempted", "growing"])
def test_the_json_report_adds_up_and_keeps_to_its_schema(problem: str) -> None:
    profile = served(problem)()
    report = build_report(profile, ReportOptions(), "x.leadline")
    made = json.loads(json.dumps(report_object(report), allow_nan=False))
    jsonschema.Draft202012Validator(SCHEMA).validate(made)
    serving = made["serving"]
    assert serving["steps_ns"] + serving["between_steps_ns"] + serving["no_work_ns"] == serving["serving_ns"]
    assert sum(serving["ended"].values()) == serving["requests"]["e2e_ns"]["count"] == 60
    assert serving["requests"]["output_tokens"]["sum"] == 60 * 20
    assert serving["preemptions"] == (15 if problem == "preempted" else 0)
    assert len(serving["slowest"]) == 20
    assert serving["slowest"][0]["e2e_ns"] == serving["requests"]["e2e_ns"]["max"]
    assert page_report(report)["serving"] == report_object(report)["serving"]


def test_text_and_markdown_say_what_the_json_says() -> None:
    report = build_report(served("even")(), ReportOptions(), "x.leadline")
    serving = report_object(report)["serving"]
    text, markdown = render_text(report, 160), render_markdown(report)
    for fact in serving["facts"]:
        assert fact in text
        assert fact.replace("<", "&lt;") in markdown
    for one in serving["tables"][:3]:
        for row in one["rows"]:
            assert any(all(cell in line for cell in row) for line in text.splitlines()), row


def test_the_first_line_of_a_server_is_about_engine_steps() -> None:
    report = build_report(served("even")(), ReportOptions(verdict=True), "x.leadline")
    engine = engines_of(served("even")().meta)[0]
    assert report.verdict is not None
    assert report.verdict.title.startswith(f"{engine.number_of_steps:,} engine steps, ")
    assert report.verdict.sentence.startswith("serves 60 requests")
    assert report.start is None or report.start.title == report.verdict.title


def test_without_an_engine_there_is_none() -> None:
    assert report_object(build_report(build("process idle.py"), ReportOptions(), "x"))["serving"] is None
