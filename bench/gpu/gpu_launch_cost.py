"""Whose time a launch costs: the modes of one group in turns within this process, over one workload.

    python -m gpu_launch_cost WORKLOAD GROUP ROUNDS SECONDS

WORKLOAD: decode, resnet50 (or gpt), jax. GROUP: client, parts, torch, proton (gpu_modes.py). After each round the
whole table so far is printed as one JSON line, so that what was measured is there however this ends. Every round
measures each mode once, in an order of its own.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gpu_modes import ESSENTIAL, Mode, modes
from gpu_run import rehearsing

TURN_S = float(os.environ.get("ROUND_TURN_S", "0.2"))
"""Of a turn without a profiler."""
_LEAST_STEPS = 4


@dataclass
class Workload:
    """A step, and how to time so many of them with the device's work."""

    step: Callable[[], Any]
    timed: Callable[[Callable[[], Any], int], float]


def load(name: str) -> Workload:
    """Raises ImportError where the framework is missing."""
    if rehearsing():
        fake = importlib.import_module("fake_programs")
        return Workload(fake.workload(name), fake.timed)
    if name == "jax":
        module = importlib.import_module("gpu_jax_program")
        return Workload(*module.workload())
    real = importlib.import_module("gpu_workloads")
    return Workload(real.workload(name), real.timed)


@dataclass
class Table:
    """Seconds of a step by mode and round, what a turn left, and what could not be measured."""

    workload: str
    group: str
    steps: int = 0
    modes: list[str] = field(default_factory=list)
    seconds: dict[str, list[float]] = field(default_factory=dict)
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    enter_leave_s: dict[str, float] = field(default_factory=dict)

    def turn(self, name: str, mode: Mode, workload: Workload) -> None:
        """One turn: entered, warmed, timed, left. A mode that fails is not tried again."""
        begin = time.perf_counter()
        try:
            with mode() as facts:
                workload.timed(workload.step, max(self.steps // 5, 2))
                step_s = workload.timed(workload.step, self.steps)
        except Exception as error:  # one tool that does not work here must not cost the others
            self.errors[name] = f"{type(error).__name__}: {error}"[:300]
            return
        self.seconds.setdefault(name, []).append(step_s)
        taken = time.perf_counter() - begin
        self.enter_leave_s[name] = round(taken - step_s * (self.steps + max(self.steps // 5, 2)), 3)
        self.facts[name] = {**facts, "steps": self.steps + max(self.steps // 5, 2)}

    def line(self) -> str:
        return json.dumps({"table": "launch cost", **vars(self)})


def measure(workload: str, group: str, rounds: int, seconds: float) -> None:
    """Rounds while there is time: what is essential first, and all else when that has taken two rounds."""
    begin = time.monotonic()
    loaded = load(workload)
    loaded.timed(loaded.step, 20)
    once = loaded.timed(loaded.step, _LEAST_STEPS)
    table = Table(workload, group, steps=min(max(int(TURN_S / once), _LEAST_STEPS), 400))
    print(f"{workload}: {once * 1e3:.3f} ms, {table.steps} steps a turn, ready after {time.monotonic() - begin:.1f} s")
    loaded.timed(loaded.step, table.steps)
    with tempfile.TemporaryDirectory() as folder:
        chosen = modes(group, folder, with_torch=not rehearsing() and workload != "jax")
        table.modes = list(chosen)
        for number in range(rounds):
            names = [name for name in chosen if name not in table.errors]
            left = seconds - (time.monotonic() - begin)
            spent = sum(sum(values) for values in table.seconds.values()) * table.steps * 1.2
            spent += sum(table.enter_leave_s[name] * len(table.seconds[name]) for name in table.seconds)
            if number and left < spent / number * (rounds - number):  # not all of them so often: what matters most
                names = [name for name in names if name in ESSENTIAL or group != "client"]
            for name in random.Random(number).sample(names, len(names)):
                if time.monotonic() - begin < seconds:
                    print(f"round {number + 1}: {name}", flush=True)  # the last one named is where it died
                    table.turn(name, chosen[name], loaded)
                if number == 0:
                    print(table.line(), flush=True)
            print(table.line(), flush=True)
            if time.monotonic() - begin >= seconds:
                return


def main() -> int:
    workload, group, rounds, seconds = sys.argv[1:]
    measure(workload, group, int(rounds), float(seconds))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # what is kept by torch.profiler and CUPTI at an end is not what is measured here


if __name__ == "__main__":
    sys.exit(main())
