"""What an installation that was taken away in part does to a program with LEADLINE set: nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import leadline

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = Path(leadline.__file__).parent
PROGRAM = "import site, sys; site.addsitedir(sys.argv[1]); print('ran'); raise SystemExit(5)"
GONE = (
    "",
    "_autostart.py",
    "capture",
    "capture/errors.py",
    "_version.py",
    "_package.py",
    "_output.py",
    "capture/config.py",
)


@pytest.mark.parametrize("gone", GONE)
def test_the_program_runs_in_silence(gone: str, tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (site / "leadline.pth").write_bytes((ROOT / "leadline.pth").read_bytes())
    if gone:
        made = site / "leadline"
        for path in PACKAGE.rglob("*.py"):
            name = path.relative_to(PACKAGE)
            if str(name) == gone or str(name).startswith(f"{gone}/") or name.parts[0] not in ("capture", name.name):
                continue
            (made / name).parent.mkdir(parents=True, exist_ok=True)
            (made / name).symlink_to(path)
    environment = {**os.environ, "LEADLINE": str(tmp_path / "out.leadline")}
    environment.pop("PYTHONPATH", None)
    command = [sys.executable, "-S", "-c", PROGRAM, str(site)]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (5, "ran\n", "")


@pytest.mark.parametrize(
    "value", ["", "\n", "/", "/dev/null", "x" * 5000, "/nowhere/at/all", "\udcff", "LEADLINE=1", "-"]
)
@pytest.mark.parametrize("variable", ["LEADLINE", "LEADLINE_SESSION", "LEADLINE_OPTIONS"])
def test_odd_variables_leave_the_program_alone(variable: str, value: str, tmp_path: Path) -> None:
    environment = {**os.environ, "LEADLINE": str(tmp_path / "out.leadline"), variable: value}
    command = [sys.executable, "-c", "print('ran'); raise SystemExit(5)"]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (5, "ran\n")
    assert "Traceback" not in done.stderr and done.stderr.count("\n") <= 1
