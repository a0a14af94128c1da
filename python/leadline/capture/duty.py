"""Whole steps are measured or left out, in blocks drawn at random: shares are those of the measured steps, and what
measuring costs is measured too, by comparing their time with that of the steps left out.

A block has a power of two of steps, at least `LEAST_STEPS` and about `BLOCK_S` long, so that switching costs little and
CUPTI is off in most of a block that is left out. Whether it is measured depends on its number and the session alone:
ranks of one job, which wait for each other, leave out the same steps. Promise: a border costs a clock reading.
"""

from __future__ import annotations

import itertools
import math
import os
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from leadline._dataclass import dataclass, field

if TYPE_CHECKING:
    from leadline.capture.records import ProcessRecord
    from leadline.capture.session import Session

WARM_UP_STEPS = 16
WARM_UP_S = 2.0
BLOCK_S = 0.5
LEAST_STEPS = 4
SETTLE_S = 0.15
"""A step that begins so soon after a switch is not compared: threads of Leadline and CUPTI take so long to follow."""
_FEWEST_COMPARED = 4
_NOTE_S = 10.0


@dataclass(frozen=True)
class Slowdown:
    """How many times as long a measured step takes as one left out, with its 95 % interval; from so many blocks."""

    ratio: float
    low: float
    high: float
    blocks: int


@dataclass
class Block:
    """Steps in a row that were all measured, or all left out."""

    measured: bool
    steps: int = 0
    walls_ns: list[int] = field(default_factory=list)
    """Of the steps that are compared."""


def slowdown(blocks: Sequence[tuple[bool, float]]) -> Slowdown | None:
    """From the typical step of each block, in order; neighbours differ in whether they were measured. None: too few.

    Each block left out is compared with both neighbours, so that a drift of the program cancels. Comparisons share a
    neighbour, hence the covariance in the variance of their mean.
    """
    differences = [
        (math.log(before) + math.log(after)) / 2 - math.log(left_out)
        for (one, before), (measured, left_out), (other, after) in zip(blocks, blocks[1:], blocks[2:], strict=False)
        if one and other and not measured
    ]
    count = len(differences)
    if count < _FEWEST_COMPARED:
        return None
    mean = statistics.fmean(differences)
    apart = [one - mean for one in differences]
    variance = sum(one * one for one in apart) / (count - 1)
    shared = max(sum(one * next_one for one, next_one in itertools.pairwise(apart)) / (count - 1), 0.0)
    half = _quantile_of_t(count - 1) * math.sqrt((variance + 2 * shared) / count)
    return Slowdown(math.exp(mean), math.exp(mean - half), math.exp(mean + half), count)


def _quantile_of_t(degrees: int) -> float:
    """97.5 % of Student's distribution, by Cornish and Fisher's expansion; within 1 % from four degrees on."""
    z = statistics.NormalDist().inv_cdf(0.975)
    cubed, fifth, seventh = z * z * z, math.pow(z, 5), math.pow(z, 7)
    first, second = (cubed + z) / 4, (5 * fifth + 16 * cubed + 3 * z) / 96
    third = (3 * seventh + 19 * fifth + 17 * cubed - 15 * z) / 384
    return z + first / degrees + second / degrees**2 + third / degrees**3


