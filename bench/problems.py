"""What `leadline analyze` says a remedy gains, beside what it does gain: problems and their twins.

    python bench/problems.py [--folder examples/problems] [--only NAME ...] [--turns 9] [--profiles FOLDER]

The problem is profiled once, without and with a trace window. Then problem and twin run without a profiler and take
turns, each in a process of its own (forked, so that torch is imported once). A step is from the end of one optimizer's
call to the end of the next, in the median; a program without one is timed as a whole. Time is CPU time of the process,
which is what single-threaded programs take where nothing else runs, or wall time of the whole where problems.json says
so, since what workers cost is not in the median step. Both are
compared as shares of the problem's step. Rows of other pairs stay in the results; with `--turns 0` what was measured
before is kept, and with `--profiles` the profiles are, so that estimates can be made again. Exit code 1 when fewer
than 80 % of the measured gains lie in the stated range.
"""

from __future__ import annotations

import argparse
import json
import os
import runpy
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import leadline
from common import Spread, add_results_option, machine, markdown_table, write_results
from leadline.analysis.analyze import analyze

ROOT = Path(__file__).resolve().parents[1]
PROBLEMS = ROOT / "examples" / "problems"
_GOAL = 0.8


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=PROBLEMS)
    parser.add_argument("--only", action="append", default=[], help="name of a pair; several may be given")
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--profiles", type=Path, help="folder in which the profiles are kept, and found again")
    add_results_option(parser)
    arguments = parser.parse_args()
    import torch.optim  # noqa: F401  before the forks

    facts = machine()
    told = json.loads((arguments.folder / "problems.json").read_text(encoding="utf-8"))
    devices = {pair: one["device"] for pair, one in told.items() if "device" in one}
    told = {pair: one for pair, one in told.items() if pair not in devices}
    name = "gains" if arguments.folder == PROBLEMS else f"gains-{arguments.folder.name}"
    rows = known_rows(arguments.results / f"{name}.json")
    for pair in arguments.only or sorted(told):
        with tempfile.TemporaryDirectory() as folder:
            kept_in = arguments.profiles or Path(folder)
            row = {"pair": pair, **told[pair], **estimates(arguments.folder / pair, told[pair]["rule"], kept_in)}
        known = rows.get(pair, {}).get("measured")
        row["measured"] = known
        if arguments.turns or not known:
            wall = told[pair].get("time") == "whole"
            row["measured"] = measured(arguments.folder / pair, max(arguments.turns, 1), wall)
        rows[pair] = row
        print(pair, _share(row), row["plain"], flush=True)
    kept = [rows[pair] for pair in sorted(rows) if pair in told]
    within = [is_within(row) for row in kept if row["plain"]]
    text = table(kept) + "\n" + counted(kept) + unmeasured(devices)
    write_results(arguments.results, name, facts, {"rows": kept}, text, script="bench/problems.py")
    return int(sum(within) < _GOAL * len(kept))


def counted(rows: list[dict[str, Any]]) -> str:
    """How many lie in the range: allowing for the noise of the measurement (half the middle half of the turns), without
    it, and of the pairs that were held out."""
    held = [row for row in rows if row.get("held_out")]
    exact = sum(is_within(row, noise=0.0) for row in rows)
    of_held = f", {sum(map(is_within, held))} of the {len(held)} held out" if held else ""
    within = f"{sum(map(is_within, rows))} of {len(rows)}"
    return f"In the range, give or take the noise: {within}{of_held}; {exact} without it.\n"


def unmeasured(devices: dict[str, str]) -> str:
    """Pairs whose gain only a device shows."""
    said = "\nNot measured, for want of such a device ({}): {}; tests/problems find it in what was recorded.\n"
    return "".join(said.format(device.upper(), pair) for pair, device in sorted(devices.items()))


def known_rows(path: Path) -> dict[str, dict[str, Any]]:
    return {row["pair"]: row for row in json.loads(path.read_text())["rows"]} if path.is_file() else {}


