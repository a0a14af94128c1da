"""Five programs for who reads `leadline analyze` as their authors would: `python -m gpu_five NAME SECONDS`."""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections.abc import Callable
from typing import Any

from gpu_run import rehearsing

PROGRAMS = ("gpt", "loading", "jax", "decode", "resnet50")


def loading() -> tuple[Callable[[], Any], Callable[[Callable[[], Any], int], float]]:
    """ResNet-50 whose batches are decoded in the training process itself."""
    from gpu_steps import Program, Runner

    device = "cpu" if rehearsing() else "cuda"
    runner = Runner(Program("resnet50", 4 if rehearsing() else 32, workers=0, tiny=rehearsing()), device)
    return runner.step, lambda step, steps: runner.timed(1, steps)


def load(name: str) -> tuple[Callable[[], Any], Callable[[Callable[[], Any], int], float]]:
    if name == "loading":
        return loading()
    if name == "jax":
        made: tuple[Any, Any] = importlib.import_module("gpu_jax_program").workload()
        return made
    module = importlib.import_module("fake_programs" if rehearsing() else "gpu_workloads")
    return module.workload(name), module.timed


def main() -> int:
    name, seconds = sys.argv[1], float(sys.argv[2])
    step, timed = load(name)
    timed(step, 2)
    begin, steps = time.monotonic(), 0
    while time.monotonic() - begin < seconds:
        timed(step, 5)
        steps += 5
    print(json.dumps({"program": name, "steps": steps, "step_ms": (time.monotonic() - begin) / steps * 1e3}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
