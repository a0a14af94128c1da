"""Stacks that are read in part, and end at calls that have not returned, are what whole walks find."""

import asyncio
import random
import threading

import pytest
import torch
from torch import nn

import leadline
from leadline import _native

DEEPEST = 6


class Program:
    """Runs at random: modules in modules, recursion, generators, coroutines, exceptions, backward with hooks."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.x = torch.ones(2, 2, requires_grad=True)
        self.modules = [Block(self, nn.Linear(2, 2)) for _ in range(3)]
        self.suspended = []

    def run(self, depth: int) -> torch.Tensor:
        y = self.x + 1
        for _ in range(self.random.randrange(1, 4)):
            if depth >= DEEPEST:
                return y * 2
            way = self.random.randrange(9)
            if way < 3:
                y = self.random.choice(self.modules)(y, depth + 1)
            elif way == 3:
                y = self.run(depth + 1)
            elif way == 4:
                y = sum(self.values(depth + 1))
            elif way == 5:
                y = asyncio.run(self.waits(depth + 1)) if not running() else y - 1
            elif way == 6:
                y = self.fails(depth + 1)
            elif way == 7:
                y = self.resumes(depth + 1)
            else:
                with torch.enable_grad():
                    z = (self.x * 3).sum()
                    z.register_hook(lambda grad: self.run(DEEPEST) is None or grad)
                    z.backward()
                y = y + 1
        return y.detach() + self.x

    def values(self, depth: int):
        for _ in range(2):
            yield self.run(depth) + 1
            yield self.x * 2

    async def waits(self, depth: int) -> torch.Tensor:
        async def other(number: int) -> torch.Tensor:
            y = self.x * number
            await asyncio.sleep(0)
            y = self.modules[number](y, DEEPEST - 1)
            await asyncio.sleep(0)
            return y + 1

        parts = await asyncio.gather(other(0), other(1), other(2))
        return sum(parts)

    def fails(self, depth: int) -> torch.Tensor:
        try:
            self.modules[0](self.x, -1)
        except ValueError:
            return self.run(depth)
        raise AssertionError

    def resumes(self, depth: int) -> torch.Tensor:
        """A generator that was begun in one place goes on in another."""
        if self.suspended and self.random.random() < 0.7:
            return next(self.suspended.pop(), self.x) + 1
        self.suspended.append(self.values(DEEPEST))
        return next(self.suspended[-1])


class Block(nn.Module):
    def __init__(self, program: Program, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner
        self.program = program

    def forward(self, x: torch.Tensor, depth: int) -> torch.Tensor:
        if depth < 0:
            raise ValueError("as asked")
        y = self.inner(x)
        return self.program.run(depth) + y if depth < DEEPEST else y + x


def running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


@pytest.mark.parametrize("seed", range(12))
def test_every_partial_walk_finds_what_a_whole_one_finds(tmp_path, seed):
    with leadline.profile(tmp_path / "x.leadline", quiet=True):
        _native.check_walks(True)
        try:
            programs = [Program(seed * 2), Program(seed * 2 + 1)]
            threads = [threading.Thread(target=lambda p=p: [p.run(0) for _ in range(3)]) for p in programs]
            for thread in threads:
                thread.start()
            Program(seed).run(0)
            for thread in threads:
                thread.join()
        finally:
            checked, wrong = _native.check_walks(False)
    assert checked > 50
    assert wrong == 0


def test_greenlets_that_change_places_inside_modules(tmp_path):
    greenlet = pytest.importorskip("greenlet", reason="needs greenlet")
    program = Program(1)
    main = greenlet.getcurrent()

    class Switching(nn.Module):
        def forward(self, x):
            y = x + 1
            main.switch()
            return y * 2 + program.run(DEEPEST - 2)

    def body():
        for _ in range(3):
            Switching()(program.x)

    with leadline.profile(tmp_path / "x.leadline", quiet=True):
        _native.check_walks(True)
        try:
            others = [greenlet.greenlet(body) for _ in range(3)]
            for _ in range(6):
                for other in others:
                    if not other.dead:
                        other.switch()
                program.run(2)
        finally:
            checked, wrong = _native.check_walks(False)
    assert checked > 50
    assert wrong == 0


def test_calls_are_as_they_were_when_measuring_ends(tmp_path):
    class Own(nn.Module):
        def forward(self, x):
            return x + 1

    with leadline.profile(tmp_path / "x.leadline", quiet=True):
        Own()(torch.ones(1))
    for called in (nn.Module, nn.Linear, Own):
        probe = type("Probe", (), {"__call__": lambda self: 7})
        assert probe()() == 7
        assert called.__call__ is nn.Module.__call__
    assert Own()(torch.ones(1)).item() == 2
    with leadline.profile(tmp_path / "y.leadline", quiet=True):
        torch.ones(1, requires_grad=True).sum().backward()
