"""What the loop itself tells: which steps ran, how long they took, which were recorded. A side file of the profile.

The side file (NAME.json beside NAME.leadline) is written when measuring begins and when it ends, so a rank that was
killed is known by a side file that never became complete.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import socket
import sys
import time
from array import array
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from leadline._output import write_text
from leadline.capture.process_info import environment_number
from leadline.capture.training.config import TrainingConfig
from leadline.capture.training.schedule import described

FORMAT = 1
MAX_STEPS = 20_000  # kept with number and time; the sums count all of them
_JOB = ("TORCHELASTIC_RUN_ID", "SLURM_JOB_ID", "MASTER_ADDR", "MASTER_PORT")


class Journal:
    """The steps of one process's run. Times are wall time in nanoseconds on CLOCK_MONOTONIC."""

    def __init__(self, config: TrainingConfig, rank: int) -> None:
        self.place: Path | None = None
        self.shared = False
        """The profile is made by somebody else, for several processes."""
        self.recorded: list[int] = []
        self.model: dict[str, Any] = {}
        self.out_of_memory: dict[str, Any] | None = None
        self.first_step: int | None = None
        self.last_step: int | None = None
        self.steps = 0
        self.sum_ns = 0
        self.measured = 0
        self.measured_ns = 0
        self._config = config
        self._rank = rank
        self._numbers = array("q")
        self._durations = array("q")
        self._began_ns = 0
        self._between_ns = 0
        self._ended_ns = 0
        self._started_at_ns = time.time_ns()
        self._complete = False

    def begin(self, number: int | None) -> None:
        """A step begins now."""
        now = time.monotonic_ns()
        if self._ended_ns:
            self._between_ns += now - self._ended_ns
            self._ended_ns = 0
        self._began_ns = now

    def end(self, number: int, *, recorded: bool, measured: bool = True) -> None:
        """The step `number` has ended now."""
        now = time.monotonic_ns()
        duration = now - self._began_ns
        self._began_ns = self._ended_ns = now
        self.first_step = number if self.first_step is None else self.first_step
        self.last_step = number
        self.steps += 1
        self.sum_ns += duration
        if measured:
            self.measured += 1
            self.measured_ns += duration
        if len(self._numbers) < MAX_STEPS:
            self._numbers.append(number)
            self._durations.append(duration)
        else:
            at = self.steps % MAX_STEPS  # the newest ones stay
            self._numbers[at], self._durations[at] = number, duration
        if recorded:
            self.recorded.append(number)

    def finish(self, path: Path | None) -> None:
        """Measuring has ended; `path` is the profile, None where there is none of our own."""
        self._complete = True
        if path is not None:
            self.place = path
        self.write()

    def next(self) -> Journal:
        """The journal of the file that comes after this one's."""
        following = Journal(self._config, self._rank)
        following.model = self.model
        return following

    def facts(self) -> dict[str, Any]:
        """Everything, as JSON holds it."""
        return {
            "leadline_training": FORMAT,
            "complete": self._complete,
            "shared": self.shared,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "rank": self._rank,
            "measured_ranks": measured_ranks(self._config),
            "world_size": environment_number("WORLD_SIZE", 1),
            "job": job_name(),
            "program": sys.argv[0] if sys.argv else "",
            "started_at_ns": self._started_at_ns,
            "ended_at_ns": time.time_ns() if self._complete else None,
            "config": dataclasses.asdict(self._config),
            "schedule": described(self._config),
            "model": self.model,
            "out_of_memory": self.out_of_memory,
            "recorded_steps": self.recorded,
            "first_step": self.first_step,
            "last_step": self.last_step,
            "steps": self.steps,
            "steps_sum_ns": self.sum_ns,
            "measured_steps": self.measured,
            "measured_sum_ns": self.measured_ns,
            "between_steps_ns": self._between_ns,
            "step_numbers": list(self._numbers),
            "step_ns": list(self._durations),
        }

    def write(self) -> None:
        """Put the side file beside the profile, whole or not at all."""
        if self.place is None:
            return
        target = self.place.with_suffix(".json")
        with contextlib.suppress(OSError):  # the profile is what counts
            write_text(target, json.dumps(self.facts()))


def job_name(environment: Mapping[str, str] = os.environ) -> str:
    """What all ranks of a job share and other jobs do not; empty where no launcher says.

    `torchrun` without a rendezvous id calls every job "none": then address and port of the master tell them apart.
    """
    told = {name: environment.get(name, "") for name in _JOB}
    return ",".join(f"{name}={value}" for name, value in told.items() if value and value != "none")


def measured_ranks(config: TrainingConfig) -> list[int] | None:
    """Numbers of the ranks that were asked for; None where nobody says which are the first of their nodes."""
    world = environment_number("WORLD_SIZE", 1)
    if config.ranks == "first-of-node":
        each = environment_number("LOCAL_WORLD_SIZE", 0)
        return list(range(0, world, each)) if each else None
    return [rank for rank in range(world) if config.rank_measures(rank, rank)]
