"""Runs a program below torch.profiler and Leadline at once: `beside.py OUTPUT PROGRAM ARGUMENTS...`.

Leaves OUTPUT.leadline and OUTPUT.json, what torch.profiler saw of the same operators: by name the calls and their time
in nanoseconds, and all bytes that were allocated and freed. Below torchrun each rank has its own, OUTPUT.RANK.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
from pathlib import Path

import torch

import leadline

OPERATORS = (0, 1)
"""RecordScope FUNCTION and BACKWARD_FUNCTION; others are the user's, the compiler's or TorchScript's."""


def main() -> None:
    output, program, *arguments = sys.argv[1:]
    if "RANK" in os.environ:
        output += "." + os.environ["RANK"]
    sys.argv = [program, *arguments]
    torch.set_num_threads(1)  # torch.profiler does not see what kernels call on the threads of OpenMP
    with (
        leadline.profile(f"{output}.leadline", quiet=True),
        torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as theirs,
    ):
        runpy.run_path(program, run_name="__main__")
    # The events themselves: key_averages() leaves out an operator that calls another overload of its own name.
    events = theirs.profiler.kineto_results.events()
    operators: dict[str, list[int]] = {}
    allocated = freed = 0
    for event in events:
        if event.name() == "[memory]":
            allocated += max(event.nbytes(), 0)
            freed += max(-event.nbytes(), 0)
        elif event.scope() in OPERATORS:
            row = operators.setdefault(event.name(), [0, 0])
            row[0] += 1
            row[1] += event.duration_ns()
    Path(f"{output}.json").write_text(json.dumps({"operators": operators, "bytes": [allocated, freed]}))


if __name__ == "__main__":
    main()
