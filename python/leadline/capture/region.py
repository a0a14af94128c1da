"""`leadline.region`: a named range, as a `with` block or a decorator for functions, coroutines and generators.

Costs a look at one attribute while nothing is measured. A decorated coroutine or generator is inside its region only
while it runs: each resumption opens the region and each suspension closes it, so that what other tasks do in between is
not booked on it. A `with` block around an `await` stays open in name; the native side sets it aside while its
coroutine's frame is not running.
"""

from __future__ import annotations

import functools
import inspect
import json
from _thread import get_ident
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from types import TracebackType
from typing import Any, TypeVar, cast

from leadline.capture.contained import lose
from leadline.capture.current import CURRENT

_Function = TypeVar("_Function", bound=Callable[..., Any])
_OUTSIDE = (-1, 0)  # entered while nothing was measured


class region:
    """Name a part of the program: everything measured inside hangs below a frame of kind `region`.

    `name` is what reports show. `detail` is a JSON-serialisable mapping kept with the frame; use it for few distinct
    values, since every distinct detail is a call path of its own. Raises TypeError for a detail that JSON cannot hold.

    >>> with leadline.region("load", {"split": "train"}): ...
    >>> @leadline.region("encode")
    ... def encode(batch): ...
    """

    def __init__(self, name: str, detail: dict[str, Any] | None = None) -> None:
        self._name = _text(name)
        self._detail = None if detail is None else json.dumps(detail, sort_keys=True)
        self._entered: dict[int, list[tuple[int, int]]] = {}
        """By thread, since one object may serve several."""

    def __enter__(self) -> region:
        self._entered.setdefault(get_ident(), []).append(begin_region(self._name, self._detail))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        thread = get_ident()
        if thread not in self._entered:  # begun in another one, as a generator may be
            thread = next(iter(self._entered), -1)
        if thread < 0:
            return
        begun = self._entered[thread].pop()
        if not self._entered[thread]:
            del self._entered[thread]
        end_region(begun)

    def __call__(self, function: _Function) -> _Function:
        """Decorate a function, coroutine function, generator function or async generator function."""
        name, detail = self._name, self._detail
        if inspect.isasyncgenfunction(function):
            wrapper: Callable[..., Any] = _wrap_async_generator(function, name, detail)
        elif inspect.iscoroutinefunction(function):
            wrapper = _wrap_coroutine(function, name, detail)
        elif inspect.isgeneratorfunction(function):
            wrapper = _wrap_generator(function, name, detail)
        else:
            wrapper = _wrap_function(function, name, detail)
        return cast(_Function, wrapper)


def _text(name: object) -> str:
    """Any name as text that a file can hold: names of files may hold bytes that are no characters."""
    try:
        text = name.decode("utf-8", "backslashreplace") if isinstance(name, bytes) else str(name)
    except Exception:
        text = type(name).__name__
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def begin_region(name: str, detail: str | None, stays_ns: int = 0) -> tuple[int, int]:
    """Open the region; returns the session it was opened in and the native side's token for its end.

    `stays_ns`: what the call took before it was suspended.
    """
    native = CURRENT.native
    if native is None:
        return _OUTSIDE
    try:
        return CURRENT.generation, native.region_begin(name, detail, stays_ns)
    except Exception as error:
        lose(native, "A region could not be opened", error)
        return _OUTSIDE


def end_region(begun: tuple[int, int]) -> None:
    native = CURRENT.native
    if native is not None and begun[0] == CURRENT.generation:
        try:
            native.region_end(begun[1])
        except Exception as error:
            lose(native, "A region could not be closed", error)


def _wrap_function(function: Callable[..., Any], name: str, detail: str | None) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*arguments: Any, **named: Any) -> Any:
        begun = begin_region(name, detail)
        try:
            return function(*arguments, **named)
        finally:
            end_region(begun)

    return wrapper


def _wrap_generator(function: Callable[..., Any], name: str, detail: str | None) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*arguments: Any, **named: Any) -> Generator[Any, Any, Any]:
        return (yield from _in_steps(function(*arguments, **named), _Call(name, detail)))

    return wrapper


def _wrap_coroutine(function: Callable[..., Any], name: str, detail: str | None) -> Callable[..., Any]:
    @functools.wraps(function)
    async def wrapper(*arguments: Any, **named: Any) -> Any:
        return await _Steps(function(*arguments, **named), _Call(name, detail))

    return wrapper


def _wrap_async_generator(function: Callable[..., Any], name: str, detail: str | None) -> Callable[..., Any]:
    @functools.wraps(function)
    async def wrapper(*arguments: Any, **named: Any) -> AsyncGenerator[Any, Any]:
        inner = function(*arguments, **named)
        call = _Call(name, detail)
        resume: Callable[[Any], Any] = inner.asend
        value: Any = None
        while True:
            try:
                item = await _Steps(resume(value), call, goes_on=True)
            except StopAsyncIteration:
                return
            try:
                value = yield item
                resume = inner.asend
            except GeneratorExit:
                await _Steps(inner.aclose(), call)
                raise
            except BaseException as error:
                value, resume = error, inner.athrow

    return wrapper


class _Call:
    """One call of a coroutine or generator: its region is open in each of its stays, the call counts where it ends."""

    def __init__(self, name: str, detail: str | None) -> None:
        self._name = name
        self._detail = detail
        self._generation = -1
        self._stays_ns = 0

    def stay(self, resume: Callable[[Any], Any], value: Any, goes_on: bool) -> Any:
        """What `resume(value)` returns: the call is suspended. `goes_on`: also where it raises StopIteration."""
        begun = self._begin()
        try:
            item = resume(value)
        except BaseException as error:
            if goes_on and isinstance(error, StopIteration):
                self._suspend(begun)
            else:
                end_region(begun)
            raise
        self._suspend(begun)
        return item

    def close(self, inner: Any) -> None:
        begun = self._begin()
        try:
            inner.close()
        finally:
            end_region(begun)

    def _begin(self) -> tuple[int, int]:
        if self._generation != CURRENT.generation:
            self._generation, self._stays_ns = CURRENT.generation, 0
        return begin_region(self._name, self._detail, self._stays_ns)

    def _suspend(self, begun: tuple[int, int]) -> None:
        native = CURRENT.native
        if native is not None and begun[0] == CURRENT.generation:
            try:
                self._stays_ns = native.region_suspend(begun[1])
            except Exception as error:
                lose(native, "A region could not be closed", error)


class _Steps:
    """An awaitable that awaits another one, with the region open only while that one runs."""

    def __init__(self, awaitable: Any, call: _Call, goes_on: bool = False) -> None:
        self._awaitable = awaitable
        self._call = call
        self._goes_on = goes_on

    def __await__(self) -> Generator[Any, Any, Any]:
        # asend() objects of async generators are not coroutines but have send, throw and close all the same
        inner = self._awaitable if isinstance(self._awaitable, Coroutine) else self._awaitable.__await__()
        return _in_steps(inner, self._call, self._goes_on)


def _in_steps(inner: Any, call: _Call, goes_on: bool = False) -> Generator[Any, Any, Any]:
    """Drive a generator or coroutine as `yield from` would (PEP 380), with the region open during each resumption.

    `goes_on`: the end of `inner` is not the end of the call, as of an item of an async generator.
    """
    resume: Callable[[Any], Any] = inner.send
    value: Any = None
    while True:
        try:
            item = call.stay(resume, value, goes_on)
        except StopIteration as end:
            return end.value
        try:
            value = yield item
            resume = inner.send
        except GeneratorExit:
            call.close(inner)
            raise
        except BaseException as error:
            value, resume = error, inner.throw
