"""Every verb on a terminal that cannot show every character: an answer and an exit code, never a traceback."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from leadline.cli.main import main
from leadline.profiles.build import build
from leadline.profiles.writer import write_profile

DRAWING = """
process épée漢.py | pid=5
  thread 漢 | tid=5 wall_ns=9000 operator_ns=5000
    python épée漢 @ /a/épée漢.py:1
      region 漢字
        operator aten::mm#漢 | time=5000 call_time=5000 alloc_bytes=64
"""
NAME = "épée-漢.leadline"

VERBS = [
    ["report", NAME],
    ["report", NAME, "--format", "markdown"],
    ["report", NAME, "--format", "json"],
    ["report", NAME, "--format", "html"],
    ["analyze", NAME],
    ["analyze", NAME, "--format", "markdown"],
    ["analyze", NAME, "--format", "sarif"],
    ["analyze", NAME, "--format", "html"],
    ["analyze", "--list"],
    ["query", NAME, "operator:* by line"],
    ["query", NAME, "region:*", "--format", "csv"],
    ["summary", NAME],
    ["diff", NAME, NAME],
    ["diff", NAME, NAME, "--format", "markdown"],
    ["diff", NAME, NAME, "--format", "html"],
    ["gate", NAME, "--against", NAME],
    ["whatif", "--list"],
    ["recover", "漢.leadline.part"],
    ["report", "漢.leadline"],
]


@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
@pytest.mark.parametrize("words", VERBS, ids=" ".join)
def test_every_verb_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], encoding: str) -> None:
    write_profile(tmp_path / NAME, build(DRAWING))
    monkeypatch.chdir(tmp_path)
    streams = {"stdout": io.TextIOWrapper(io.BytesIO(), encoding), "stderr": io.TextIOWrapper(io.BytesIO(), encoding)}
    streams["stderr"].reconfigure(errors="backslashreplace")  # as Python opens it
    for name, stream in streams.items():
        monkeypatch.setattr(sys, name, stream)
    code = main(words)
    for stream in streams.values():
        stream.flush()
    printed, said = (stream.buffer.getvalue() for stream in streams.values())
    assert code in (0, 1, 2)
    assert printed or said.startswith(b"leadline: ")
    if "html" in words:
        assert printed.decode("utf-8").lower().startswith("<!doctype html>")
    else:
        printed.decode(encoding)


def test_signs_that_a_terminal_lacks_become_plain_characters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_profile(
        tmp_path / "a.leadline",
        build("python main @ /a/t.py:1\n  region r\n    operator mm | time=5000 call_time=5000"),
    )
    terminal = io.TextIOWrapper(io.BytesIO(), "ascii")
    monkeypatch.setattr(sys, "stdout", terminal)
    assert main(["report", str(tmp_path / "a.leadline"), "--format", "markdown"]) == 0
    terminal.flush()
    printed = terminal.buffer.getvalue().decode("ascii")
    assert "5.00 us" in printed and "?" not in printed
