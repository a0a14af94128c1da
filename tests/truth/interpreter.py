"""Runs programs made of nested actions, each as a profile of its own: `python interpreter.py PROGRAMS.json`, in a folder
that receives 0.leadline, 1.leadline, ... An action is a list: its kind, then what `expected.py` says of that kind.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

import leadline

kept: list[torch.Tensor] = []


class Deliberate(Exception):
    pass


def run(body: list[Any]) -> None:
    for kind, *rest in body:
        ACTIONS[kind](*rest)


def work() -> None:
    x = torch.ones(8, requires_grad=True)
    x.exp().sum().backward()


def keep(size: int) -> None:
    kept.append(torch.empty(size, dtype=torch.uint8))


def region(name: str, body: list[Any]) -> None:
    with leadline.region(name):
        run(body)


def overlap(first: str, second: str, one: list[Any], two: list[Any], three: list[Any]) -> None:
    """Two regions of which neither lies inside the other."""
    outer, inner = leadline.region(first), leadline.region(second)
    outer.__enter__()
    run(one)
    inner.__enter__()
    run(two)
    outer.__exit__(None, None, None)
    run(three)
    inner.__exit__(None, None, None)


def opened(names: list[str]) -> contextlib.ExitStack:
    """Regions that outlive the frame that opened them."""
    with contextlib.ExitStack() as stack:
        for name in names:
            stack.enter_context(leadline.region(name))
        return stack.pop_all()


def stacked(names: list[str], body: list[Any]) -> None:
    with opened(names):
        run(body)


def suspended(name: str, inside: list[Any], outside: list[Any]) -> None:
    """A generator that stands still inside its region while others work."""

    def steps() -> Iterator[None]:
        with leadline.region(name):
            run(inside)
            yield
            run(inside)

    generator = steps()
    next(generator)
    run(outside)
    with contextlib.suppress(StopIteration):
        next(generator)


def abandoned(name: str, body: list[Any]) -> None:
    """A generator that is closed while it stands in its region."""

    def steps() -> Iterator[None]:
        with leadline.region(name):
            run(body)
            yield

    generator = steps()
    next(generator)
    generator.close()


def interleaved(names: list[str], body: list[Any]) -> None:
    """Coroutines of one thread, each in a region of its own across its awaits."""

    async def one(name: str) -> None:
        with leadline.region(name):
            run(body)
            await asyncio.sleep(0)
            run(body)

    async def every() -> None:
        await asyncio.gather(*(one(name) for name in names))

    asyncio.run(every())


def threaded(bodies: list[list[Any]]) -> None:
    threads = [threading.Thread(target=run, args=(body,)) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def raising(name: str, body: list[Any]) -> None:
    with contextlib.suppress(Deliberate), leadline.region(name):
        run(body)
        raise Deliberate


def paused(body: list[Any]) -> None:
    leadline.pause()
    run(body)
    leadline.resume()


def forked(body: list[Any]) -> None:
    pid = os.fork()
    if pid == 0:
        try:
            run(body)
            leadline.stop()
        finally:
            os._exit(0)
    os.waitpid(pid, 0)


ACTIONS = {
    action.__name__: action
    for action in (
        work, keep, region, overlap, stacked, suspended, abandoned, interleaved, threaded, raising, paused, forked,
    )
}  # fmt: skip


def main() -> None:
    torch.set_num_threads(1)
    work()  # what torch does once only, before anything is measured
    programs = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    for number, program in enumerate(programs):
        with leadline.profile(f"{number}.leadline", quiet=True, trace="steps=1"):
            run(program)
        kept.clear()


if __name__ == "__main__":
    main()
