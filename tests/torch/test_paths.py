"""Call paths against what Python itself reports at the very call."""

from __future__ import annotations

import asyncio
import functools
import sys
import threading

import torch
from tests.torch.frames import Expected, operator, statements

import leadline


def check(result, expected: Expected) -> None:
    """Every operator noted stands below exactly the frames that traceback saw."""
    assert expected.stacks
    for name, stack in expected.stacks.items():
        assert statements(operator(result, name)) == stack, name


def test_functions_lambdas_comprehensions_generators_and_c_functions(measure):
    at = Expected()
    x = torch.ones(3)

    def plain() -> None:
        at("aten::sin"), torch.sin(x)

    def generator():
        yield (at("aten::cos"), torch.cos(x))

    class Thing:
        def method(self) -> None:
            at("aten::tan"), torch.tan(x)

        @property
        def value(self):
            return at("aten::exp"), torch.exp(x)

        def __eq__(self, other: object) -> bool:
            at("aten::log"), torch.log(x)
            return True

        __hash__ = None

    def decorated(function):
        @functools.wraps(function)
        def wrapper():
            return function()

        return wrapper

    @decorated
    def inner() -> None:
        at("aten::erf"), torch.erf(x)

    def run() -> None:
        plain()
        list(generator())
        Thing().method()
        _ = Thing().value
        _ = Thing() == 1
        inner()
        (lambda: (at("aten::abs"), torch.abs(x)))()
        [(at("aten::neg"), torch.neg(x)) for _ in range(1)]
        {key: (at("aten::sqrt"), torch.sqrt(x)) for key in range(1)}
        sorted([2], key=lambda _: (at("aten::floor"), torch.floor(x), 1)[2])
        list(map(lambda _: (at("aten::ceil"), torch.ceil(x)), [1]))  # noqa: C417
        exec("at('aten::round'), torch.round(x)", {"at": at, "torch": torch, "x": x})
        if True:
            at("aten::sign"), torch.sign(x)

    check(measure(run), at)


def test_coroutines(measure):
    at = Expected()
    x = torch.ones(3)

    async def leaf(name, function):
        await asyncio.sleep(0)
        at(name), function(x)

    async def main() -> None:
        await leaf("aten::sin", torch.sin)
        await asyncio.gather(leaf("aten::cos", torch.cos), leaf("aten::tan", torch.tan))

    check(measure(lambda: asyncio.run(main())), at)


def test_exceptions_unwind(measure):
    at = Expected()
    x = torch.ones(3)

    def fails() -> None:
        try:
            at("aten::sin"), torch.sin(x)
            raise ValueError
        finally:
            at("aten::cos"), torch.cos(x)

    def run() -> None:
        try:
            fails()
        except ValueError:
            at("aten::tan"), torch.tan(x)
        try:
            torch.ones(2) @ torch.ones(3)
        except RuntimeError:
            at("aten::exp"), torch.exp(x)

    result = measure(run)
    check(result, at)
    assert not [loss for loss in result.losses if loss.kind.name.lower() == "operator_end_unmatched"]


def test_threads_have_their_own_paths(measure):
    at = Expected()
    x = torch.ones(3)

    def work() -> None:
        at("aten::sin"), torch.sin(x)

    def run() -> None:
        thread = threading.Thread(target=work, name="worker-of-test")
        thread.start()
        thread.join()
        at("aten::cos"), torch.cos(x)

    result = measure(run)
    check(result, at)
    assert operator(result, "aten::sin").path()[2].kind == "thread"
    assert operator(result, "aten::sin").path()[2].name != operator(result, "aten::cos").path()[2].name


def test_ten_thousand_frames(measure):
    depth = 10_000
    x = torch.ones(3)

    def down(levels: int) -> None:
        if levels:
            down(levels - 1)
        else:
            torch.sin(x)

    def run() -> None:
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(depth + 1000)
        try:
            down(depth)
        finally:
            sys.setrecursionlimit(limit)

    if sys.version_info < (3, 11):
        threading.stack_size(512 * 1024 * 1024)
    result = measure(run)
    own = [frame for frame in statements(operator(result, "aten::sin")) if frame[1] == "down"]
    lost = {loss.kind.name.lower(): loss.count for loss in result.losses}
    assert len(own) == depth + 1 or lost.get("python_frames_truncated")
    assert own[-1][2] == own[0][2] + 2


def test_code_made_in_a_loop_is_told_apart(measure):
    x = torch.ones(3)
    functions = ["sin", "cos", "tan", "exp", "log", "erf"]

    def run() -> None:
        for name in functions:
            code = compile(f"def made():\n    torch.{name}(x)\nmade()\n", f"<made {name}>", "exec")
            exec(code, {"torch": torch, "x": x})
            del code

    result = measure(run)
    for name in functions:
        assert statements(operator(result, f"aten::{name}"))[-1][0] == f"<made {name}>"


def test_regions_stand_above_the_frame_that_opened_them(measure):
    x = torch.ones(3)

    @leadline.region("whole")
    def outer() -> None:
        torch.sin(x)
        with leadline.region("part"):
            torch.cos(x)
            with torch.profiler.record_function("torch's"):
                torch.tan(x)
        torch.exp(x)

    result = measure(outer)

    def regions(name: str) -> list[str]:
        return [step.name for step in operator(result, name).path() if step.kind == "region"]

    assert regions("aten::sin") == ["whole"]
    assert regions("aten::cos") == ["whole", "part"]
    assert regions("aten::tan") == ["whole", "part", "torch's"]
    assert regions("aten::exp") == ["whole"]
    for name in ("aten::sin", "aten::cos", "aten::tan", "aten::exp"):
        assert statements(operator(result, name))[-1][1] == "outer"


def test_regions_of_interleaved_coroutines_do_not_mix(measure):
    x = torch.ones(3)

    async def task(name: str, function) -> None:
        with leadline.region(name):
            await asyncio.sleep(0)
            function(x)
            await asyncio.sleep(0)

    async def main() -> None:
        await asyncio.gather(task("first", torch.sin), task("second", torch.cos))
        torch.tan(x)

    result = measure(lambda: asyncio.run(main()))
    for name, region in (("aten::sin", ["first"]), ("aten::cos", ["second"]), ("aten::tan", [])):
        assert [step.name for step in operator(result, name).path() if step.kind == "region"] == region
