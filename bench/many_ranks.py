"""What it takes to fold the files of many ranks, and that every way of doing it makes the same file.

    python bench/many_ranks.py [--ranks 512] [--nodes 20000] [--schedulers here,processes:2,dask:2] [--kill-after S]
                               [--results FOLDER]

Each rank has the same synthetic tree as in load.py and measurements of its own. Time is CPU time of all processes,
since the machine is shared; memory is the largest sum over the processes of one merge, asked for every tenth of a
second. With --kill-after a process that folds gets SIGKILL after so many seconds. Exit code 1 where one way makes
another file, or where 512 ranks of 20,000 nodes take more than 1 GB, or one process more than 60 s of CPU time.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from common import add_results_option, machine, markdown_table, megabytes, write_results
from leadline.profiles.builder import synthetic_meta
from leadline.profiles.profile import Profile
from leadline.profiles.tables import Tables
from leadline.profiles.writer import write_profile
from load import _metrics, synthetic_tables

_MUST_S, _MUST_BYTES = 60.0, 1e9


def write_ranks(folder: Path, ranks: int, nodes: int) -> int:
    """The files of all ranks; returns their bytes."""
    tables = synthetic_tables(nodes)
    written = 0
    for rank in range(ranks):
        start_ns = 10**18 + rank
        changed = {
            "rank": np.array([rank], "<i4"),
            "pid": np.array([1000 + rank], "<u4"),
            "start_ns": np.array([start_ns], "<i8"),
            "end_ns": np.array([start_ns + 10**12], "<i8"),
            "complete": np.array([1], "|u1"),
        }
        columns = {
            **tables.columns,
            "processes": {**tables["processes"], **changed},
            "threads": {**tables["threads"], "tid": np.array([1000 + rank], "<u8")},
            "metrics": _metrics(nodes, np.random.default_rng(rank)),
        }
        record = {"pid": 1000 + rank, "hostname": f"node{rank // 8}", "started_at_ns": start_ns}
        launch = {"job": "bench", "world_size": ranks}
        meta = {**synthetic_meta(), "processes": [{**record, "launch": launch}]}
        path = folder / f"rank{rank}.leadline"
        write_profile(path, Profile(Tables(columns), meta))
        written += path.stat().st_size
    return written


def merge(folder: Path, output: Path, scheduler: str, kill_after_s: float) -> dict[str, Any]:
    """One merge in processes of its own."""
    words = [sys.executable, "-m", "leadline", "merge", str(folder), "-o", str(output)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    process = subprocess.Popen([*words, *(["--scheduler", scheduler] if scheduler != "here" else [])])
    peak, killed = 0, 0
    while process.poll() is None:
        resident = {pid: _resident(pid) for pid in _family(process.pid)}
        peak = max(peak, sum(resident.values()))
        folding = [pid for pid in resident if pid != process.pid and "spawn_main" in _command(pid)]
        if kill_after_s and not killed and folding and time.monotonic() - began > kill_after_s:
            killed = max(folding, key=lambda pid: resident[pid])
            os.kill(killed, signal.SIGKILL)
        time.sleep(0.1)
    if process.returncode:
        raise SystemExit(f"merging with {scheduler} failed")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "scheduler": f"{scheduler}, one process killed" if killed else scheduler,
        "cpu_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "wall_s": time.monotonic() - began,
        "peak_bytes": peak,
        "sha256": hashlib.sha256(output.read_bytes()).hexdigest(),
        "file_bytes": output.stat().st_size,
    }


def _family(pid: int) -> list[int]:
    found = [pid]
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = path.read_text().split()
        except OSError:
            continue
        found += [one for child in children for one in _family(int(child))]
    return found


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:
        return 0


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Measure folding many ranks.")
    parser.add_argument("--ranks", type=int, default=512)
    parser.add_argument("--nodes", type=int, default=20_000)
    parser.add_argument("--schedulers", default="here,processes:2,dask:2")
    parser.add_argument("--kill-after", type=float, default=0.0, metavar="S")
    parser.add_argument("--files", type=Path, metavar="FOLDER", help="of an earlier run; or where they shall stay")
    parser.add_argument("--name", default="many_ranks", help="of the table")
    add_results_option(parser)
    arguments = parser.parse_args(argv)
    facts = machine()
    with tempfile.TemporaryDirectory() as name:
        ranks = arguments.files or Path(name) / "ranks"
        ranks.mkdir(exist_ok=True)
        written = sum(path.stat().st_size for path in ranks.glob("*.leadline"))
        written = written or write_ranks(ranks, arguments.ranks, arguments.nodes)
        output, kill = Path(name) / "job.leadline", arguments.kill_after
        runs = [merge(ranks, output, one, kill) for one in arguments.schedulers.split(",")]
    rows = [
        [
            run["scheduler"],
            f"{run['cpu_s']:.1f}",
            f"{run['wall_s']:.1f}",
            megabytes(run["peak_bytes"]),
            megabytes(run["file_bytes"]),
            run["sha256"][:12],
        ]
        for run in runs
    ]
    text = f"{arguments.ranks} files of {arguments.nodes:,} nodes, {megabytes(written)} in all.\n\n"
    head = ["where", "CPU time, s", "wall time, s", "most memory of all processes", "file", "sha256"]
    must = {"must_s": _MUST_S, "must_bytes": _MUST_BYTES, "ranks": arguments.ranks, "nodes": arguments.nodes}
    write_results(arguments.results, arguments.name, facts, {**must, "runs": runs}, text + markdown_table(head, rows))
    same = len({run["sha256"] for run in runs}) == 1
    full = (arguments.ranks, arguments.nodes) == (512, 20_000)
    fast = all(run["cpu_s"] < _MUST_S for run in runs if run["scheduler"] == "here")
    small = all(run["peak_bytes"] < _MUST_BYTES for run in runs)
    return 0 if same and (not full or (fast and small)) else 1


if __name__ == "__main__":
    sys.exit(main())
