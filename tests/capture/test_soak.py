"""A long run in short: memory and handles stay, and the files that rolled count every region (bench/soak.py)."""

import json
import subprocess
import sys
from pathlib import Path

SOAK = Path(__file__).parents[2] / "bench" / "soak.py"


def test_threads_forks_and_windows_come_and_go(tmp_path: Path) -> None:
    # Beside other tests, memory is first used later than on an idle machine: over the last half 4 MiB are allowed, 4 bytes
    # an operator or 8 kB a thread. `make soak` allows 1 MiB in ten minutes.
    growth, sizes = ["--most-growth", str(4 << 20)], ["--operators", "2e6", "--threads", "1000", "--forks", "20"]
    done = subprocess.run(
        [sys.executable, str(SOAK), *growth, *sizes, "--windows", "100", "--every", "1s"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=250,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["counted"] == said["wanted"] == 2_000_000 + 2 * 1120
