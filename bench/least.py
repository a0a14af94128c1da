"""Calls timed in processes of their own, in several modes by turns: the least of each over all rounds.

A script has a worker (`SCRIPT --worker --calls N`) that prints its times with `print_least`, and starts it in modes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from common import add_results_option

_MARK = "LEAST"


def arguments(calls: int) -> argparse.Namespace:
    """Rounds, calls (`calls` unless given), whether this is the worker, and where results go."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--calls", type=int, default=calls)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    add_results_option(parser)
    return parser.parse_args()


def print_least(calls: Mapping[str, Callable[[], Any]], times: int, clock: Callable[[], int]) -> None:
    """In the worker: the least nanoseconds of each call by a clock, as JSON."""
    found = {}
    for name, call in calls.items():
        took = []
        for _ in range(times):
            before = clock()
            call()
            took.append(clock() - before)
        found[name] = min(took)
    print(_MARK, json.dumps(found))


def in_turns(
    script: str, modes: Mapping[str, Sequence[str]], rounds: int, calls: int, environment: Mapping[str, str]
) -> dict[str, dict[str, int]]:
    """The least times by mode. `modes`: the words between Python and the script in each."""
    least: dict[str, dict[str, int]] = {mode: {} for mode in modes}
    variables = {**os.environ, "PYTHONPATH": str(Path(__file__).parent), **environment}
    for _ in range(rounds):
        for mode, words in modes.items():
            command = [sys.executable, *words, script, "--worker", "--calls", str(calls)]
            done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
            found: dict[str, int] = json.loads(done.stdout.split(_MARK, 1)[1].splitlines()[0])
            for name, value in found.items():
                least[mode][name] = min(value, least[mode].get(name, value))
    return least
