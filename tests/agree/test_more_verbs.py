"""Verbs beside those of test_verbs: `why`, `gate`, `query` in both languages, `export`, `timeline`, mcp, over traces of
others."""

from __future__ import annotations

import csv
import io
import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from tests.agree.test_traces import TRACES
from tests.agree.test_verbs import SAMPLE, as_json, told

from leadline.agent import answers
from leadline.cli.main import main
from leadline.sources import ROOT_VARIABLE


@pytest.fixture(params=SAMPLE, ids=lambda name: name)
def trace(request: pytest.FixtureRequest) -> str:
    if not (TRACES / request.param).exists():
        pytest.skip("the shared traces are not here")
    return str(request.param)


def squeezed(text: str) -> str:
    return " ".join(text.split())


def test_why_report_and_mcp_give_one_verdict(trace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ROOT_VARIABLE, str(TRACES))  # of which an agent may read
    verdict = as_json("report", trace)["verdict"]
    start = squeezed(verdict["sentence"].split("   ")[0])[:60]
    assert start in squeezed(told("why", trace))
    assert start in squeezed(told("report", trace))
    assert start in squeezed(answers.why(str(TRACES / trace)))


def test_a_file_passes_the_gate_against_itself(trace: str) -> None:
    path = str(TRACES / trace)
    with redirect_stdout(io.StringIO()) as out:
        assert main(["gate", path, "--baseline", path]) == 0, out.getvalue()
    assert out.getvalue().startswith("gate: passed")


def test_queries_in_both_languages_sum_up_to_the_report(trace: str) -> None:
    report = as_json("report", trace)
    own = "select name, sum(sum) as own from metrics join nodes using (node)"
    sql = f"{own} where metric = 'time' and kind = 'operator' group by name"
    with redirect_stdout(io.StringIO()) as out:
        assert main(["query", "--sql", str(TRACES / trace), sql, "--format", "json"]) == 0
    by_name = {row["name"]: row["own"] for row in json.loads(out.getvalue())}
    for row in report["operators"][:10]:
        assert by_name.get(row["name"], 0) == row["time_ns"]["self"], row["name"]
    for row in [one for one in report["operators"] if one["name"].startswith("aten::")][:3]:
        asked = json.loads(told("query", trace, f"operator:{row['name']} top 100000", "--format", "json"))
        assert sum(one["self"] for one in asked["rows"]) == row["time_ns"]["self"], row["name"]


def test_an_export_weighs_what_the_report_measured(trace: str, tmp_path: Path) -> None:
    """Collapsed stacks of wall time in operators."""
    total = as_json("report", trace)["totals"]["time"]["sum"]
    out = tmp_path / "stacks.txt"
    with redirect_stderr(io.StringIO()), redirect_stdout(io.StringIO()):
        assert main(["export", str(TRACES / trace), "--format", "collapsed", "--metric", "time", "-o", str(out)]) == 0
    weights = [int(line.rsplit(" ", 1)[1]) for line in out.read_text(encoding="utf-8").splitlines() if line]
    assert sum(weights) == pytest.approx(total, rel=1e-6, abs=len(weights) * 1000)


def test_the_timeline_shows_no_more_than_the_run(trace: str) -> None:
    wall = as_json("info", trace, "--json")["wall_ns"]
    rows = list(csv.DictReader(io.StringIO(told("timeline", trace, "--format", "csv"))))
    assert rows
    for row in rows:
        for name, value in row.items():
            if name.endswith("_ns") and value and not name.startswith(("start", "end")):
                assert int(float(value)) <= wall + 1, (name, row)  # ns of rounded microseconds
