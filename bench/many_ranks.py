"""What it takes to fold the files of many ranks, and that every way of doing it makes the same file.

    python bench/many_ranks.py [--ranks 512] [--nodes 20000] [--schedulers here,processes:2,dask:2] [--results FOLDER]

Each rank has the same synthetic tree as in load.py and measurements of its own. Time is CPU time of all processes,
since the machine is shared; memory is the largest sum over the processes of one merge, asked for every tenth of a
second. Exit code 1 where one way makes another file, or where merging here takes more than 60 s of CPU time or 1 GB.
"""

from __future__ import annotations

import argparse
import hashlib
import resource
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


def merge(folder: Path, output: Path, scheduler: str) -> dict[str, Any]:
    """One merge in processes of its own."""
    words = [sys.executable, "-m", "leadline", "merge", str(folder), "-o", str(output)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    process = subprocess.Popen([*words, *(["--scheduler", scheduler] if scheduler != "here" else [])])
    peak = 0
    while process.poll() is None:
        peak = max(peak, sum(_resident(pid) for pid in _family(process.pid)))
        time.sleep(0.1)
    if process.returncode:
        raise SystemExit(f"merging with {scheduler} failed")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "scheduler": scheduler,
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
    add_results_option(parser)
    arguments = parser.parse_args(argv)
    facts = machine()
    with tempfile.TemporaryDirectory() as name:
        ranks = Path(name) / "ranks"
        ranks.mkdir()
        written = write_ranks(ranks, arguments.ranks, arguments.nodes)
        runs = [merge(ranks, Path(name) / "job.leadline", one) for one in arguments.schedulers.split(",")]
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
    write_results(arguments.results, "many_ranks", facts, {**must, "runs": runs}, text + markdown_table(head, rows))
    same = len({run["sha256"] for run in runs}) == 1
    alone = [run for run in runs if run["scheduler"] == "here"]
    fast = all(run["cpu_s"] < _MUST_S and run["peak_bytes"] < _MUST_BYTES for run in alone)
    return 0 if same and fast else 1


if __name__ == "__main__":
    sys.exit(main())
