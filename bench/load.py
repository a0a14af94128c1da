"""How long it takes to open a profile with a tree of one million nodes, to roll a metric up and to report on it.

    python bench/load.py [--nodes 1000000] [--repeat 5] [--results FOLDER]

The tree is synthetic (a seeded random one with the proportions of a real program: about 25 levels, half the nodes
operators with three metrics each, a fifth with GPU time, modules and phases among them) and goes through the real
writer and reader. Every run is a fresh process, since a file is opened once per process; the file's pages are warm.
Exit code 1 when a median misses its goal.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common import Spread, add_results_option, machine, markdown_table, megabytes, write_results
from leadline.profiles.builder import synthetic_meta
from leadline.profiles.profile import Profile
from leadline.profiles.tables import StringBuilder, Tables, columns_from_rows, empty_columns
from leadline.profiles.writer import write_profile
from leadline.schema import TABLES, FrameKind, MetricKind

_LEVELS = 25
_FRAMES = 20_000
_KINDS = {6: FrameKind.MODULE, 26: FrameKind.MODULE, 16: FrameKind.PHASE}  # of every 40 frames
_MUST_S = 2.0
_REPORT_MUST_S = 5.0
_STEPS = {
    "import_s": "import leadline.profiles, s",
    "open_s": "open and check the file, s",
    "inclusive_s": "first inclusive roll-up, s",
    "open_and_inclusive_s": "both together (must: under 2), s",
    "children_index_s": "index of children, s",
    "walk_s": "visit every node, s",
    "report_s": "the report as text, import and all roll-ups included (must: under 5), s",
}

_MEASURE = """
import json, resource, sys, time
began = time.perf_counter()
import leadline.profiles
imported = time.perf_counter()
profile = leadline.profiles.open_profile(sys.argv[1])
opened = time.perf_counter()
total = profile.tree.root.inclusive("time").sum
rolled = time.perf_counter()
children = len(profile.tree.root.children)
indexed = time.perf_counter()
nodes = sum(1 for _ in profile.tree.walk())
walked = time.perf_counter()
from leadline.report import build_report
from leadline.report.text import render_text
text = render_text(build_report(profile))
reported = time.perf_counter()
print(json.dumps({
    "import_s": imported - began, "open_s": opened - imported, "inclusive_s": rolled - opened,
    "children_index_s": indexed - rolled, "walk_s": walked - indexed, "open_and_inclusive_s": rolled - imported,
    "report_s": reported - walked,
    "nodes": nodes, "total": total, "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
}))
"""


def synthetic_tables(nodes: int, seed: int = 1) -> Tables:
    """A tree of `nodes` nodes over 20,000 frames, or as many as it has, with metrics on the lower levels."""
    random = np.random.default_rng(seed)
    frames = min(_FRAMES, nodes)
    parent = _parents(nodes, random)
    columns: dict[str, dict[str, Any]] = {name: empty_columns(name) for name in TABLES}
    strings = StringBuilder()
    rows: list[dict[str, int]] = []
    for number in range(frames):
        kind = _KINDS.get(number % 40, FrameKind.PYTHON if number % 2 else FrameKind.OPERATOR)
        what = number % 5 if kind == FrameKind.PHASE else number  # a program has a handful of phases
        name = strings.add(f"package.module_{number % 311 if what == number else 0}.function_{what}")
        file = strings.add(f"{'/home/ada' if number % 3 else '/usr/lib/python3/site-packages'}/p/m{number % 311}.py")
        rows.append({"kind": kind, "name": name, "file": file, "line": number % 997, "first_line": 1})
    rows[0] = {"kind": FrameKind.ROOT, "name": strings.add("root"), "file": 0, "line": 0, "first_line": 0}
    rows[1]["kind"], rows[2]["kind"] = FrameKind.PROCESS, FrameKind.THREAD
    columns["frames"] = columns_from_rows("frames", ({**row, "module": 0, "address": 0, "detail": 0} for row in rows))
    columns["strings"] = strings.columns()
    frame = random.integers(1, frames, nodes).astype("<u4")
    frame[:3] = range(3)
    parent[1:3] = range(2)
    parent[3:] = np.maximum(parent[3:], 2)
    columns["processes"] = columns_from_rows("processes", [_row("processes", pid=1, node=1)])
    columns["threads"] = columns_from_rows(
        "threads", [_row("threads", tid=1, node=2, wall_ns=10**13, operator_ns=10**12, cpu_ns=10**13)]
    )
    columns["nodes"] = {"parent": parent, "frame": frame}
    columns["metrics"] = _metrics(nodes, random)
    return Tables(columns)


def _row(table: str, **known: int) -> dict[str, int]:
    return {column.name: known.get(column.name, 0) for column in TABLES[table].columns}


def _parents(nodes: int, random: np.random.Generator) -> NDArray[np.int32]:
    bounds = np.unique((np.linspace(0, 1, _LEVELS + 1) ** 3 * (nodes - 1)).astype(np.int64) + 1)
    parent = np.full(nodes, -1, "<i4")
    above = (0, 1)
    for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        parent[begin:end] = np.sort(random.integers(above[0], above[1], end - begin))
        above = (begin, end)
    return parent


def _metrics(nodes: int, random: np.random.Generator) -> dict[str, Any]:
    shares = {
        MetricKind.TIME: 0.5,
        MetricKind.CALL_TIME: 0.5,
        MetricKind.ALLOC_BYTES: 0.3,
        MetricKind.GPU_TIME: 0.2,
    }
    node = [np.flatnonzero(random.random(nodes) < share) for share in shares.values()]
    metric = np.concatenate([np.full(len(at), int(kind)) for at, kind in zip(node, shares, strict=True)])
    size = len(metric)
    values = random.lognormal(10, 2, size).astype(np.int64)
    counts = random.integers(1, 1000, size)
    columns = {
        "node": np.concatenate(node),
        "metric": metric,
        "device": np.full(size, -1),
        "stream": np.full(size, -1),
        "count": counts,
        "sum": values * counts,
        "min": values // 2,
        "max": values * 2,
        "sum_squares": values.astype(np.float64) ** 2 * counts,
    }
    return {column.name: columns[column.name].astype(column.dtype) for column in TABLES["metrics"].columns}


def measure(path: Path) -> dict[str, float]:
    """One reading in a fresh process."""
    done = subprocess.run([sys.executable, "-c", _MEASURE, str(path)], check=True, capture_output=True, text=True)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Measure opening a large profile.")
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    add_results_option(parser)
    arguments = parser.parse_args(argv)
    facts = machine()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "load.leadline"
        tables = synthetic_tables(arguments.nodes)
        write_profile(path, Profile(tables, synthetic_meta()))
        file_bytes = path.stat().st_size
        runs = [measure(path) for _ in range(arguments.repeat)]
    size = {"nodes": arguments.nodes, "metric_rows": tables.rows("metrics"), "file_bytes": file_bytes}
    rows = [[what, Spread.of(run[name] for run in runs).text(2)] for name, what in _STEPS.items()]
    rows.append(["peak resident memory, MB", Spread.of(run["peak_rss_bytes"] / 1e6 for run in runs).text(0)])
    text = f"{arguments.nodes:,} nodes, {size['metric_rows']:,} metric rows, a file of {megabytes(file_bytes)}.\n\n"
    table = markdown_table(["", "median (range)"], rows)
    write_results(
        arguments.results,
        "load",
        facts,
        {**size, "must_s": _MUST_S, "report_must_s": _REPORT_MUST_S, "runs": runs},
        text + table,
    )
    missed = [
        name
        for name, must_s in (("open_and_inclusive_s", _MUST_S), ("report_s", _REPORT_MUST_S))
        if Spread.of(run[name] for run in runs).median >= must_s
    ]
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
