"""What the command line says about a mistake: one line that says what, why and what to do, in plain sentences."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

from leadline.cli.main import main
from leadline.profiles.build import build
from leadline.profiles.writer import write_profile

MOST_WORDS = 25
ADVICE = re.compile(r"; |\? ?|[.] [A-Z]|, or |`|: leadline")
NOBODY = str(2**22 + 1)  # larger than any process's number
MISTAKES = [
    ["run"],
    ["run", "missing.py"],
    ["run", "--", "no-such-command"],
    ["run", "--cpu-sample", "99999", "train.py"],
    ["run", "--trace", "5", "train.py"],
    ["run", "--budget", "x", "train.py"],
    ["run", "-o", "missing/x.leadline", "train.py"],
    ["run", "-o", "notes.txt", "train.py"],
    ["run", "-o", "-", "train.py"],
    ["run", "--shape", "train.py"],
    ["report", "missing.leadline"],
    ["report", "notes.txt"],
    ["report", "cut.leadline"],
    ["report", "empty.leadline"],
    ["report", "x.json"],
    ["report", "cut.json.gz"],
    ["report", "folder"],
    ["report", "p.leadline", "--format", "pdf"],
    ["report", "p.leadline", "-o", "train.py"],
    ["query", "p.leadline", "operator:* wher x"],
    ["attach", NOBODY],
    ["attach", "abc"],
    ["dump", NOBODY],
    ["top", NOBODY],
    ["diff", "p.leadline"],
    ["gate", "p.leadline"],
    ["whatif", "p.leadline"],
    ["timeline", "p.leadline"],
    ["analyze", "p.leadline", "--rule", "nope"],
    ["analyze", "p.leadline", "--set", "hotspot"],
    ["export", "p.leadline"],
    ["import", "x.json", "-o", "y.leadline"],
    ["merge", "missing", "-o", "j.leadline"],
    ["recover", "missing.leadline.part"],
    ["recover", "p.leadline"],
    ["redact", "p.leadline"],
    ["clock-sync", "foo"],
    ["frobnicate"],
    ["repot", "p.leadline"],
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_profile("p.leadline", build("process p\n  python f @ a.py:1 | cpu_sample=5"))
    Path("train.py").write_text("print('hi')\n")
    Path("notes.txt").write_text("hi\n")
    Path("x.json").write_text('{"a": 1}')
    Path("cut.leadline").write_bytes(Path("p.leadline").read_bytes()[:200])
    Path("empty.leadline").touch()
    Path("cut.json.gz").write_bytes(gzip.compress(b'{"traceEvents": []}' * 50)[:40])
    Path("folder").mkdir()
    return tmp_path


@pytest.mark.parametrize("words", MISTAKES, ids=" ".join)
def test_a_mistake_is_answered_by_what_why_and_what_to_do(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) != 0
    lines = [one for one in capsys.readouterr().err.splitlines() if not one.startswith("leadline: measuring")]
    assert len(lines) == 1, lines
    said = lines[0].removeprefix("leadline: ")
    assert said != lines[0]
    assert said[-1] in ".?"
    assert ADVICE.search(said), said
    for sentence in re.split(r"[.;?:] ", said):
        assert len(sentence.split()) <= MOST_WORDS, sentence


def test_the_nearest_option_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--shape", "train.py"]) == 2
    assert capsys.readouterr().err == "leadline: leadline run has no option --shape; did you mean --shapes?\n"