class Duty:
    """Told of each border between steps, with the time: whether the step that begins there is measured."""

    def __init__(self, percent: float, seed: str) -> None:
        self.percent = percent
        self.measured = True
        self.steps = {True: 0, False: 0}
        self.left_out_ns = 0
        self.compared: list[tuple[bool, float]] = []
        self._seed = seed
        self._block = Block(True)
        self._in_block = 0  # steps; 0: warming up
        self._number = 0  # of the step that begins
        self._first_ns = self._border_ns = self._switched_ns = -1

    def border(self, now_ns: int) -> bool:
        """A step ends and the next one begins."""
        if self._border_ns >= 0:
            self._book(now_ns - self._border_ns)
        else:
            self._first_ns = self._switched_ns = now_ns
        self._border_ns = now_ns
        self._number += 1
        if not self._in_block:
            self._warm_up(now_ns)
        if self._in_block and self._number % self._in_block == 0:
            self._draw(now_ns)
        return self.measured

    def facts(self) -> dict[str, Any]:
        """For the process's record."""
        blocks = [*self.compared, *_typical(self._block)]
        told: dict[str, Any] = {
            "percent": self.percent,
            "steps_measured": self.steps[True],
            "steps_left_out": self.steps[False],
            "left_out_ns": self.left_out_ns,
        }
        if (found := slowdown(blocks)) is not None:
            told["slowdown"] = {"ratio": found.ratio, "low": found.low, "high": found.high, "blocks": found.blocks}
        return told

    def _book(self, wall_ns: int) -> None:
        self.steps[self.measured] += 1
        self.left_out_ns += 0 if self.measured else wall_ns
        self._block.steps += 1
        if self._border_ns - self._switched_ns >= SETTLE_S * 1e9:
            self._block.walls_ns.append(wall_ns)

    def _warm_up(self, now_ns: int) -> None:
        walls = self._block.walls_ns
        if self._number <= WARM_UP_STEPS or now_ns - self._first_ns < WARM_UP_S * 1e9 or not walls:
            return
        steps = BLOCK_S * 1e9 / max(statistics.median(walls[-WARM_UP_STEPS:]), 1)
        self._in_block = 1 << math.ceil(math.log2(max(steps, LEAST_STEPS)))
        self._block.walls_ns = []  # the first steps are like no others

    def _draw(self, now_ns: int) -> None:
        number = self._number // self._in_block
        wanted = random.Random(f"{self._seed} {number}").random() < self.percent / 100
        if wanted == self.measured:
            return
        self.compared += _typical(self._block)
        self._block = Block(wanted)
        self.measured = wanted
        self._switched_ns = now_ns


def _typical(block: Block) -> list[tuple[bool, float]]:
    """A block's median step; of one too short to compare nothing, which then ends what is compared in a row."""
    return [(block.measured, float(statistics.median(block.walls_ns)))] if block.walls_ns else []


class DutyKeeper:
    """Pauses and resumes measuring at borders of steps."""

    def __init__(
        self,
        duty: Duty,
        pause: Callable[[], None],
        resume: Callable[[], None],
        note: Callable[[Mapping[str, Any]], None],
    ) -> None:
        self._duty = duty
        self._pause, self._resume, self._note = pause, resume, note
        self._given = False
        self._noted_ns = time.monotonic_ns()

    def border(self, *, given: bool = False) -> None:
        """A step of the program has ended. `given`: the program says so itself, and what optimizers say counts no
        more."""
        if self._given and not given:
            return
        self._given = given
        before, now = self._duty.measured, time.monotonic_ns()
        after = self._duty.border(now)
        if after != before:
            (self._resume if after else self._pause)()
        if now - self._noted_ns > _NOTE_S * 1e9:
            self._noted_ns = now
            self._note(self._duty.facts())

    def stop(self) -> None:
        """The session ends."""
        self._note(self._duty.facts())


def keep_duty(session: Session, record: ProcessRecord, write: Callable[[], None]) -> DutyKeeper:
    """For a session that begins; what there is to tell goes into its record."""

    def note(told: Mapping[str, Any]) -> None:
        record.duty = dict(told)
        write()

    who = "duty"
    duty = Duty(session.options.duty, _seed(session.part.folder.name))
    return DutyKeeper(duty, lambda: session.pause(who), lambda: session.resume(who), note)


def _seed(session: str) -> str:
    """The same on all ranks of a job."""
    where = [os.environ.get(name, "") for name in ("MASTER_ADDR", "MASTER_PORT", "SLURM_JOB_ID")]
    return " ".join(where) if any(where) else session
