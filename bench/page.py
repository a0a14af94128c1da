"""How fast the page opens, zooms, searches and turns over large profiles, in headless Chromium with software rendering.

    python bench/page.py [--nodes N ...] [--events N ...] [--best K] [--beside]

Prints a JSON object per profile; times are milliseconds. Needs `npm ci` in tests/js and the program chromium. Profiles
are synthetic: call paths of the depth and the names that real ones have, a million nodes or events unless told. On a
machine that does other work, `--best K` tells the best of K tries of each; `--beside` has speedscope open the same
tree.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path

import numpy as np

from leadline._view_server import ViewServer
from leadline.convert import EXPORTERS, export
from leadline.profiles import Profile
from leadline.profiles.builder import synthetic_meta
from leadline.profiles.tables import StringBuilder, Tables, empty_columns
from leadline.report.embedded import packed
from leadline.report.view import View
from leadline.schema import TABLES, EventKind, FrameKind, MetricKind

JS = Path(__file__).resolve().parents[1] / "tests" / "js"
SPEEDSCOPE = next(one for one in EXPORTERS if one.name == "speedscope")
_FRAMES = 20_000
_DEPTH = 40


def tree_profile(nodes: int, seed: int = 1) -> Profile:
    """A tree of `nodes` nodes about 40 deep whose leaves hold time."""
    rng = np.random.default_rng(seed)
    parent = np.full(nodes, -1, np.int32)
    parent[1], parent[2] = 0, 1
    depth = np.zeros(nodes, np.int32)
    depth[1], depth[2] = 1, 2
    for row in range(3, nodes):
        near = int(rng.integers(max(2, row - 60), row))
        while depth[near] >= _DEPTH:
            near = int(parent[near])
        parent[row] = near
        depth[row] = depth[near] + 1
    return _profile(parent, rng)


def _profile(parent: np.ndarray, rng: np.random.Generator) -> Profile:
    nodes = len(parent)
    strings = StringBuilder()
    kinds = np.array([FrameKind.PYTHON, FrameKind.MODULE, FrameKind.OPERATOR], np.uint8)[np.arange(_FRAMES) % 3]
    names = [strings.add(f"{('Layer.forward', 'model.h', 'aten::op')[i % 3]}.{i // 3}") for i in range(_FRAMES)]
    files = [strings.add(f"/home/ada/model/file_{i % 200}.py" if i % 3 == 0 else "") for i in range(_FRAMES)]
    special = [(FrameKind.ROOT, "root"), (FrameKind.PROCESS, "train.py"), (FrameKind.THREAD, "MainThread")]
    frame = (rng.integers(0, _FRAMES, nodes) + len(special)).astype("<u4")
    frame[:3] = [0, 1, 2]
    size = len(special) + _FRAMES
    frames = {name: np.zeros(size, column.dtype) for name, column in ((c.name, c) for c in TABLES["frames"].columns)}
    frames["kind"][:] = [*(int(kind) for kind, _ in special), *kinds.tolist()]
    frames["name"][:] = [*(strings.add(name) for _, name in special), *names]
    frames["file"][3:] = files
    frames["line"][3:] = np.where(np.arange(_FRAMES) % 3 == 0, np.arange(_FRAMES) % 900 + 1, 0)
    leaf = np.ones(nodes, bool)
    leaf[np.maximum(parent, 0)] = False
    rows = np.flatnonzero(leaf)
    time = rng.lognormal(8, 2, len(rows)).astype(np.int64) + 1
    columns = {name: empty_columns(name) for name in TABLES}
    columns["frames"] = frames
    columns["nodes"] = {"parent": parent, "frame": frame}
    columns["metrics"] = {
        "node": np.tile(rows, 2).astype("<u4"),
        "metric": np.repeat([int(MetricKind.TIME), int(MetricKind.CALL_TIME)], len(rows)).astype("|u1"),
        "device": np.full(2 * len(rows), -1, "<i2"),
        "stream": np.full(2 * len(rows), -1, "<i4"),
        "count": np.ones(2 * len(rows), "<u8"),
        **{name: np.tile(time, 2) for name in ("sum", "min", "max")},
        "sum_squares": np.tile(time.astype(np.float64) ** 2, 2),
    }
    columns["processes"] = _one("processes", pid=1, rank=-1, local_rank=-1, node=1, name=frames["name"][1], complete=1)
    columns["threads"] = _one("threads", tid=1, name=frames["name"][2], node=2, wall_ns=int(time.sum()))
    columns["strings"] = strings.columns()
    return Profile(Tables(columns), synthetic_meta())


def _one(table: str, **values: int) -> dict[str, np.ndarray]:
    return {column.name: np.array([values.get(column.name, 0)], column.dtype) for column in TABLES[table].columns}


def event_profile(events: int, seed: int = 2) -> Profile:
    """A window of `events` operators one after the other, every tenth around nine others."""
    profile = tree_profile(20_000, seed)
    rng = np.random.default_rng(seed)
    length = rng.integers(500, 5_000, events).astype(np.int64)
    outer = np.arange(events) % 10 == 0
    start = np.cumsum(np.where(outer, 100, length + 100)) - np.where(outer, 0, length)
    length = np.where(outer, 20_000, length)
    columns = dict(profile.tables.columns)
    table = {column.name: np.zeros(events, column.dtype) for column in TABLES["events"].columns}
    for name in ("device", "stream", "sequence", "forward_thread", "awaits", "step"):
        table[name][:] = -1
    table["start_ns"][:], table["duration_ns"][:] = np.maximum.accumulate(start), length
    table["kind"][:] = int(EventKind.OPERATOR)
    table["node"][:] = 3 + np.arange(events) // 2 % 19_000  # what follows each other stands on neighbouring paths
    columns["events"] = table
    return Profile(Tables(columns), profile.meta)


class BytesAlone(View):
    """The page's own speed: what the analyzer takes is measured elsewhere."""

    def answer(self, path: str, query: dict[str, list[str]]) -> tuple[str, bytes] | None:
        if path.startswith(("report/", "findings/")):
            return "application/json", b"null"
        return super().answer(path, query)


