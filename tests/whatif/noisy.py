"""Training loops for the machine whose steps scatter as real ones do: the truth about what an edit gains, with noise.

A loop is drawn once (what a step does, on which streams, where it waits); every step then has times of its own. A trace
shows a few steps; what the edit really gives is measured on many other ones.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from kineto_writer import BASE_US, to_kineto
from machine import Machine, Op, Program, Times

from leadline.whatif import EdgeType, Graph, load

MANY = 24
"""Steps on which the truth is measured."""
SIDE = 20


@dataclass(frozen=True)
class Loop:
    """Statements of one step without noise. `depth`, `slowdown`: of the machine; `scatter`: of single times."""

    body: tuple[Op, ...]
    depth: int
    slowdown: float
    scatter: float


def draw_loop(seed: int) -> Loop:
    """A step of 10 to 40 launches, some on a second stream that waits and is waited for, with a wait of the CPU at its
    end and perhaps one in the middle; bound by the CPU, the device, or both in turn."""
    dice = random.Random(seed)
    heavy = dice.choice((8_000, 20_000, 60_000, 150_000))
    body: list[Op] = [Op(0, "work", dice.randint(5_000, 80_000))]
    event = 0
    for _ in range(dice.randint(10, 40)):
        if dice.random() < 0.3:
            body.append(Op(0, "work", dice.randint(1_000, 30_000)))
        if dice.random() < 0.5:
            body.append(Op(0, "python", dice.randint(1_000, 20_000)))
        body.append(Op(0, "launch", dice.randint(3_000, 9_000), 7, int(heavy * dice.uniform(0.2, 1.8))))
        if dice.random() < 0.12:
            event += 2
            body += [
                Op(0, "record", 800, 7, event=event),
                Op(0, "wait", 800, SIDE, event=event),
                Op(0, "launch", 5_000, SIDE, int(heavy * dice.uniform(0.5, 2.0))),
                Op(0, "record", 800, SIDE, event=event + 1),
                Op(0, "launch", 5_000, 7, int(heavy * dice.uniform(0.2, 1.0))),
                Op(0, "wait", 800, 7, event=event + 1),
                Op(0, "launch", 5_000, 7, int(heavy * dice.uniform(0.2, 1.0))),
            ]
        if dice.random() < 0.04:
            body.append(Op(0, "sync", 2_000, 7))
    body += [Op(0, "sync_device", 2_000), Op(0, "work", dice.randint(2_000, 30_000))]
    return Loop(tuple(body), dice.choice((0, 12)), dice.choice((1.0, 1.0, 1.25)), dice.choice((0.02, 0.05, 0.1)))


def unroll(loop: Loop, steps: int, seed: int, change: Callable[[Op], list[Op]] = lambda op: [op]) -> Program:
    """`steps` steps with times of their own, every statement changed by `change` first."""
    dice = random.Random(seed)
    ops: list[Op] = []
    for step in range(steps):
        common = math.exp(dice.gauss(0, loop.scatter / 2))
        for op in (new for old in loop.body for new in change(old)):
            factor = common * math.exp(dice.gauss(0, loop.scatter))
            if op.kind == "python" and dice.random() < 0.01:
                factor *= 5
            number = len(ops) + 1
            event = op.event + 1000 * step if op.kind in ("record", "wait") else 0
            ops.append(
                replace(
                    op, id=number, cpu_ns=int(op.cpu_ns * factor), kernel_ns=int(op.kernel_ns * factor), event=event
                )
            )
    return Program({(0, 0): tuple(ops)})


def measure(loop: Loop, program: Program) -> Times:
    return Machine(program, 700, depth=loop.depth, slowdown=loop.slowdown).run()


def mean_step_ns(loop: Loop, seed: int, change: Callable[[Op], list[Op]] = lambda op: [op]) -> float:
    return measure(loop, unroll(loop, MANY, seed, change)).makespan_ns / MANY


def trace_of(loop: Loop, steps: int, seed: int, folder: Path, *, sync_records: bool, old: bool = False) -> Graph:
    """The graph of a trace of some steps."""
    program = unroll(loop, steps, seed)
    times = measure(loop, program)
    ops = program.threads[(0, 0)]
    size = len(ops) // steps
    bounds = [(times.cpu[ops[at * size].id][0], times.cpu[ops[(at + 1) * size - 1].id][1]) for at in range(steps)]
    path = folder / "noisy.json"
    path.write_text(json.dumps(to_kineto(program, times, 0, sync_records=sync_records, steps=bounds, old=old)))
    return load(path)


def trace_of_later_steps(loop: Loop, before: int, steps: int, seed: int, folder: Path) -> Graph:
    """The graph of a trace that begins when `before` steps have been launched, as a profiler's that warms up: of their
    work it holds what the device had not begun, without its launch."""
    program = unroll(loop, before + steps, seed)
    times = measure(loop, program)
    ops = program.threads[(0, 0)]
    size = len(ops) // (before + steps)
    bounds = [
        (times.cpu[ops[at * size].id][0], times.cpu[ops[(at + 1) * size - 1].id][1])
        for at in range(before, before + steps)
    ]
    trace = to_kineto(program, times, 0, steps=bounds)
    begin = BASE_US + bounds[0][0] / 1000
    trace["traceEvents"] = [event for event in trace["traceEvents"] if event.get("ts", begin) >= begin]
    path = folder / "later.json"
    path.write_text(json.dumps(trace))
    return load(path)


def guessed_waits(graph: Graph, loop: Loop, steps: int) -> tuple[int, int, int]:
    """Waits between streams that the graph has without a record of them: right, wrong, and how many there are in truth.

    A guess is right when it makes a stream wait that does in the program, for the work that it waits for there.
    """
    true: set[tuple[int, int]] = set()
    number, last, awaited = 0, {}, {}  # type: int, dict[int, int], dict[int, list[int]]
    events: dict[int, int] = {}
    for step in range(steps):
        for op in loop.body:
            number += 1
            if op.kind == "launch":
                true |= {(source, number) for source in awaited.pop(op.stream, [])}
                last[op.stream] = number
            elif op.kind == "record" and op.stream in last:
                events[op.event + 1000 * step] = last[op.stream]
            elif op.kind == "wait" and (op.event + 1000 * step) in events:
                awaited.setdefault(op.stream, []).append(events[op.event + 1000 * step])
    found: set[tuple[int, int]] = set()
    edges = graph.edges
    order, lane = graph.column("order"), graph.column("lane")
    for source, target in zip(
        *(edges[name][edges["type"] == EdgeType.GUESSED] for name in ("src", "dst")), strict=True
    ):
        behind = np.flatnonzero((lane == lane[target]) & (order >= order[target]))
        behind = behind[np.argsort(order[behind])]
        names = [graph.names[graph.column("name")[task]] for task in behind[:4]]
        follower = next((name for name in names if name.startswith("kernel_")), "")
        awaited_name = graph.names[graph.column("name")[source]]
        if follower and awaited_name.startswith("kernel_"):
            found.add((int(awaited_name[7:]), int(follower[7:])))
    return len(found & true), len(found - true), len(true)
