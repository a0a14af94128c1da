"""Programs nobody here wrote, measured as a user would, and below torch.profiler: everything must add up.

    python -m tests.foreign.run [--results FILE.md] [PROGRAM...]      from the top folder; all programs by default

Each program trains and infers, each twice: once under `leadline run --trace steps=2` (the invariants of tests/truth),
once with torch.profiler beside (`checks.py`). `leadline analyze` may warn of two things at most in each: these programs
are as their authors wrote them. A program that cannot run, such as for want of a library, has failed.
Exits with 1 when one has.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from tests.foreign.checks import Theirs, differences, operators_of
from tests.truth.invariants import contradictions
from tests.truth.shares import shares_wrong

from leadline.analysis.analyze import analyze
from leadline.analysis.findings import Severity
from leadline.profiles import Profile, open_profile

HERE = Path(__file__).resolve().parent
PROGRAMS = HERE / "programs"
MODES = ("train", "infer")
RANKS = "ranks_"
"""What the name of a program begins with that torchrun starts."""
TORCHRUN = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", "0", "--rdzv-backend", "c10d"]
LIMIT_S = 600
MOST_WARNINGS = 2
LEAST_STEPS = 5


@dataclass
class Outcome:
    """One program in one mode; `wrong` is empty where everything holds."""

    program: str
    mode: str
    processes: int = 0
    nodes: int = 0
    calls: int = 0
    lost: dict[str, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def judge(self, profile: Profile) -> None:
        """What `leadline analyze` warns of, by rule and line; a training with too few steps would not be asked."""
        told = analyze(profile)
        if self.mode == MODES[0] and told.steps < LEAST_STEPS:
            self.wrong.append(f"{told.steps} steps are too few for the rules; let the program take {LEAST_STEPS}")
        found = [one for one in told if one.severity is Severity.WARNING]
        lines = [(one.rule, one.lines[0]) for one in found if one.lines]
        self.warnings = [f"{rule} at {Path(line.short).name}:{line.line}" for rule, line in lines]
        if len(found) > MOST_WARNINGS:
            self.wrong.append(f"{len(found)} warnings: {'; '.join(one.title for one in found)}")

    def add(self, profile: Profile) -> None:
        self.wrong += [*contradictions(profile), *shares_wrong(profile)]
        for loss in profile.losses:
            if loss.count:
                self.lost[loss.kind.name.lower()] = self.lost.get(loss.kind.name.lower(), 0) + loss.count


def start(command: list[str], folder: Path) -> str:
    """Runs to the end; returns why it failed, empty where it did not."""
    path = os.pathsep.join([str(HERE.parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "HF_HUB_OFFLINE": "1", "GLOO_SOCKET_IFNAME": "lo"}
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=LIMIT_S
        )
    except subprocess.TimeoutExpired:
        return f"did not end within {LIMIT_S} s"
    lines = done.stderr.strip().splitlines() or ["without a word"]
    return f"ended with {done.returncode}: {lines[-1]}" if done.returncode else ""


def check(program: Path, mode: str, folder: Path) -> Outcome:
    outcome = Outcome(program.stem, mode)
    launcher = TORCHRUN if program.stem.startswith(RANKS) else []
    leadline = [sys.executable, "-m", "leadline.cli.main", "run", "-q", "--trace", "steps=2", "-o", "whole.leadline"]
    if fault := start([*leadline, *launcher, str(program), mode], folder):
        outcome.wrong.append(fault)
        return outcome
    profile = open_profile(folder / "whole.leadline")
    outcome.processes, outcome.nodes = len(profile.processes), len(profile.tree)
    outcome.calls = sum(count for count, _ in operators_of(profile, profile.tree.kinds >= 0).values())
    outcome.add(profile)
    outcome.judge(profile)
    if fault := start([sys.executable, *launcher, str(HERE / "beside.py"), "beside", str(program), mode], folder):
        outcome.wrong.append(f"beside torch.profiler: {fault}")
    for seen in sorted(folder.glob("beside*.json")):
        profile = open_profile(seen.with_suffix(".leadline"))
        outcome.wrong += differences(profile, Theirs.read(seen))
        outcome.add(profile)
    return outcome


def table(outcomes: list[Outcome]) -> str:
    lines = [
        "| program | | processes | nodes | operators | invariants, calls, time and bytes | counted losses | warnings |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for one in outcomes:
        held = f"{len(one.wrong)} wrong" if one.wrong else "hold"
        lost = ", ".join(f"{count} {kind}" for kind, count in sorted(one.lost.items())) or "none"
        warned = ", ".join(one.warnings) or "none"
        cells = [one.program, one.mode, f"{one.processes}", f"{one.nodes:,}", f"{one.calls:,}", held, lost, warned]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, metavar="FILE", help="write the table here as well")
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help="names or files; all of programs/ by default")
    options = parser.parse_args(argv)
    named = [Path(name) if name.endswith(".py") else PROGRAMS / f"{name}.py" for name in options.programs]
    outcomes = []
    for program in named or sorted(PROGRAMS.glob("*.py")):
        for mode in MODES:
            with tempfile.TemporaryDirectory() as folder:
                outcome = check(program.resolve(), mode, Path(folder))
            print(f"{outcome.program} {mode}: {'FAILED' if outcome.wrong else 'holds'}", flush=True)
            for sentence in outcome.wrong:
                print(f"  {sentence}", flush=True)
            outcomes.append(outcome)
    print(table(outcomes))
    if options.results:
        options.results.write_text(table(outcomes), encoding="utf-8")
    return 1 if any(outcome.wrong for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
