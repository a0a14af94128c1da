"""Every command that Leadline suggests works as it is printed, whatever the input was."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from leadline.cli.main import main
from leadline.opening.commands import Kind, command_for, kind_of, output_for
from leadline.profiles import write_profile
from leadline.profiles.build import build

MS = 1_000_000
EVENT = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 10, "dur": 5}


def profile(rank: int = 0):
    made = build(
        f"process train.py | pid={5 + rank} rank={rank}\n  thread main | tid={5 + rank}\n    python main @ t.py:6\n"
        f"      operator aten::mm | time={99 * MS}/10 call_time={99 * MS}/10\n"
        f"    python main @ t.py:7\n      phase optimizer | time={MS}/10 call_time={MS}/10\n"
        f"    phase step | call_time={100 * MS}/10"
    )
    return made


def as_profile(folder: Path) -> str:
    write_profile(folder / "run.leadline", profile())
    return "run.leadline"


def as_trace(folder: Path) -> str:
    (folder / "a trace.pt.trace.json").write_text(json.dumps({"traceEvents": [EVENT]}))
    return "a trace.pt.trace.json"


def as_ranks(folder: Path) -> str:
    (folder / "job").mkdir()
    for rank in range(2):
        write_profile(folder / "job" / f"rank{rank}.leadline", profile(rank))
    return "job"


def as_traces(folder: Path) -> str:
    (folder / "traces").mkdir()
    for rank in range(2):
        text = json.dumps({"distributedInfo": {"rank": rank, "world_size": 2}, "traceEvents": [EVENT]})
        (folder / "traces" / f"rank{rank}.json").write_text(text)
    return "traces"


def as_table(folder: Path) -> str:
    (folder / "table.parquet").write_bytes(b"PAR1\0\0")
    return "table.parquet"


def as_notes(folder: Path) -> str:
    (folder / "notes").mkdir()
    (folder / "notes" / "a.txt").write_text("hello")
    return "notes"


INPUTS: dict[str, Callable[[Path], str]] = {
    "profile": as_profile,
    "trace": as_trace,
    "ranks": as_ranks,
    "traces": as_traces,
    "table": as_table,
    "notes": as_notes,
    "missing": lambda folder: "missing.leadline",
}
VERBS = (
    ["report"],
    ["analyze"],
    ["analyze", "--all"],
    ["why"],
    ["whatif"],
    ["timeline"],
    ["stats"],
    ["info"],
    ["report", "--training"],
    [],
)
_COMMAND = re.compile(r"`(leadline [^`]*)`|^(?:next)? +(leadline .*)$|(?::|with:) (leadline [^;]*?)\.?$", re.MULTILINE)
_TEMPLATE = re.compile(r"\b[A-Z]{3,}\b|^leadline (?:run|try|top|dump|attach)\b|--focus$")
"""Words for the user to fill in; what measures a program anew."""


def output_of(words: list[str]) -> tuple[int, str]:
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            code = main(words)
        except SystemExit as end:
            code = int(end.code or 0)
    return code, said.getvalue()


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
@pytest.mark.parametrize("kind", INPUTS)
def test_what_is_suggested_works(kind: str, verb: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "400")
    name = INPUTS[kind](tmp_path)
    code, said = output_of([*verb[:1], name, *verb[1:]])
    assert code in (0, 1, 2)
    assert "Traceback" not in said
    for found in _COMMAND.findall(said):
        command = "".join(found).strip()
        if _TEMPLATE.search(command):
            assert kind == "profile" or not command.startswith(f"leadline run {name}")
            continue
        code, answer = output_of(shlex.split(command)[1:])
        assert code in (0, 1), f"{command!r} of {said}\nsays {answer}"


@pytest.mark.parametrize("kind", ("profile", "trace", "ranks", "traces"))
def test_what_was_measured_is_never_run_as_a_program(kind: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    name = INPUTS[kind](tmp_path)
    code, said = output_of(["why", name, "--format", "json"])
    assert code == 0
    assert "account" in json.loads(said)
    assert output_of(["why", name, "--format", "json"]) == output_of(["why", "--format", "json", name])
    code, said = output_of(["why", name, "more"])
    assert code == 2
    assert said.rstrip().endswith("leave out more.")
    if Path(name).is_file():
        code, said = output_of(["run", name])
        assert code == 2
        assert "is a measured file, not a program" in said


@pytest.mark.parametrize("kind", ("table", "notes", "missing"))
def test_nothing_is_suggested_for_what_nothing_can_be_done_with(kind: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert command_for(INPUTS[kind](tmp_path)) == ""


def test_programs_and_scripts_are_told_from_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text, mode in (
        ("train.py", "pass", 0o644),
        ("tool", "#!/usr/bin/env python3\n", 0o644),
        ("go.sh", "#!/bin/sh\n", 0o755),
        ("data.bin", "numbers", 0o755),
        ("notes.sh", "#!/bin/sh\n", 0o644),
    ):
        Path(name).write_text(text)
        Path(name).chmod(mode)
    assert [command_for(name) for name in ("train.py", "tool", "go.sh", "data.bin", "notes.sh")] == [
        "leadline run train.py",
        "leadline run tool",
        "leadline run -- ./go.sh",
        "",
        "",
    ]
    Path("run.leadline.part").mkdir()
    assert command_for("run.leadline.part") == "leadline recover run.leadline.part"
    assert kind_of("https://host/run.leadline") is Kind.MEASURED


def test_what_is_made_of_a_trace_goes_to_the_working_folder() -> None:
    assert output_for("/data/rank0.pt.trace.json.gz", ".html") == "rank0.html"
    assert output_for("runs/a.leadline", ".html") == "runs/a.html"
    assert output_for("/data/ranks/", ".html") == "ranks.html"
