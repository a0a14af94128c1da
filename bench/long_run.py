"""Whether a run of a million steps costs what a run of a thousand does: memory held and size of the file.

    python bench/long_run.py [--workload micro] [--steps 1000000] [--seconds 3600] [--results FOLDER]

Two processes of a workload under Leadline: 1,000 steps, and so many as asked or as fit into the time; the table says
how many there were. Resident memory is read after steps 1,000 and at every tenfold, and at the end. Ends with 1 if the
long run needed more. A million steps of micro take three hours; `micro_short` is the same with one layer instead of
twenty, in a tenth of the time: as many steps, optimizer steps and segments, fewer operators.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common import add_results_option, machine, markdown_table, megabytes, write_results

SHORT = 1_000
FULL_RING = 8 << 15
"""Bytes for the last 32,768 numbers of autograd of a thread, by which backward finds forward. They are taken as numbers
come: 1,000 steps of `micro` have them all, `micro_short` has its last half from step 2,048 on."""
LOOK = 100  # steps between two looks at the time


def run(workload: str, steps: int, seconds: float, file: Path) -> None:
    """The measured process; prints one JSON object."""
    import leadline
    import workloads
    from worker import memory

    step = workloads.load(workload)
    until = time.monotonic() + seconds
    resident: dict[int, int] = {}
    done = 0
    next_mark = SHORT
    with leadline.profile(file, quiet=True):
        while done < steps and time.monotonic() < until:
            for _ in range(LOOK):
                step()
            done += LOOK
            if done == next_mark:
                resident[done] = memory("VmRSS")
                next_mark *= 10
        resident[done] = memory("VmRSS")
    profile = leadline.open(file)
    paths = len(profile.table("nodes")["parent"])
    held = profile.meta["cost"]["held_bytes"]
    print(json.dumps({"steps": done, "resident": resident, "held": held, "paths": paths, "file": file.stat().st_size}))


def measured(workload: str, steps: int, seconds: float, folder: Path) -> dict[str, Any]:
    """What a process of its own said."""
    command = [sys.executable, __file__, "--run", workload, str(steps), str(seconds), str(folder / "long.leadline")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    answer: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return answer


def main(argv: Sequence[str] | None = None) -> int:
    """Run, print and write the results."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    if arguments[:1] == ["--run"]:
        run(arguments[1], int(arguments[2]), float(arguments[3]), Path(arguments[4]))
        return 0
    parser = argparse.ArgumentParser(description="Compare a very long run with a short one.")
    parser.add_argument("--workload", default="micro")
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=3600.0, help="end the long run after this time")
    add_results_option(parser)
    chosen = parser.parse_args(arguments)
    facts = machine()
    with tempfile.TemporaryDirectory() as folder:
        asked = (SHORT, chosen.steps)
        runs = [measured(chosen.workload, steps, chosen.seconds, Path(folder)) for steps in asked]
    rows = []
    for one in runs:
        resident = ", ".join(f"{int(at):,}: {megabytes(value)}" for at, value in one["resident"].items())
        held = megabytes(one["held"])
        rows.append([f"{one['steps']:,}", resident, held, f"{one['paths']:,}", f"{one['file'] / 1e3:.1f} kB"])
    head = ["steps", "resident after so many", "held by Leadline", "distinct paths", "file"]
    made_by = f"--workload {chosen.workload} --steps {chosen.steps} --seconds {chosen.seconds:g}"
    name = "long_run" if chosen.workload == "micro" else f"long_run-{chosen.workload}"
    text = markdown_table(head, rows)
    write_results(chosen.results, name, facts, {"runs": runs}, text, script="bench/long_run.py", arguments=made_by)
    return 1 if grew(*runs) else 0


def grew(short: dict[str, Any], long: dict[str, Any]) -> bool:
    """Whether the long run needed more than the short one; says so. What a few late paths and larger numbers take is
    allowed for.
    """
    resident = list(long["resident"].values())
    more = {
        "resident memory": resident[-1] - resident[0] > 4_000_000,
        "memory held by Leadline": long["held"] > 1.25 * short["held"] + FULL_RING,
        "the file": long["file"] > 1.25 * short["file"],
    }
    for what in (what for what, is_more in more.items() if is_more):
        print(f"After {long['steps']:,} steps {what} is larger than after {short['steps']:,}.", file=sys.stderr)
    return any(more.values())


if __name__ == "__main__":
    raise SystemExit(main())