def measured(profile: Profile, what: str, folder: Path) -> dict[str, float]:
    """What tests/js/speed.mjs says of the profile, served as `leadline view` does."""
    path = folder / f"{what}.leadline"
    path.write_bytes(packed(profile.tables, profile.meta))
    server = ViewServer(BytesAlone([(str(path), profile)]))
    threading.Thread(target=server.serve, daemon=True).start()
    try:
        environment = {**os.environ, "CHROMIUM": shutil.which("chromium") or "chromium"}
        command = ["node", "speed.mjs", server.address, what]
        done = subprocess.run(command, cwd=JS, env=environment, capture_output=True, text=True, timeout=300, check=True)
        return {"file_mb": round(path.stat().st_size / 1e6, 1), **json.loads(done.stdout)}
    finally:
        server.close()


def best(tries: list[dict[str, float]]) -> dict[str, float]:
    """Of each measure the best one: the most frames a second, the least of all others."""
    return {name: (max if name.endswith("fps") else min)(one[name] for one in tries) for name in tries[0]}


def beside(profile: Profile, folder: Path) -> dict[str, float]:
    """What speedscope takes for the same tree in the same browser."""
    path = folder / "tree.speedscope.json"
    path.write_bytes(export(profile, SPEEDSCOPE))
    environment = {**os.environ, "CHROMIUM": shutil.which("chromium") or "chromium"}
    command = ["node", "speed_speedscope.mjs", str(path)]
    done = subprocess.run(command, cwd=JS, env=environment, capture_output=True, text=True, timeout=300, check=True)
    return {"file_mb": round(path.stat().st_size / 1e6, 1), **json.loads(done.stdout)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--nodes", type=int, nargs="*", default=[100_000, 1_000_000])
    parser.add_argument("--events", type=int, nargs="*", default=[1_000_000])
    parser.add_argument("--best", type=int, default=1, metavar="K")
    parser.add_argument("--beside", action="store_true")
    arguments = parser.parse_args()
    tries = range(arguments.best)
    with tempfile.TemporaryDirectory() as folder:
        for nodes in arguments.nodes:
            tree = tree_profile(nodes)
            found = best([measured(tree, "tree", Path(folder)) for _ in tries])
            print(json.dumps({"nodes": nodes, **found}), flush=True)
            if arguments.beside:
                found = best([beside(tree, Path(folder)) for _ in tries])
                print(json.dumps({"nodes": nodes, "viewer": "speedscope", **found}), flush=True)
        for events in arguments.events:
            window = event_profile(events)
            found = best([measured(window, "events", Path(folder)) for _ in tries])
            print(json.dumps({"events": events, **found}), flush=True)


if __name__ == "__main__":
    main()
