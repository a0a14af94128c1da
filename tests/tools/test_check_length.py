"""tools/check_length.py passes on this tree, and its ratchet turns one way only."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import check_length  # noqa: E402


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "tools").mkdir()
    return tmp_path


def write(tree: Path, name: str, lines: int) -> None:
    (tree / name).write_text("x = 1\n" * lines)


def check(tree: Path, *record: str) -> int:
    return check_length.main(["--root", str(tree), *(part for name in record for part in ("--record", name))])


def test_this_tree_passes() -> None:
    assert check_length.main(["--root", str(ROOT)]) == 0


def test_short_files_pass(tree: Path) -> None:
    write(tree, "a.py", 400)
    assert check(tree) == 0


def test_above_400_must_be_recorded(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tree, "a.py", 401)
    assert check(tree) == 1
    assert "a.py has 401 lines" in capsys.readouterr().err
    assert check(tree, "a.py") == 0
    assert json.loads((tree / "tools/lengths.json").read_text()) == {"a.py": 401}


def test_growth_fails_and_shrinking_passes(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tree, "a.py", 500)
    assert check(tree, "a.py") == 0
    write(tree, "a.py", 501)
    assert check(tree) == 1
    assert "grew from 500 to 501" in capsys.readouterr().err
    write(tree, "a.py", 450)
    assert check(tree) == 0


def test_above_800_fails_even_when_recorded(tree: Path) -> None:
    write(tree, "a.py", 801)
    assert check(tree, "a.py") == 1


def test_generated_and_ignored_files_do_not_count(tree: Path) -> None:
    (tree / ".gitignore").write_text("ignored.py\n")
    write(tree, "ignored.py", 900)
    (tree / "python/leadline").mkdir(parents=True)
    write(tree, "python/leadline/schema.py", 900)
    assert check(tree) == 0
