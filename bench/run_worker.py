"""Start bench/worker.py in a fresh process and read what it measured."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

WORKER = Path(__file__).resolve().parent / "worker.py"


def run_worker(workload: str, mode: str, steps: int, directory: Path) -> dict[str, Any]:
    """The measurements of one run; raises RuntimeError with the program's last words when it failed."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LEADLINE")}
    done = subprocess.run(
        [sys.executable, str(WORKER), workload, mode, str(steps), str(directory)],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{workload} with {mode} ended with {done.returncode}: {done.stderr.strip()[-500:]}")
    measured: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return measured
