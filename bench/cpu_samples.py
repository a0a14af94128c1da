"""What CPU samples cost: CPU time of the same work without Leadline, under it without samples, and with samples.

python bench/cpu_samples.py            writes bench/results/cpu-samples.md

The modes take turns; each run is a process of its own that says what CPU time it used from the first line of the work
to its end, with all its threads.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

WORK = """
import time
begin = time.process_time()
def inner(n):
    total = 0
    for i in range(n):
        total += i * i % 7
    return total
def outer(n):
    return [inner(n) for _ in range(20)]
def deep(depth, n):
    return deep(depth - 1, n) if depth else outer(n)
for _ in range(12):
    deep(40, 60_000)
print(time.process_time() - begin)
"""
MODES: dict[str, tuple[str, ...] | None] = {
    "without Leadline": None,
    "no samples": (),
    "99 Hz": ("--cpu-sample", "99"),
    "99 Hz, native frames": ("--cpu-sample", "99", "--native"),
    "999 Hz": ("--cpu-sample", "999"),
}


def main() -> None:
    """Measure and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    seconds: dict[str, list[float]] = {mode: [] for mode in MODES}
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder) / "work.py"
        work.write_text(WORK, encoding="utf-8")
        for _ in range(rounds):
            for mode, options in MODES.items():
                seconds[mode].append(_run(work, options))
    base = statistics.median(seconds["no samples"])
    lines = [
        "# CPU samples",
        "",
        f"`bench/cpu_samples.py`, {rounds} rounds, CPU seconds of pure Python 62 frames deep; Python "
        f"{platform.python_version()}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}. The kernel's tick limits "
        "999 Hz to what it gives (docs/cpu-samples.md).",
        "",
        "| mode | median s | least s | of no samples (medians) | of no samples (least) |",
        "|---|---|---|---|---|",
    ]
    least = min(seconds["no samples"])
    for mode, found in seconds.items():
        middle = statistics.median(found)
        lines.append(f"| {mode} | {middle:.3f} | {min(found):.3f} | {middle / base:.3f} | {min(found) / least:.3f} |")
    text = "\n".join(lines) + "\n"
    (Path(__file__).parent / "results" / "cpu-samples.md").write_text(text, encoding="utf-8")
    print(text)


def _run(work: Path, options: tuple[str, ...] | None) -> float:
    before = [] if options is None else ["-m", "leadline.cli.main", "run", "-q", *options]
    result = subprocess.run(
        [sys.executable, *before, work.name], cwd=work.parent, capture_output=True, text=True, check=True
    )
    return float(result.stdout)


if __name__ == "__main__":
    main()
