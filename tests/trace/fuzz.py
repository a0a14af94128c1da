"""Damaged Kineto traces against `leadline whatif`, under a limit of memory: every one is answered or refused in one
sentence.

    python -m tests.trace.fuzz --seconds 600 [--seed N] [--keep FOLDER]

An answer must make sense: times are finite and not negative, a prediction lies inside its range, and a trace that lost
events says so. Exit code 1 on the first that does not, on any exception, or when a file takes longer than `--slowest`
seconds; the file is kept and its number printed. The same seed gives the same files.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import sys
from pathlib import Path
from typing import Any

from tests.fuzzing import Fuzzer, main
from tests.trace.damaged import damaged

from leadline.cli.main import main as run_command

_SLACK = 1.0 + 1e-9


def questions(path: Path, folder: Path) -> list[list[str]]:
    """The command lines that a file is asked with, by turns; the first kind is asked most."""
    out = ["-o", str(folder / "out")]
    ranked = ["whatif", str(path), "--format", "json", *out]
    distributed = ["--set", "world_size=8", "--set", "gradient_bytes=10MB"]
    return [
        ranked,
        ["whatif", str(path), *out],
        [*ranked, "--scenario", "distributed", *distributed],
        ranked,
        ["whatif", str(path), "--critical-path", *out],
        [*ranked, "--scenario", "p3", *distributed],
        ["whatif", str(path), "--export", "perfetto", *out],
        ["whatif", str(path), str(path), "--format", "json", *out],
        [*ranked, "--steps", "1-1"],
    ]


def check(answer: dict[str, Any]) -> None:
    """Times of an answer are possible."""
    times = [answer["measured_ns"], answer["replayed_ns"]]
    for found in answer["scenarios"]:
        low, expected, high = found["low_ns"], found["predicted_ns"], found["high_ns"]
        assert low <= expected * _SLACK and expected <= high * _SLACK, found
        times += [low, expected, high]
    assert all(math.isfinite(value) and value >= 0 for value in times), times
    assert math.isfinite(answer["replay_error"])


def ask(arguments: list[str], folder: Path) -> bool:
    """Whether the question was answered; refusing it must take exactly one line."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        code = run_command(arguments)
    if code == 0:
        if "json" in arguments:
            check(json.loads((folder / "out").read_text(encoding="utf-8")))
        return True
    assert code == 2 and len(said.getvalue().splitlines()) == 1, f"{arguments}: {code}, {said.getvalue()}"
    return False


class TraceFuzzer(Fuzzer):
    """Damaged traces."""

    purpose = "Fuzz the reader of Kineto traces and everything behind it."
    stem = "damaged"
    accepted = "were answered"

    def make(self, number: int, seed: int) -> tuple[str, bytes]:
        return damaged(number, seed)

    def attempt(self, number: int, path: Path, folder: Path) -> bool:
        choices = questions(path, folder)
        return ask(choices[number % len(choices)], folder)


if __name__ == "__main__":
    sys.exit(main(TraceFuzzer()))
