"""A long run in short: memory and handles stay, and the files that rolled count every region (bench/soak.py)."""

import json
import subprocess
import sys
from pathlib import Path

SOAK = Path(__file__).parents[2] / "bench" / "soak.py"


def test_threads_forks_and_windows_come_and_go(tmp_path: Path) -> None:
    sizes = ["--operators", "2e6", "--threads", "1000", "--forks", "20", "--windows", "100", "--every", "1s"]
    done = subprocess.run(
        [sys.executable, str(SOAK), *sizes], cwd=tmp_path, capture_output=True, text=True, timeout=250
    )
    assert done.returncode == 0, done.stdout + done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["counted"] == said["wanted"] == 2_000_000 + 2 * 1120
