"""How `leadline run` ends where there is nothing to break down."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SHORT = "nothing to break down"


def run(folder: Path, *words: str) -> str:
    command = [sys.executable, "-X", "importtime", "-m", "leadline", "run", "-o", "x.leadline", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_a_program_without_operators_that_ends_at_once_has_one_line_and_loads_no_report(tmp_path: Path) -> None:
    said = run(tmp_path, "-c", "pass")
    (line,) = [one for one in said.splitlines() if one.startswith("leadline: ") and "measuring" not in one]
    assert SHORT in line and line.endswith("the profile is x.leadline.")
    assert "numpy" not in said and (tmp_path / "x.leadline").exists()


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ((), "import leadline\nwith leadline.region('work'): pass"),
        ((), "import select; select.select([], [], [], 1.1)"),
        (("--cpu-sample", "500"), "pass"),
        (("--trace", "seconds=1,wait=0"), "pass"),
        ((), "from leadline import _native; _native.count_loss('internal_error', 1, 'lost on purpose')"),
    ],
    ids=["region", "long", "samples were asked for", "window", "loss"],
)
def test_whoever_measured_or_lost_something_has_a_summary(options: tuple[str, ...], code: str, tmp_path: Path) -> None:
    said = run(tmp_path, *options, "-c", code)
    assert SHORT not in said and "quality   " in said
