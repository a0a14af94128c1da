"""`leadline prove`: two scripts, and two revisions of one."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.trials.programs import STEPS, leadline, write_program

_SHORT = ("--steps", "12", "--warm-up", "2", "--format", "json")


def test_a_script_that_is_twice_as_fast_is_faster(tmp_path: Path) -> None:
    write_program(tmp_path)
    (tmp_path / "after.py").write_text(STEPS.replace("pace.SECONDS", "pace.SECONDS / 2"))
    found = json.loads(leadline("prove", *_SHORT, "train.py", "after.py", cwd=tmp_path).stdout)
    assert [row["name"] for row in found["rows"]] == ["train.py", "after.py"]
    assert found["rows"][1]["verdict"] == "faster"


def test_a_script_that_is_slower_fails(tmp_path: Path) -> None:
    write_program(tmp_path)
    (tmp_path / "after.py").write_text(STEPS.replace("pace.SECONDS", "pace.SECONDS * 2"))
    found = json.loads(leadline("prove", *_SHORT, "train.py", "after.py", cwd=tmp_path, code=1).stdout)
    assert found["rows"][1]["verdict"] == "slower"


def _git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    done = subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout


def test_two_revisions_are_compared_and_the_checkout_stays_as_it_is(tmp_path: Path) -> None:
    write_program(tmp_path)
    _git(tmp_path, "init", "-q")
    _git(tmp_path, "add", ".")
    _git(tmp_path, "commit", "-qm", "one")
    (tmp_path / "pace.py").write_text("SECONDS = 0.004\n")
    _git(tmp_path, "commit", "-qam", "two")
    (tmp_path / "pace.py").write_text("SECONDS = 'uncommitted'\n")
    done = leadline("prove", *_SHORT, "--git", "HEAD~1", "HEAD", "--", "train.py", "40", cwd=tmp_path)
    found = json.loads(done.stdout)
    assert found["rows"][1]["verdict"] == "faster"
    assert (tmp_path / "pace.py").read_text() == "SECONDS = 'uncommitted'\n"
    assert _git(tmp_path, "worktree", "list").count("\n") == 1


def test_a_revision_that_does_not_exist_is_a_sentence(tmp_path: Path) -> None:
    write_program(tmp_path)
    _git(tmp_path, "init", "-q")
    _git(tmp_path, "add", ".")
    _git(tmp_path, "commit", "-qm", "one")
    done = leadline("prove", "--git", "HEAD", "nowhere", "--", "train.py", cwd=tmp_path, code=2)
    assert done.stderr == "leadline: There is no revision 'nowhere'.\n"
    done = leadline("prove", "--git", "HEAD", "HEAD", "--", "other.py", cwd=tmp_path, code=2)
    assert "has no other.py" in done.stderr


def test_without_a_repository_or_a_second_program_it_is_a_sentence(tmp_path: Path) -> None:
    write_program(tmp_path)
    done = leadline("prove", "--git", "A", "B", "--", "train.py", cwd=tmp_path, code=2)
    assert "no git repository" in done.stderr
    assert "leadline prove BEFORE.py AFTER.py" in leadline("prove", "train.py", cwd=tmp_path, code=2).stderr
    assert "no such file" in leadline("prove", "train.py", "none.py", cwd=tmp_path, code=2).stderr
