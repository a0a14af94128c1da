"""What verbs that run a program leave of the files that are there: whatever is no profile, and whatever is read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from leadline.cli.main import main
from leadline.profiles.build import build
from leadline.profiles.writer import write_profile

PROGRAM = "import sys\nopen('ran', 'w').close()\n"
FOREIGN = {
    "weights.pt": b"\x80\x02weights",
    "notes.md": b"# My notes\n",
    "data.json": b'{"mine": 1}',
    "x.leadline": b"PK",
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(PROGRAM)
    return tmp_path


@pytest.mark.parametrize("name", FOREIGN)
@pytest.mark.parametrize("verb", [["run"], ["why"], ["demo", "--steps", "1"]], ids=lambda verb: verb[0])
def test_a_file_that_is_no_profile_stays_and_nothing_runs(
    verb: list[str], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(name).write_bytes(FOREIGN[name])
    words = [*verb, "-o", name] + (["train.py"] if verb[0] != "demo" else [])
    assert main(words) == 2
    assert Path(name).read_bytes() == FOREIGN[name] and not Path("ran").exists()
    assert "Will not replace" in capsys.readouterr().err


@pytest.mark.parametrize("word", ["old.leadline", "./old.leadline", "--from=old.leadline", "link"])
@pytest.mark.parametrize("verb", ["run", "why"])
def test_a_profile_that_the_program_reads_is_not_what_it_is_measured_into(
    verb: str, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_profile("old.leadline", build("process p\n  python f @ a.py:1 | cpu_sample=5"))
    Path("link").symlink_to("old.leadline")
    before = Path("old.leadline").read_bytes()
    assert main([verb, "-o", "old.leadline", "train.py", word]) == 2
    assert Path("old.leadline").read_bytes() == before and not Path("ran").exists()
    assert "it is the file that is read" in capsys.readouterr().err


def test_a_page_of_the_users_survives_a_demo(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    Path("demo.html").write_text("<!doctype html><title>Mine</title>")
    assert main(["demo", "--steps", "1"]) == 2
    assert "Mine" in Path("demo.html").read_text()


def measured(*words: str) -> str:
    """What `leadline run` says in a process of its own."""
    command = [sys.executable, "-m", "leadline", "run", *words, "train.py"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_a_run_says_that_it_replaces_a_profile_and_keeps_it_when_asked() -> None:
    write_profile("train.leadline", build("process p\n  python f @ a.py:1 | cpu_sample=5"))
    first = Path("train.leadline").read_bytes()
    said = measured("--keep-old")
    assert "keeping the older profile as train.1.leadline" in said
    assert "replace" not in said
    assert Path("train.1.leadline").read_bytes() == first
    second = Path("train.leadline").read_bytes()
    assert second != first
    said = measured("--keep-old")
    assert "train.2.leadline" in said and Path("train.2.leadline").read_bytes() == second
    said = measured()
    assert said.count("replaces the older profile train.leadline; --keep-old keeps it") == 1
    assert sorted(path.name for path in Path().glob("*.leadline")) == [
        "train.1.leadline",
        "train.2.leadline",
        "train.leadline",
    ]


def test_what_is_kept_is_no_second_copy_where_nothing_was_measured() -> None:
    write_profile("ls.leadline", build("process p\n  python f @ a.py:1 | cpu_sample=5"))
    command = [sys.executable, "-m", "leadline", "run", "--keep-old", "-o", "ls.leadline", "--", "true"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert "Nothing was measured" in done.stderr
    assert [path.name for path in Path().glob("*.leadline")] == ["ls.leadline"]
