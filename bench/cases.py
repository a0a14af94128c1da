"""The paper's case studies (examples/cases) in both ways, in turns; the figures are those that Leadline's windows show.

    python bench/cases.py [--rounds 3] [--results FOLDER]

What is compared is a share of one run with another of the same minute, so a busy machine makes the ranges wide and not
the ratios wrong; the load is written down.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from common import Spread, add_results_option, machine, markdown_table, write_results
from leadline.profiles import open_profile
from leadline.trace.timeline import BETWEEN, WHOLE, timelines

CASES = Path(__file__).resolve().parents[1] / "examples" / "cases"
WAYS = ("before", "after")


def window(program: str, way: str, folder: Path, *, ranks: int = 0) -> Path:
    """The profile of a window of six steps."""
    file = folder / f"{program}-{way}.leadline"
    command = [
        sys.executable,
        "-m",
        "leadline.cli.main",
        "run",
        "-q",
        "--trace",
        "steps=6",
        "-o",
        str(file),
        "--",
        sys.executable,
    ]
    command += ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)] if ranks else []
    subprocess.run([*command, str(CASES / f"{program}.py"), way], check=True, capture_output=True)
    return file


def of_phases(file: Path, *phases: str) -> float:
    """Milliseconds of the loop's thread in these phases, for each step; the first step of a window is left out."""
    rows = [row for line in timelines(open_profile(file), kernel=False) for row in line.rows]
    steps = sorted({row.step for row in rows})[1:]
    main = {row.thread for row in rows if row.phase == WHOLE}
    found = [row.wall_ns for row in rows if row.phase in phases and row.thread in main and row.step in steps]
    return sum(found) / 1e6 / max(len(steps), 1)


def input_map(way: str, folder: Path) -> float:
    return of_phases(window("input_map", way, folder), "data loading")


def strided(way: str, folder: Path) -> float:
    return of_phases(window("strided", way, folder), "forward", "backward")


def fed(way: str, folder: Path) -> float:
    return of_phases(window("fed", way, folder), BETWEEN)


def partition(way: str, folder: Path) -> float:
    """Mean time of a message of rank 0 from its launch until it is through, in ms."""
    from leadline.trace.dataflow import collectives

    found = [
        one for one in collectives(open_profile(window("partition", way, folder, ranks=2))) if one.name == "c10d::send"
    ]
    spans = [one.done_ns - one.launched_ns for one in found if one.done_ns > 0]
    return sum(spans) / 1e6 / max(len(spans), 1)


def mapped(way: str, folder: Path) -> float:
    """Peak of resident memory in MB; nothing is profiled."""
    file = folder / "bert.pt"
    if not file.exists():
        subprocess.run([sys.executable, str(CASES / "mapped.py"), way, str(file)], check=True, capture_output=True)
    child = subprocess.Popen([sys.executable, str(CASES / "mapped.py"), way, str(file)], stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    assert status == 0
    return used.ru_maxrss / 1e3


ROWS = {
    "input_map": (input_map, "the loop waits for data, ms a step"),
    "strided": (strided, "forward and backward pass, ms a step"),
    "partition": (partition, "a message between the machines, ms"),
    "mapped": (mapped, "peak of resident memory, MB"),
    "fed": (fed, "between the phases, ms a step"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", action="append", choices=list(ROWS))
    add_results_option(parser)
    arguments = parser.parse_args()
    found: dict[str, dict[str, list[float]]] = {name: {way: [] for way in WAYS} for name in arguments.only or ROWS}
    facts = machine()
    loads = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(arguments.rounds):
            for name in found:
                for way in WAYS if number % 2 == 0 else reversed(WAYS):
                    found[name][way].append(ROWS[name][0](way, Path(folder)))
                    loads.append(os.getloadavg()[0])
    table = []
    for name, ways in found.items():
        before, after = (Spread.of(ways[way]) for way in WAYS)
        table.append([name, ROWS[name][1], before.text(1), after.text(1), f"{before.median / after.median:.1f}"])
    text = markdown_table(["case", "measured", "before", "after", "ratio of medians"], table)
    load = (
        f"Load {min(loads):.1f} to {max(loads):.1f} on {os.cpu_count()} cores; {arguments.rounds} of each way in turns."
    )
    data = {"rounds": arguments.rounds, "load": loads, "found": found}
    write_results(arguments.results, "cases", facts, data, f"{load}\n\n{text}", title="Case studies")


if __name__ == "__main__":
    main()
