"""`leadline why` says what it cannot run or read before it says that it measures."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline.cli import main as cli


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nothere.py"], "Cannot run nothere.py: there is no such file"),
        (["--", "no-such-command"], "Cannot run no-such-command: no such command"),
        (["notes.txt"], "notes.txt is not a profile, a trace that Leadline can read, or a Python script"),
    ],
)
def test_what_cannot_be_measured_is_said_first(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("hello world\n")
    assert cli.main(["why", *words]) != 0
    text = capsys.readouterr().err
    assert said in text
    assert "measuring" not in text
    assert not list(tmp_path.glob("*.leadline"))
