"""Which launches tools look at, and the kernel with the most of something: as a person types it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import leadline
from leadline.cli.main import main
from leadline.report.tools import tool_results

COUNTS = """
class Counts(Tool):
    events = {"launch": ["kernel"]}
    def start(self): self.n = self.counter()
    def launch(self, b): self.n.add(b["kernel"])
    def finish(self, out): out.table("kernels", self.n)
"""
Found = Callable[..., dict[str, Any]]


def drawn() -> str:
    """Nine launches of three kernels: `gemm` three times with much memory, `relu` five times with little, `io` once."""
    lines = [{"object": "big", "bytes": 1 << 20}, {"object": "small", "bytes": 1024}]
    launches = ["gemm", "relu", "relu", "gemm", "relu", "relu", "gemm", "relu", "io"]
    for number, kernel in enumerate(launches):
        lines.append({"event": "launch", "kernel": kernel, "place": f"train.py:{10 + len(kernel)}"})
        size, count = (1 << 20, 1 << 18) if kernel == "gemm" else (1024, 256)
        touched = {"object": "big" if kernel == "gemm" else "small", "bytes": size, "end": size, "reads": count}
        lines.append({"event": "touched", "launch": number, **touched, "place": f"train.py:{10 + len(kernel)}"})
    return "\n".join(map(json.dumps, lines))


@pytest.fixture
def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Found:
    """What a tool found in a run with these options over the drawn events."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "drawn.jsonl").write_text(drawn())
    (tmp_path / "mine.py").write_text(COUNTS)
    (tmp_path / "program.py").write_text("pass\n")

    def run(*arguments: str, tool: str = "Counts") -> dict[str, Any]:
        words = ["run", "-q", "-o", "x.leadline", "--backend", "fake:drawn.jsonl", *arguments, "program.py"]
        assert main(words) == 0
        (result,) = tool_results(leadline.open(tmp_path / "x.leadline"), tool)
        return dict(result.found)

    return run


def kernels(result: dict[str, Any]) -> dict[str, int]:
    (table,) = [one for one in result["outputs"] if one["kind"] == "table"]
    return {row[0]: row[1] for row in table["rows"]}


def test_kernels_are_chosen_by_their_names(found: Found) -> None:
    mine = ("--tool", "mine.py")
    assert kernels(found(*mine, "--kernel", "ge.m")) == {"gemm": 3}
    assert kernels(found(*mine, "--kernel", "^(gemm|io)$")) == {"gemm": 3, "io": 1}
    assert kernels(found(*mine, "--kernel-name", "io")) == {"io": 1}  # a level of --kernel, so by the other name
    result = found(*mine, "--kernel", "relu", "--every", "2", "--launch-range", "1:8")
    assert kernels(result) == {"relu": 3}
    assert result["launches_left_out"] == 6
    assert result["range"] == "launches 1 to 7, kernel relu, one of 2"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--kernel", "gemm"), "There is no level 'gemm' of the kernel's events; the levels are sched"),
        (("--kernel", "a", "--kernel-name", "b", "--tool", "mine.py"), "write 'a|b'"),
        (("--kernel", "(", "--tool", "mine.py"), "Cannot read the pattern '(' of --kernel"),
        (("--launch-range", "1:3"), "--launch-range is an option of event tools; add --tool NAME."),
        (("--phase", "backward"), "--phase is an option of event tools"),
        (("--every", "3"), "--launch-every is an option of event tools"),
        (("--most", "speed"), "Cannot read 'speed' of --most; write + - * / over launches, time"),
        (("--most", "bytes //"), "Cannot read 'bytes //' of --most"),
        (("--most", "__import__('os')"), "of --most; write + - * /"),
    ],
)
def test_what_makes_no_sense_is_said_before_the_program_starts(
    found: Found, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], sentence: str
) -> None:
    Path("program.py").write_text("print('started')\n")
    backend = ("--backend", "fake:drawn.jsonl") if "--tool" in words or "--most" in words else ()
    assert main(["run", *backend, *words, "program.py"]) == 2
    told = capsys.readouterr()
    assert sentence in told.err
    assert "started" not in told.out


def texts(result: dict[str, Any]) -> list[str]:
    return [one["text"].partition(";")[0] for one in result["outputs"] if one["kind"] == "text"]


def test_the_kernel_with_the_most_is_named_with_its_path(found: Found) -> None:
    result = found("--most", "launches,accesses,bytes/launches", tool="most")
    assert texts(result) == [
        "relu has most launches",
        "gemm has most accesses",
        "gemm has most bytes/launches",
    ]
    (first, *_) = [one["text"] for one in result["outputs"] if one["kind"] == "text"]
    assert "first launched at\n    drawn (train.py:14)" in first


def test_the_papers_own_names_ask_for_the_same(found: Found, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAX_CALLED_KERNEL", "1")
    assert texts(found(tool="most")) == ["relu has most launches"]
    monkeypatch.setenv("MAX_CALLED_KERNEL", "0")
    monkeypatch.setenv("MAX_MEM_REFERENCED_KERNEL", "1")
    assert texts(found(tool="most")) == ["gemm has most accesses"]
    monkeypatch.setenv("START_GRID_ID", "7")
    assert texts(found(tool="most")) == ["relu has most accesses"]
    monkeypatch.setenv("END_GRID_ID", "6")
    assert main(["run", "program.py"]) == 2
