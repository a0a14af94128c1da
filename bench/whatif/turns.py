"""Programs in processes of their own that take steps in turns, so that no program warms another's caches or threads.

A turn's value is its mean step time; programs alternate (A B A' ...), so that drifts of the machine hit all of them.
`A'` is a second copy of A: how far their medians differ is what this machine cannot tell apart.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from cpu_models import Program
from quiet import undisturbed

LOST = 0.02
"""Share of a turn that others may take; a turn that was disturbed more is taken again."""
TRIES = 6


@dataclass(frozen=True)
class Turns:
    """Seconds per step of every turn of one program, and the share that others took of the worst of them."""

    seconds: tuple[float, ...]
    lost: float

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


class Process:
    """One program in a process of its own; it waits while others have their turn."""

    def __init__(self, program: Program) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, program))
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


def take_turns(programs: Sequence[Program], rounds: int, turn_seconds: float) -> list[Turns]:
    """Every program in its own process, one turn each per round; the first round only warms up."""
    with contextlib.ExitStack() as stack:
        processes = [stack.enter_context(started(program)) for program in programs]
        rough = [process.ask("turn", 8) for process in processes]
        steps = [max(4, round(turn_seconds / seconds)) for seconds in rough]
        turns: list[list[float]] = [[] for _ in programs]
        lost = [0.0 for _ in programs]
        for number in range(rounds):
            places = range(len(programs)) if number % 2 == 0 else reversed(range(len(programs)))
            for place in places:
                process, count = processes[place], steps[place]
                seconds, others = undisturbed(lambda: float(process.ask("turn", count)), LOST, TRIES)  # noqa: B023
                turns[place].append(seconds)
                lost[place] = max(lost[place], others)
    return [Turns(tuple(values), others) for values, others in zip(turns, lost, strict=True)]


def record(program: Program, source: str, path: Path) -> tuple[float, float]:
    """Write a trace of a few steps of a program; seconds of an unrecorded step just before, and the share that others
    took of the whole."""

    def once() -> float:
        with started(program) as process:
            rough = process.ask("turn", 8)
            before: float = process.ask("turn", max(8, round(0.4 / rough)))
            process.ask("record", source, str(path))
        return before

    return undisturbed(once, LOST, TRIES)


def _serve(pipe: Connection, program: Program) -> None:
    """The process's side: answers until it is sent None."""
    from cpu_models import Runner
    from outcomes import write_kineto, write_window

    runner = Runner(program)
    with contextlib.suppress(EOFError):
        while request := pipe.recv():
            if request[0] == "turn":
                pipe.send(runner.turn(request[1]))
            else:
                import torch

                if request[1] == "leadline":
                    write_window(runner.step, Path(request[2]))
                else:
                    write_kineto(runner.step, [torch.profiler.ProfilerActivity.CPU], Path(request[2]))
                pipe.send(True)
