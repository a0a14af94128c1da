"""Regions open and close around exactly what runs, and decorating changes nothing else."""

import asyncio
import inspect
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import leadline
from leadline.capture.current import CURRENT
from leadline.capture.region import region


class Recorder:
    """Stands for the native module: notes what begins and ends."""

    def __init__(self) -> None:
        self.log: list[str] = []

    def region_begin(self, name: str, detail: str | None = None, stays_ns: int = 0) -> int:
        self.log.append(f"+{name}" + (detail or "") + (f" after {stays_ns}" if stays_ns else ""))
        return len(self.log)

    def region_suspend(self, token: int) -> int:
        """Each stay counts as 1 ns."""
        begun = self.log[token - 1]
        assert begun.startswith("+")
        self.log.append("~")
        return int(begun.partition(" after ")[2] or 0) + 1

    def region_end(self, token: int) -> None:
        assert self.log[token - 1].startswith("+")
        self.log.append("-")


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    recorder = Recorder()
    monkeypatch.setattr(CURRENT, "native", recorder)
    return recorder.log


def begun(log: list[str]) -> int:
    return sum(line.startswith("+") for line in log)


def ended(log: list[str]) -> int:
    return log.count("-") + log.count("~")


def test_a_block(log: list[str]) -> None:
    with region("load", {"split": "train", "a": 1}):
        log.append("work")
    assert log == ['+load{"a": 1, "split": "train"}', "work", "-"]


def test_a_block_that_raises(log: list[str]) -> None:
    with pytest.raises(ValueError), region("load"):
        raise ValueError
    assert log == ["+load", "-"]


def test_one_region_object_nests_in_itself(log: list[str]) -> None:
    again = region("again")
    with again, again:
        pass
    assert log == ["+again", "+again", "-", "-"]


def test_nothing_is_recorded_while_nothing_is_measured() -> None:
    assert CURRENT.native is None
    with region("load"):
        assert region("f")(lambda: 3)() == 3


def test_a_region_that_began_before_the_session_does_not_end_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder()
    with region("outside"):
        monkeypatch.setattr(CURRENT, "native", recorder)
        monkeypatch.setattr(CURRENT, "generation", CURRENT.generation + 1)
    assert recorder.log == []


