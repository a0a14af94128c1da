"""How long all rules of `leadline analyze` take on a tree of a million nodes, and with a window of a million events.

    python bench/analyze.py [--nodes 1000000] [--events 1000000] [--repeat 3] [--results FOLDER]

"synthetic" is the tree of bench/load.py; "program" is a profile of the workload gpt_tiny whose tree hangs below as many
lines as make the size, and whose window is repeated in time. Every run is a fresh process; the file is open already.
CPU time is measured, which is wall time on a machine with nothing else to do, since all of it is one thread.
Exit code 1 when a median misses its goal.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from common import Spread, add_results_option, machine, markdown_table, write_results
from leadline.profiles import open_profile
from leadline.profiles.builder import synthetic_meta
from leadline.profiles.profile import Profile
from leadline.profiles.tables import Tables
from leadline.profiles.writer import write_profile
from leadline.schema import TABLES
from load import synthetic_tables

_GOALS = {"all rules, synthetic tree": 10.0, "all rules, program": 10.0, "all rules with the window": 15.0}
_RECORD = """
import sys
sys.path.insert(0, sys.argv[2])
import leadline, torch
from workloads import gpt_tiny
step = gpt_tiny.make_step()
with leadline.profile(sys.argv[1], trace="steps=5,wait=2"):
    for _ in range(12):
        step()
        leadline.step()
"""
_MEASURE = """
import sys, time
from leadline.profiles import open_profile
from leadline.analysis.analyze import analyze
profile = open_profile(sys.argv[1])
began = time.process_time()
found = analyze(profile, simulate=sys.argv[2] == "window")
print(time.process_time() - began)
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    add_results_option(parser)
    arguments = parser.parse_args()
    facts = machine()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = {goal: folder / f"{number}.leadline" for number, goal in enumerate(_GOALS)}
        synthetic, program, window = files.values()
        write_profile(synthetic, Profile(synthetic_tables(arguments.nodes), synthetic_meta()))
        recorded = folder / "recorded.leadline"
        subprocess.run([sys.executable, "-c", _RECORD, str(recorded), str(Path(__file__).parent)], check=True)
        write_profile(program, wide(open_profile(recorded), arguments.nodes))
        write_profile(window, longer(open_profile(recorded), arguments.events))
        runs = {
            goal: [timed(file, "window" if file == window else "tree") for _ in range(arguments.repeat)]
            for goal, file in files.items()
        }
        sizes = {
            goal: f"{len(profile.tree):,} nodes, {len(profile.events['node']):,} events"
            for goal, file in files.items()
            for profile in [open_profile(file)]
        }
    spreads = {goal: Spread.of(taken) for goal, taken in runs.items()}
    rows = [(goal, sizes[goal], spread.text(), f"{_GOALS[goal]:g}") for goal, spread in spreads.items()]
    table = markdown_table(("what", "of", "seconds of CPU time: median (range)", "must, s"), rows)
    about = f"{arguments.repeat} runs.\n\n"
    write_results(arguments.results, "analyze", facts, {"sizes": sizes, "runs": runs}, about + table)
    return int(any(spread.median > _GOALS[goal] for goal, spread in spreads.items()))


def timed(file: Path, kind: str) -> float:
    command = [sys.executable, "-c", _MEASURE, str(file), kind]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def wide(profile: Profile, nodes: int) -> Profile:
    """Copies of all that lies below the thread, side by side, each below a Python line of its own."""
    columns = _columns(profile)
    parent, frame = columns["nodes"]["parent"], columns["nodes"]["frame"]
    thread = int(columns["threads"]["node"][0])
    rows = np.array([row for row in range(len(parent)) if thread in profile.tree.path_rows(row)[:-1]])
    copies = max(1, nodes // len(rows))
    size = len(parent)
    place = np.full(size, -1, np.int64)
    frames = columns["frames"]
    python = int(frame[next(row for row in rows.tolist() if frames["line"][frame[row]] > 0)])
    parents, frame_of, nodes_of, copied = (
        [parent],
        [frame],
        [],
        np.flatnonzero(np.isin(columns["metrics"]["node"], rows)),
    )
    new_frames = {name: [column] for name, column in frames.items()}
    at = size
    for copy in range(copies - 1):
        for name, column in frames.items():
            new_frames[name].append(np.array([10_000 + copy if name == "line" else column[python]], column.dtype))
        place[rows] = at + 1 + np.arange(len(rows))
        place[thread] = at
        parents += [np.array([thread]), place[parent[rows]]]
        frame_of += [np.array([len(frames["kind"]) + copy]), frame[rows]]
        nodes_of.append(place[columns["metrics"]["node"][copied]])
        at += 1 + len(rows)
    columns["nodes"] = {
        "parent": np.concatenate(parents).astype(parent.dtype),
        "frame": np.concatenate(frame_of).astype(frame.dtype),
    }
    columns["frames"] = {name: np.concatenate(parts) for name, parts in new_frames.items()}
    old = columns["metrics"]
    metrics = {name: np.concatenate([column, np.tile(column[copied], copies - 1)]) for name, column in old.items()}
    metrics["node"] = np.concatenate([old["node"], *nodes_of])
    columns["metrics"] = {name: column.astype(old[name].dtype) for name, column in metrics.items()}
    columns["events"] = {name: column[:0] for name, column in columns["events"].items()}
    return Profile(Tables(columns), dict(profile.meta))


def longer(profile: Profile, events: int) -> Profile:
    """The window again and again: later in time, with the numbers of later steps."""
    columns = _columns(profile)
    window = columns["events"]
    number = len(window["start_ns"])
    turns = max(1, events // number)
    span = int((window["start_ns"] + np.maximum(window["duration_ns"], 0)).max() - window["start_ns"].min()) + 1000
    steps = int(window["step"].max() - window["step"][window["step"] >= 0].min()) + 1
    turn = np.repeat(np.arange(turns), number)
    tiled = {name: np.tile(column, turns) for name, column in window.items()}
    tiled["start_ns"] = tiled["start_ns"] + turn * span
    tiled["step"] = np.where(tiled["step"] >= 0, tiled["step"] + turn * steps, -1)
    sequence = int(window["sequence"].max()) + 1
    tiled["sequence"] = np.where(tiled["sequence"] >= 0, tiled["sequence"] + turn * sequence, -1)
    columns["events"] = {name: column.astype(window[name].dtype) for name, column in tiled.items()}
    return Profile(Tables(columns), dict(profile.meta))


def _columns(profile: Profile) -> dict[str, dict[str, np.ndarray]]:
    return {name: {key: np.asarray(column) for key, column in profile.table(name).items()} for name in TABLES}


if __name__ == "__main__":
    sys.exit(main())
