"""What recording the kernel costs real programs: events of a whole run, and what the recorder takes to read them.

    python bench/recorder.py [--rounds 3] [--program strided] [--results FOLDER]

The programs are those of examples/cases; they take turns without a recorder and with one at each level. The cost is
that of one event (bench/kernel.py) times their number, over the run's CPU time; the CPU times stand beside it. Exit
code 1 when reading takes more than 1 % of a run.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import RESULTS, Spread, add_results_option, machine, markdown_table, write_results
from leadline.capture.kernel.recording import Refused
from leadline.capture.kernel.tracefs import TracefsRecorder
from leadline.trace.kernel import tracefs

CASES = Path(__file__).resolve().parents[1] / "examples" / "cases"
LEVELS = ("", "sched", "syscalls")
GOAL_PERCENT = 1.0


def run(program: str) -> float:
    """CPU seconds of a run, its workers with it."""
    child = subprocess.Popen([sys.executable, str(CASES / f"{program}.py"), "after"], stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    if status:
        raise SystemExit(f"{program}.py did not run")
    return used.ru_utime + used.ru_stime


def recorded(program: str, level: str) -> tuple[float, dict[str, int], float]:
    """CPU seconds of the run, its events by level, and CPU seconds of the recorder."""
    if not level:
        return run(program), {}, 0.0
    recorder = TracefsRecorder(level)
    try:
        recorder.switch.write_text("1", encoding="ascii")
        taken = run(program)
        began = time.process_time()
        with tempfile.TemporaryDirectory() as folder:
            recorder.end()
            recording = recorder.save(Path(folder))
            reading = time.process_time() - began
            pages = {int(one.stem.removeprefix("cpu")): one.read_bytes() for one in Path(folder).glob("cpu*.raw")}
    finally:
        recorder.remove()
    parts, _ = tracefs.decode(pages, recording.details["formats"], recording.details["machine"])
    total = sum(len(part["time_ns"]) for part in parts)
    calls = sum(len(part["time_ns"]) for part in parts if int(part["kind"][0]) in (5, 6))
    return taken, {"sched": total - calls, "syscalls": calls}, reading


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--program", action="append", choices=["input_map", "strided", "fed"])
    add_results_option(parser)
    arguments = parser.parse_args()
    facts = machine()
    costs = event_costs()
    rows, data, worst = [], {}, 0.0
    for program in arguments.program or ["input_map", "strided"]:
        found: dict[str, list[tuple[float, dict[str, int], float]]] = {level: [] for level in LEVELS}
        for number in range(arguments.rounds):
            for level in LEVELS if number % 2 == 0 else reversed(LEVELS):
                try:
                    found[level].append(recorded(program, level))
                except Refused as error:
                    raise SystemExit(f"the kernel cannot be recorded here: {error}") from None
        plain = Spread.of(taken for taken, *_ in found[""])
        for level in LEVELS[1:]:
            events = statistics.median(sum(counts.values()) for _, counts, _ in found[level])
            parts = [
                sum(costs[kind] * counts.get(kind, 0) for kind in counts) / 1e7 / taken
                for taken, counts, _ in found[level]
            ]
            reading = [100 * read / taken for taken, _, read in found[level]]
            worst = max(worst, statistics.median(reading))
            with_it = Spread.of(taken for taken, *_ in found[level])
            cells = [f"{events:,.0f}", f"{statistics.median(parts):.2f}", f"{statistics.median(reading):.2f}"]
            rows.append([program, level, *cells, plain.text(), with_it.text()])
        data[program] = {level or "none": values for level, values in found.items()}
    head = [
        "program",
        "level",
        "events",
        "cost of events, % of CPU",
        "reading, % of CPU",
        "CPU without, s",
        "CPU with, s",
    ]
    load = f"Load {os.getloadavg()[0]:.1f} at the end; {arguments.rounds} runs of each in turns."
    write_results(arguments.results, "recorder", facts, {"runs": data}, f"{load}\n\n{markdown_table(head, rows)}")
    return 1 if worst > GOAL_PERCENT else 0


def event_costs() -> dict[str, float]:
    """ns of an event by level, as bench/kernel.py measured it."""
    measured = json.loads((RESULTS / "kernel.json").read_text(encoding="utf-8"))["runs"]
    found = {}
    for level, runs in measured.items():
        plain, with_it, events, _ = (statistics.median(one) for one in zip(*runs, strict=True))
        found[level] = 1e9 * (with_it - plain) / events
    return found


if __name__ == "__main__":
    sys.exit(main())