def estimates(pair: Path, rule: str, kept_in: Path) -> dict[str, Any]:
    """Shares (low, expected, high) of the problem's step and their basis, without and with a trace window."""
    found: dict[str, Any] = {}
    for kind, extra in (("plain", []), ("window", ["--trace", "steps=4,wait=2"])):
        output = (kept_in / f"{pair.name}-{kind}.leadline").absolute()
        if not output.is_file():
            command = [sys.executable, "-m", "leadline", "run", "-q", *extra, "-o", str(output)]
            subprocess.run([*command, str(pair / "problem.py")], check=True, capture_output=True)
        told = analyze(leadline.open(output))
        gain = next((one.gain for one in told if one.rule in rule.split(", ")), None)
        found[kind] = gain and {
            "shares": [ns / max(gain.of_ns, 1) for ns in (gain.low_ns, gain.expected_ns, gain.high_ns)],
            "basis": gain.basis,
            "steps": told.steps,
            "step_ns": gain.of_ns,
        }
    return found


def measured(pair: Path, turns: int, wall: bool) -> dict[str, Any]:
    """Nanoseconds of a step (or of the whole) of both programs in each turn."""
    taken: dict[str, list[float]] = {"problem": [], "fixed": []}
    for turn in range(turns):
        for kind in sorted(taken, reverse=turn % 2 == 0):
            taken[kind].append(timed(pair / f"{kind}.py", wall))
    return taken


def timed(program: Path, wall: bool) -> float:
    """The program's step in a forked process, in ns."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.write(writing, str(run_and_time(program, wall)).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return float(text)


def run_and_time(program: Path, wall: bool) -> float:
    from torch.optim.optimizer import register_optimizer_step_post_hook

    clock = time.perf_counter_ns if wall else time.process_time_ns
    ends: list[int] = []
    register_optimizer_step_post_hook(lambda *_: ends.append(clock()))
    began = clock()
    runpy.run_path(str(program), run_name="__main__")
    if len(ends) > 1 and not wall:
        return statistics.median(after - before for before, after in pairwise(ends))
    return float(clock() - began)


def gain_of(row: dict[str, Any]) -> Spread:
    """Saved share of the problem's step, turn by turn."""
    pairs = zip(row["measured"]["problem"], row["measured"]["fixed"], strict=True)
    return Spread.of(1 - after / before for before, after in pairs)


def noise_of(row: dict[str, Any]) -> float:
    """Half the middle half of the turns' gains: a gain closer than this to the range is not outside it."""
    ordered = sorted(
        1 - after / before for before, after in zip(row["measured"]["problem"], row["measured"]["fixed"], strict=True)
    )
    quarter = len(ordered) // 4
    return float(ordered[-1 - quarter] - ordered[quarter]) / 2


def is_within(row: dict[str, Any], kind: str = "plain", noise: float | None = None) -> bool:
    if not row[kind]:
        return False
    low, _, high = row[kind]["shares"]
    middle = gain_of(row).median
    noise = noise_of(row) if noise is None else noise
    return bool(low - noise <= middle <= high + noise)


def _share(row: dict[str, Any]) -> str:
    return f"{100 * gain_of(row).median:.1f} ±{100 * noise_of(row):.1f} %"


def table(rows: list[dict[str, Any]]) -> str:
    def told(row: dict[str, Any], kind: str) -> str:
        if not row[kind]:
            return "not found"
        low, expected, high = (100 * share for share in row[kind]["shares"])
        return f"{expected:.0f} % ({low:.0f} to {high:.0f})" + ("" if is_within(row, kind) else ", missed")

    head = ("pair", "rule", "estimate", "with a trace window", "measured", "basis")
    return markdown_table(
        head,
        [
            (
                row["pair"] + (" (held out)" if row.get("held_out") else ""),
                row["rule"],
                told(row, "plain"),
                told(row, "window"),
                _share(row),
                (row["plain"] or row["window"] or {"basis": ""})["basis"],
            )
            for row in rows
        ],
    )


if __name__ == "__main__":
    sys.exit(main())
