"""`tools/proven.py`: what passed is not run again with the same inputs, and everything else is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with the script, a folder `src` and a check that notes each of its runs."""
    place = tmp_path / "checkout"
    (place / "tools").mkdir(parents=True)
    (place / "src").mkdir()
    (place / "tools" / "proven.py").write_text((ROOT / "tools" / "proven.py").read_text())
    (place / "src" / "a.cpp").write_text("int a;")
    (place / "other.txt").write_text("not an input")
    subprocess.run(["git", "init", "-q", str(place)], check=True)
    subprocess.run(["git", "add", "."], cwd=place, check=True)
    return place


def prove(checkout: Path, status: int = 0, **environment: str) -> tuple[int, int]:
    """The exit status, and how often the check has run until now."""
    check = f"echo run >> ../runs; exit {status}"
    done = subprocess.run(
        [sys.executable, "tools/proven.py", "one", "src", "--", "sh", "-c", check.replace("..", str(checkout.parent))],
        cwd=checkout,
        env={"PATH": "/usr/bin:/bin", "XDG_CACHE_HOME": str(checkout.parent / "cache"), **environment},
        capture_output=True,
        check=False,
    )
    runs = checkout.parent / "runs"
    return done.returncode, len(runs.read_text().split()) if runs.exists() else 0


def test_the_same_inputs_are_proven_once(checkout: Path) -> None:
    assert prove(checkout) == (0, 1)
    assert prove(checkout) == (0, 1)
    (checkout / "other.txt").write_text("changed")
    assert prove(checkout) == (0, 1)
    assert prove(checkout, LEADLINE_PROVE_AGAIN="1") == (0, 2)


def test_a_changed_or_new_file_is_proven_again(checkout: Path) -> None:
    assert prove(checkout) == (0, 1)
    (checkout / "src" / "a.cpp").write_text("int b;")
    assert prove(checkout) == (0, 2)
    (checkout / "src" / "b.cpp").write_text("")
    assert prove(checkout) == (0, 3)


def test_a_failure_is_not_remembered(checkout: Path) -> None:
    assert prove(checkout, status=3) == (3, 1)
    assert prove(checkout, status=3) == (3, 2)
