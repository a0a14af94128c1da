"""Findings in every format, and the verb that prints them."""

from __future__ import annotations

import json

import pytest
from tests.report.drawings import HOSTILE

from leadline.analysis.analyze import analyze
from leadline.analysis.findings import Finding, Findings, Gain, Line, NotApplicable, Severity
from leadline.cli.main import main
from leadline.profiles import open_profile
from leadline.profiles.build import build
from leadline.profiles.writer import write_profile
from leadline.report.findings import FORMATS, as_html, as_sarif

WAITING = """
process train.py | pid=5
  thread MainThread | tid=5
    python main @ /home/ada/train.py:41
      phase data loading | time=60000000/10 call_time=60000000/10
    python main @ /home/ada/train.py:44
      phase optimizer | time=40000000/10 call_time=40000000/10
"""


@pytest.fixture
def file(tmp_path):
    profile = build(WAITING)
    profile.meta["program"] = {"argv": ["train.py"], "cwd": "/home/ada"}
    write_profile(tmp_path / "run.leadline", profile)
    return str(tmp_path / "run.leadline")


def hostile() -> Findings:
    made = [
        Finding(
            "hotspot",
            Severity.WARNING,
            text,
            Gain(0, 1, 2, text, "step", 10),
            (1,),
            (Line(text, 1 + i, text, text, text, text), Line("/a b/c.py", 0, "", "/a b/c.py")),
            (text,),
            text,
        )
        for i, text in enumerate(HOSTILE)
    ]
    return Findings(tuple(made), (NotApplicable("x", HOSTILE[0]),), (), 10, 100, (HOSTILE[3],))


def test_every_format_says_what_was_found(file, capsys, tmp_path):
    for name, ending in [("text", "txt"), ("markdown", "md"), ("json", "json"), ("sarif", "sarif"), ("html", "html")]:
        assert main(["analyze", file, "--format", name]) == 0
        printed = capsys.readouterr().out
        assert "waits for data 60" in printed
        assert "train.py" in printed
        assert main(["analyze", file, "-o", str(tmp_path / f"out.{ending}")]) == 0
        if name != "text":  # which wraps at the terminal's width
            assert (tmp_path / f"out.{ending}").read_text() == printed


def test_the_json_has_the_keys_that_are_promised(file, capsys):
    main(["analyze", file, "--format", "json"])
    shown = json.loads(capsys.readouterr().out)
    one = shown["findings"][0]
    promised = {"rule", "severity", "title", "gain", "paths", "lines", "evidence", "remedy", "learn_more"}
    assert promised <= one.keys()
    assert {"low_ns", "expected_ns", "high_ns", "basis"} <= one["gain"].keys()
    assert all(set(left_out) == {"rule", "reason"} for left_out in shown["not_applicable"])


def test_sarif_is_valid_and_relative():
    pydantic = pytest.importorskip("sarif_pydantic", reason="needs sarif-pydantic")
    profile = build(WAITING)
    profile.meta["program"] = {"cwd": "/home/ada"}
    text = as_sarif(analyze(profile))
    log = pydantic.Sarif.model_validate_json(text)
    result = log.runs[0].results[0]
    assert result.rule_id == "data_loading"
    place = result.locations[0].physical_location
    assert place.artifact_location.uri == "train.py"
    assert place.region.start_line == 41
    pydantic.Sarif.model_validate_json(as_sarif(hostile()))
    moved = WAITING.replace(":41", ":57").replace("60000000", "61000000")
    again = build(moved)
    again.meta["program"] = {"cwd": "/home/ada"}
    prints = [
        json.loads(one)["runs"][0]["results"][0]["partialFingerprints"] for one in (text, as_sarif(analyze(again)))
    ]
    assert prints[0] == prints[1], "an edit above the line makes no new alert"


@pytest.mark.parametrize("name", FORMATS)
def test_nothing_in_a_profile_breaks_out_of_a_format(name):
    text = FORMATS[name](hostile())
    assert "\x1b" not in text
    assert "\u202e" not in text or name == "json"
    if name == "html":
        assert "<script" not in text
        assert "<img" not in text
    if name in ("json", "sarif"):
        json.loads(text)


def test_the_page_stands_alone():
    assert "http" not in as_html(analyze(build(WAITING)))


def test_saved_findings_are_in_the_file_and_the_profile_stays_itself(file):
    before = open_profile(file)
    assert main(["analyze", file, "--save"]) == 0
    after = open_profile(file)
    assert after.meta["findings"]["findings"][0]["rule"] == "data_loading"
    assert after.tree.root.inclusive("time") == before.tree.root.inclusive("time")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--rule", "data_loadin"], "did you mean data_loading"),
        (["--set", "hotspot=1"], "is not RULE.KEY=VALUE"),
        (["--set", "hotspot.x=1"], "hotspot has no option"),
        (["--rule", "none.py"], "no rule file"),
    ],
)
def test_mistakes_are_one_sentence_and_exit_code_2(file, arguments, sentence, capsys):
    assert main(["analyze", file, *arguments]) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1


def test_no_file_is_a_sentence(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert main(["analyze"]) == 2
    assert "No FILE was given" in capsys.readouterr().err


def test_the_list_says_why_each_default_is_what_it_is(capsys):
    assert main(["analyze", "--list"]) == 0
    shown = capsys.readouterr().out
    assert "data_loading: Does the training loop wait" in shown
    assert "share (default 20 %): below this" in shown


def test_what_analyze_saved_stands_in_every_report(tmp_path, capsys):
    path = tmp_path / "p.leadline"
    write_profile(path, build(WAITING))
    assert main(["analyze", str(path), "--save"]) == 0
    capsys.readouterr()
    for form in ("text", "markdown"):
        assert main(["report", str(path), "--format", form]) == 0
        shown = capsys.readouterr().out
        assert "waits for data" in shown, form
        assert "train.py:41" in shown.replace("\\", ""), form
    assert main(["report", str(path), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["findings"]["findings"][0]["rule"] == "data_loading"
