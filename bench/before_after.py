"""What measuring cost before and what it costs now: an older commit's Leadline beside the one installed, in one run.

    python bench/before_after.py [--commit 210190b] [--rounds 4] [--before PYTHON]

The older commit is built into build/before/COMMIT, on the torch of this interpreter; --before names an interpreter that
has it. Each round starts processes of both sides for every row, sides and modes in random turns. Ratios are taken in a
process (`one process`: modes take turns, the fastest chunk of each) or between processes of a round (`own process`: the
median step of each). CPU time of the program's thread; medians and ranges over rounds. Needs g++ for callbacks
that do nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common import Spread, add_results_option, machine, markdown_table, write_results

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
FIRST = "210190b"
"""The commit that the reviews read, the last one before what they found was mended."""
SIDES = ("before", "now")
OWN_PROCESS = {"micro": 400, "gpt_thread": 20}  # steps
FREES = 1000  # of a step in modes_in_turns.py
ONE_PROCESS = ("micro", "micro_deep", "gpt_thread", "frees")

Values = dict[str, float]


def build(commit: str) -> Path:
    """The interpreter of an environment with that commit's Leadline and otherwise what this interpreter has."""
    folder = ROOT / "build" / "before" / commit
    python = folder / "bin" / "python"
    if not (folder / "built").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        packages = subprocess.check_output(
            [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], text=True
        )
        (Path(packages.strip()) / "beside.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
        source = folder / "source"
        source.mkdir()
        archive = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x", "-C", str(source)], input=archive, check=True)
        pip = [str(python), "-m", "pip", "--disable-pip-version-check", "-q", "install"]
        subprocess.run([*pip, "--no-build-isolation", "--no-deps", "--ignore-installed", str(source)], check=True)
        (folder / "built").touch()
    return python


def child(python: Path, script: str, *arguments: str) -> Values:
    """What a script printed last, run by one side's interpreter."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LEADLINE")}
    command = [str(python), str(HERE / script), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr.strip()[-500:]}")
    found: Values = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def own_process(python: Path, workload: str, steps: int, folder: Path, turns: random.Random) -> Values:
    """Of the CPU time of an unprofiled run, what runs under each profiler take; what they leave."""
    modes = ("none", "leadline", "torch")
    runs: dict[str, Any] = {
        mode: child(python, "worker.py", workload, mode, str(steps), str(folder)) for mode in turns.sample(modes, 3)
    }
    base = runs["none"]
    return {
        "leadline": runs["leadline"]["step_cpu_s"] / base["step_cpu_s"],
        "torch.profiler": runs["torch"]["step_cpu_s"] / base["step_cpu_s"],
        "memory_mb": (runs["leadline"]["peak_rss"] - base["peak_rss"]) / 1e6,
        "file_kb": runs["leadline"]["file_bytes"] / 1e3,
        "stop_ms": runs["leadline"]["stop_s"] * 1e3,
    }


def one_round(pythons: dict[str, Path], number: int, folder: Path) -> dict[str, dict[str, Values]]:
    """Values by row and side."""
    turns = random.Random(number)
    rows: dict[str, dict[str, Values]] = {}
    for workload in turns.sample(ONE_PROCESS, len(ONE_PROCESS)):
        row = rows[workload] = {}
        for side in turns.sample(SIDES, 2):
            row[side] = child(pythons[side], "modes_in_turns.py", workload, str(turns.randrange(10**6)))
    for workload, steps in OWN_PROCESS.items():
        row = rows[f"{workload}, own process"] = {}
        for side in turns.sample(SIDES, 2):
            row[side] = own_process(pythons[side], workload, steps, folder, turns)
    return rows


def _share(values: Values) -> float:
    return (values["leadline"] - values["unprofiled"]) / (values["torch.profiler"] - values["unprofiled"])


def _ratio(values: Values) -> float:
    return values["leadline"] / values["unprofiled"]


def _stated(values: Values) -> float:
    return values["stated"] / (values["leadline"] - values["nothing"])


def _a_free(values: Values) -> float:
    return (values["leadline"] - values["unprofiled"]) * 1e3 / FREES


def table(rounds: list[dict[str, dict[str, Values]]]) -> str:
    """One line for each measure: before, now, and torch.profiler where it says something."""

    def line(name: str, row: str, value: Any, digits: int, must: str) -> list[str]:
        sides = [[value(one[row][side]) for one in rounds] for side in SIDES]
        change = Spread.of(now / before for before, now in zip(*sides, strict=True))
        return [name, *(Spread.of(values).text(digits) for values in sides), change.text(2), must]

    def added(side: str, row: str) -> list[float]:
        return [one[row][side]["leadline"] - one[row][side]["unprofiled"] for one in rounds]

    deep = [
        Spread.of(d / s for d, s in zip(added(side, "micro_deep"), added(side, "micro"), strict=True)) for side in SIDES
    ]
    rows = [
        line("micro: added, of torch.profiler's", "micro", _share, 2, "0.5"),
        line("micro: added, µs a step", "micro", lambda v: v["leadline"] - v["unprofiled"], 0, ""),
        ["micro below 200 frames of Python: added, of that below ten", deep[0].text(2), deep[1].text(2), "", "1.1"],
        line("GPT, one process, to unprofiled", "gpt_thread", _ratio, 3, "1.02"),
        line("GPT, one process: torch.profiler", "gpt_thread", lambda v: v["torch.profiler"] / v["unprofiled"], 3, ""),
        line("GPT, own process, to unprofiled", "gpt_thread, own process", lambda v: v["leadline"], 3, "1.03"),
        line("GPT, own process: torch.profiler", "gpt_thread, own process", lambda v: v["torch.profiler"], 3, ""),
        line("micro, own process, to unprofiled", "micro, own process", lambda v: v["leadline"], 3, ""),
        line("freeing a tensor outside of operators: added, ns", "frees", _a_free, 0, "no walk"),
        line("micro: own cost in the file, of what is added beyond empty callbacks", "micro", _stated, 2, "0.8 to 1.2"),
        line("micro, 400 steps: peak memory added, MB", "micro, own process", lambda v: v["memory_mb"], 1, ""),
        line("micro, 400 steps: file, kB", "micro, own process", lambda v: v["file_kb"], 1, ""),
        line("micro, 400 steps: stopping, ms", "micro, own process", lambda v: v["stop_ms"], 0, ""),
    ]  # fmt: skip
    return markdown_table(["measure", "before", "now", "now / before", "must"], rows)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Measure what profiling cost before and costs now.")
    parser.add_argument("--commit", default=FIRST, help="what `before` is (default: %(default)s)")
    parser.add_argument("--before", type=Path, help="an interpreter that has that commit's Leadline")
    parser.add_argument("--rounds", type=int, default=4)
    add_results_option(parser)
    arguments = parser.parse_args(argv)
    pythons = {"before": arguments.before or build(arguments.commit), "now": Path(sys.executable)}
    facts = machine()
    rounds = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(arguments.rounds):
            rounds.append(one_round(pythons, number, Path(folder)))
            print(f"round {number + 1} of {arguments.rounds}", file=sys.stderr, flush=True)
    chosen = f"--commit {arguments.commit} --rounds {arguments.rounds}"
    write_results(arguments.results, "before_after", facts, {"rounds": rounds}, table(rounds), arguments=chosen)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
