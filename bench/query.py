"""How long a query and a comparison take on a tree of one million nodes.

    python bench/query.py [--nodes 1000000] [--repeat 3] [--results FOLDER]

The tree is that of bench/load.py. Every run is a fresh process; "first" is the first query of that kind, with every
column it needs still to be made, after the file has been opened. CPU time is measured, which is wall time on a machine
with nothing else to do, since all of it is one thread. Exit code 1 when a median misses its goal.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from common import Spread, add_results_option, machine, markdown_table, write_results
from leadline.profiles.builder import synthetic_meta
from leadline.profiles.profile import Profile
from leadline.profiles.writer import write_profile
from load import synthetic_tables

_GOALS = {"query": 1.0, "diff": 5.0}
_QUERIES = {
    "by name": "operator:* where self > 0.001% sort -self top 10",
    "path": "python:* ... module:* ... operator:*[calls > 1] ... kernel:*",
    "grouped": "operator:* by phase, name",
    "relations": "operator:* where under(phase:*) and above(kernel:*) by line",
}

_MEASURE = """
import json, sys, time
from leadline.profiles import open_profile
from leadline.query import query
from leadline.compare import compare
queries = json.loads(sys.argv[2])
taken = {}
for name, text in queries.items():
    profile = open_profile(sys.argv[1])
    began = time.process_time()
    query(profile, text)
    taken["query " + name + ", first"] = time.process_time() - began
    began = time.process_time()
    query(profile, text)
    taken["query " + name + ", again"] = time.process_time() - began
sides = [open_profile(sys.argv[1]), open_profile(sys.argv[1])]
began = time.process_time()
compare(sides[:1], sides[1:])
taken["diff of two"] = time.process_time() - began
print(json.dumps(taken))
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    add_results_option(parser)
    arguments = parser.parse_args()
    facts = machine()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.leadline"
        write_profile(path, Profile(synthetic_tables(arguments.nodes), synthetic_meta()))
        command = [sys.executable, "-c", _MEASURE, str(path), json.dumps(_QUERIES)]
        runs = [
            json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            for _ in range(arguments.repeat)
        ]
    spreads = {name: Spread.of(run[name] for run in runs) for name in runs[0]}
    rows = [(name, spread.text(), f"{_goal(name):g}") for name, spread in spreads.items()]
    table = markdown_table(("what", "seconds of CPU time: median (range)", "must, s"), rows)
    about = f"{arguments.nodes:,} nodes, {arguments.repeat} runs.\n\n"
    write_results(arguments.results, "query", facts, {"nodes": arguments.nodes, "runs": runs}, about + table)
    return int(any(spread.median > _goal(name) for name, spread in spreads.items()))


def _goal(name: str) -> float:
    return _GOALS[name.split()[0]]


if __name__ == "__main__":
    sys.exit(main())
