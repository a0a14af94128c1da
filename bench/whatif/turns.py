"""Programs in processes of their own that take steps in turns, so that no program warms another's caches or threads.

A turn's value is its mean step time. Several copies of both programs alternate, so that drifts of the machine hit all
of them; how far copies of one program differ is what this machine cannot tell apart (A/A). A trace is recorded by a
process that was measured, when its turns are over: where its memory lies is part of how fast a process is.
"""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import os
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from cpu_models import Program
from quiet import undisturbed

KEEPING = {"MALLOC_MMAP_THRESHOLD_": str(32 << 20), "MALLOC_TRIM_THRESHOLD_": str(8 << 30)}
"""What a new page costs differs tenfold from minute to minute on a virtual machine whose host takes freed pages away;
with these, glibc keeps what a step frees for the next one, as the allocators that training is advised to use do."""
LOST = 0.02
"""Share of a turn that others may take; a turn that was disturbed more is taken again."""
TRIES = 6


@dataclass(frozen=True)
class Copies:
    """Median seconds per step of each copy of a program."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def spread(self) -> float:
        """Slowest over fastest copy, minus one."""
        return max(self.seconds) / min(self.seconds) - 1


@dataclass(frozen=True)
class Measured:
    """A pair. `lost`: the largest share of a turn or a recording that others took. `recorded_by`: which copy of the
    program before wrote each trace."""

    before: Copies
    after: Copies
    lost: float
    recorded_by: Mapping[str, int]


class Process:
    """One program in a process of its own; it waits while others have their turn."""

    def __init__(self, program: Program) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, program))
        with _environment(KEEPING if program.keeps_memory else {}):
            self._process.start()
        theirs.close()

    def ask(self, *request: Any) -> Any:
        self._pipe.send(request)
        return self._pipe.recv()

    def close(self) -> None:
        with contextlib.suppress(BrokenPipeError):
            self._pipe.send(None)
        self._process.join(20)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


@contextlib.contextmanager
def started(program: Program) -> Iterator[Process]:
    process = Process(program)
    try:
        yield process
    finally:
        process.close()


def measure(
    before: Program, after: Program, traces: Mapping[str, Path], *, copies: int, rounds: int, turn_seconds: float
) -> Measured:
    """Let copies of both programs take turns, and then record a trace of the program before with each source."""
    with contextlib.ExitStack() as stack:
        pairs = [(stack.enter_context(started(before)), stack.enter_context(started(after))) for _ in range(copies)]
        processes = [process for pair in pairs for process in pair]
        steps = [max(4, round(turn_seconds / process.ask("turn", 8))) for process in processes]
        turns: list[list[float]] = [[] for _ in processes]
        lost = 0.0
        for number in range(rounds):
            order = range(len(processes)) if number % 2 == 0 else reversed(range(len(processes)))
            for place in order:
                asked = functools.partial(processes[place].ask, "turn", steps[place])
                seconds, others = undisturbed(asked, LOST, TRIES)
                turns[place].append(float(seconds))
                lost = max(lost, others)
        recorded_by = {}
        for copy, (source, path) in enumerate(traces.items()):
            recorded_by[source] = copy % copies
            asked = functools.partial(pairs[copy % copies][0].ask, "record", source, str(path))
            lost = max(lost, undisturbed(asked, LOST, TRIES)[1])
    medians = [statistics.median(values) for values in turns]
    return Measured(Copies(tuple(medians[::2])), Copies(tuple(medians[1::2])), lost, recorded_by)


@contextlib.contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Variables for a process that is started inside."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _serve(pipe: Connection, program: Program) -> None:
    """The process's side: answers until it is sent None."""
    from cpu_models import Runner
    from outcomes import write_kineto, write_window

    if program.threads == 1 and program.workers is None:
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # one core for all copies: cores may differ
    runner = Runner(program)
    with contextlib.suppress(EOFError):
        while request := pipe.recv():
            if request[0] == "turn":
                pipe.send(runner.turn(request[1]))
            else:
                import torch

                if request[1] == "leadline":
                    # workers are measured when they are started under Leadline, as they are in a program
                    write_window(lambda: (Runner(program) if program.workers else runner).step, Path(request[2]))
                else:
                    write_kineto(runner.step, [torch.profiler.ProfilerActivity.CPU], Path(request[2]))
                pipe.send(True)