def test_a_region_of_the_session_before_does_not_end_in_the_next(
    log: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with region("first"):
        monkeypatch.setattr(CURRENT, "generation", CURRENT.generation + 1)
    assert log == ["+first"]


def test_a_function(log: list[str]) -> None:
    @region("f")
    def f(a: int, *, b: int) -> int:
        """Doc."""
        log.append("work")
        return a + b

    assert f(1, b=2) == 3
    assert log == ["+f", "work", "-"]
    assert (f.__name__, f.__doc__, str(inspect.signature(f))) == ("f", "Doc.", "(a: int, *, b: int) -> int")


def test_a_generator_is_outside_while_suspended(log: list[str]) -> None:
    @region("g")
    def g() -> Iterator[int]:
        log.append("one")
        yield 1
        log.append("two")
        yield 2

    log.extend(f"got {value}" for value in g())
    assert log == ["+g", "one", "~", "got 1", "+g after 1", "two", "~", "got 2", "+g after 2", "-"]
    assert inspect.isgeneratorfunction(g)


def protocol(decorate) -> list[object]:
    """Everything a generator can be put through."""
    seen: list[object] = []

    @decorate
    def g():
        try:
            seen.append((yield 1))
            try:
                yield 2
            except KeyError as error:
                seen.append(error.args)
            yield 3
            return "value"
        finally:
            seen.append("closed")

    def delegate():
        seen.append((yield from g()))

    running = delegate()
    seen += [next(running), running.send("sent"), running.throw(KeyError("k")), list(running)]
    closing = g()
    next(closing)
    closing.close()
    raising = g()
    next(raising)
    with pytest.raises(ZeroDivisionError):
        raising.throw(ZeroDivisionError())
    return seen


def test_the_generator_protocol_is_unchanged(log: list[str]) -> None:
    plain = protocol(lambda function: function)
    assert plain == protocol(region("g"))
    assert begun(log) == ended(log)
    assert log.count("-") == 3, "a call each: exhausted, closed, failed"


def test_coroutines_are_outside_while_others_run(log: list[str]) -> None:
    @region("a")
    async def a() -> str:
        log.append("a1")
        await asyncio.sleep(0)
        log.append("a2")
        return "value"

    async def b() -> None:
        log.append("b1")
        await asyncio.sleep(0)
        log.append("b2")

    async def both() -> list[object]:
        return list(await asyncio.gather(a(), b()))

    assert inspect.iscoroutinefunction(a)
    assert asyncio.run(both()) == ["value", None]
    assert log == ["+a", "a1", "~", "b1", "+a after 1", "a2", "-", "b2"]


def test_a_cancelled_coroutine_closes_its_region(log: list[str]) -> None:
    @region("wait")
    async def wait() -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            log.append("cleanup")

    async def cancel() -> None:
        task = asyncio.create_task(wait())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert log == ["+wait", "~", "+wait after 1", "cleanup", "-"]


def async_protocol(decorate) -> list[object]:
    seen: list[object] = []

    @decorate
    async def g():
        try:
            seen.append((yield 1))
            try:
                await asyncio.sleep(0)
                yield 2
            except KeyError as error:
                seen.append(error.args)
            yield 3
        finally:
            seen.append("closed")

    async def use() -> None:
        running = g()
        seen.append(await running.__anext__())
        seen.append(await running.asend("sent"))
        seen.append(await running.athrow(KeyError("k")))
        seen.append([item async for item in running])
        closing = g()
        await closing.__anext__()
        await closing.aclose()
        seen.append([item async for item in g()])

    asyncio.run(use())
    return seen


def test_the_async_generator_protocol_is_unchanged(log: list[str]) -> None:
    plain = async_protocol(lambda function: function)
    assert plain == async_protocol(region("g"))
    assert begun(log) == ended(log)
    assert log.count("-") == 3, "a call each: exhausted, closed, exhausted"


def test_a_detail_that_json_cannot_hold_is_refused() -> None:
    with pytest.raises(TypeError):
        region("load", {"tensor": object()})


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("caf\udce9.txt", "caf\\udce9.txt"),
        (b"caf\xe9", "caf\\xe9"),
        ("a\0b", "a\0b"),
        (7, "7"),
    ],
)
def test_any_name_is_a_text_that_a_file_can_hold(log, name, shown):
    with region(name):
        pass
    assert log == ["+" + shown, "-"]


def test_a_name_that_cannot_be_shown_is_told_by_its_type(log):
    class Odd:
        def __str__(self) -> str:
            raise ValueError("no")

    with region(Odd()):  # type: ignore[arg-type]
        pass
    assert log == ["+Odd", "-"]


def test_one_region_object_serves_several_threads(tmp_path: Path) -> None:
    """Each thread ends what it has begun, in whatever order they do."""
    shared, steps = leadline.region("shared"), [threading.Event() for _ in range(3)]

    def first() -> None:
        with shared:
            steps[0].set()
            steps[1].wait(20)
        with leadline.region("behind"):
            steps[2].set()

    def second() -> None:
        steps[0].wait(20)
        with shared:
            steps[1].set()
            steps[2].wait(20)

    with leadline.profile(tmp_path / "a.leadline", quiet=True):
        threads = [threading.Thread(target=one) for one in (first, second)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
    tree = leadline.open(str(tmp_path / "a.leadline")).tree
    assert [node.exclusive("call_time").count for node in tree.find(name="shared", kind="region")] == [1, 1]
    (behind,) = tree.find(name="behind", kind="region")
    assert "shared" not in [node.name for node in behind.path()]
