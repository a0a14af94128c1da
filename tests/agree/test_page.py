"""What a person reads on the page, in a real browser, is what text and JSON say of the same file: recorded programs and
traces of others."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from tests.agree.test_programs import PROGRAMS
from tests.agree.test_traces import TRACES

from leadline.cli.main import main
from leadline.units import duration, number, percent

JS = Path(__file__).parents[1] / "js"
SOURCES = (
    "program mlp",
    "program loader",
    "program inference",
    "hta/nccl_data.json.gz",
    "hta/cuda_event_sync.json.gz",
    "triosim-vgg13-h100/profiler_vgg13-iter41.json",
)
QUICK = ("program mlp", "hta/nccl_data.json.gz")
MOST = 25
"""Rows of a table that are compared: the first of each."""


def _file(name: str, folder: Path) -> Path:
    if not name.startswith("program "):
        if not (TRACES / name).exists():
            pytest.skip("the shared traces are not here")
        return TRACES / name
    pytest.importorskip("torch")
    (folder / "program.py").write_text(PROGRAMS[name.removeprefix("program ")][0], encoding="utf-8")
    command = [sys.executable, "-m", "leadline", "run", "-q", "-o", "out.leadline", "program.py"]
    subprocess.run(command, cwd=folder, check=True, timeout=120, capture_output=True)
    return folder / "out.leadline"


def _said(verb: str, path: Path, *more: str) -> str:
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()):
        assert main([verb, str(path), *more]) in (0, 1)
    return out.getvalue()


@pytest.fixture(
    scope="module", params=[name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in SOURCES]
)
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Any, str]:
    """What the page shows, the JSON report, the text report."""
    chromium = shutil.which("chromium")
    if chromium is None or not (JS / "node_modules").exists():
        pytest.skip("Opening the page needs the program chromium and `npm ci` in tests/js.")
    folder = tmp_path_factory.mktemp("page")
    path = _file(request.param, folder)
    _said("report", path, "--format", "html", "-o", str(folder / "page.html"), "--force")
    done = subprocess.run(
        ["node", "agree.mjs", str(folder / "page.html")], cwd=JS, env={**os.environ, "CHROMIUM": chromium},
        capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), json.loads(_said("report", path, "--format", "json")), _said("report", path)


def _rows(page: dict[str, Any], table: str) -> list[dict[str, str]]:
    """The first rows by heading, and the whole name under `name`."""
    head, rows, names = (page[table][part] for part in ("head", "rows", "names"))
    return [{**dict(zip(head, row, strict=False)), "name": name} for row, name in zip(rows, names, strict=True)][:MOST]


def _squeezed(text: str) -> str:
    return " ".join(text.split())


def test_the_verdict_is_the_same_sentence(both: tuple[dict[str, Any], Any, str]) -> None:
    page, report, text = both
    assert page["errors"] == []
    verdict = report["verdict"]
    start = _squeezed(verdict["sentence"].split("   ")[0])[1:60]
    assert start in _squeezed(page["sentence"][0])
    assert start in _squeezed(text)
    assert page["step"] == [duration(verdict["account"]["wall_ns"])]
    for part in (part for bar in report["start"]["bars"] for part in bar["parts"][:2] if part["share"] > 0.05):
        assert f"{part['label']} {percent(part['share'])}" in _squeezed(page["overview"])


def test_tables_hold_the_rows_of_the_json_report(both: tuple[dict[str, Any], Any, str]) -> None:
    page, report, _ = both
    operators = {row["name"]: row for row in report["operators"]}
    shown = _rows(page, "operators")
    assert len(shown) == min(MOST, len(operators))
    for row in shown:
        wanted = operators[row["name"]]
        assert row["Calls"] == number(wanted["count"]), row["name"]
        assert row["Total"] == duration(wanted["time_ns"]["sum"]), row["name"]
        assert row["Self"] == duration(wanted["time_ns"]["self"]), row["name"]
    kernels = (report["gpu"] or {"kernels": []})["kernels"][:MOST]
    for row, wanted in zip(_rows(page, "kernels"), kernels, strict=False):  # both have the largest first
        assert wanted["name"].startswith(row["name"].removesuffix("…"))
        assert row["Total"] == duration(wanted["gpu_time_ns"]["sum"]), row["name"]
        assert row["Times"] == number(wanted["count"]), row["name"]


def test_figures_of_the_run_are_those_of_the_report(both: tuple[dict[str, Any], Any, str]) -> None:
    page, report, _ = both
    tiles = " ".join(_squeezed(one) for one in page["tiles"])
    assert f"Operator calls {number(report['operator_calls'])} " in tiles
    if report["meta"]["wall_ns"]:
        assert f"Wall time {duration(report['meta']['wall_ns'])}" in tiles
    for loss in report["losses"]:
        assert loss["kind"] in page["trust"]
    for split in report["time_split"]:
        assert duration(split["wall_ns"]) in page["trust"]
