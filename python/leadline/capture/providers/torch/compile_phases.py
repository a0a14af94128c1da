"""Compilation as phases: `compile`, and below it the part of the compiler that spends the time.

The compilers say when their parts begin and end; a phase begins where the part differs from the one around it.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

from leadline.capture.native import Native

_PHASES = (
    ("triton jit", "triton"),
    ("autotun", "autotune"),
    ("benchmark_all_configs", "autotune"),
    ("inductor", "inductor"),
    ("compile_fx", "inductor"),
    ("GraphLowering", "inductor"),
    ("Scheduler", "inductor"),
    ("codegen", "inductor"),
    ("code_gen", "inductor"),
    ("async_compile", "inductor"),
    ("aot", "aot autograd"),
    ("dynamo", "dynamo"),
    ("entire_frame_compile", "dynamo"),
    ("bytecode_tracing", "dynamo"),
)
"""Part of the name of a compiler's event, and the phase it belongs to; the first that matches counts."""


class TimedPhase:
    """One of the compiler's own timings and its phase, which stands where the timing was begun.

    Used as the timing would be: in a `with` statement, or as the decorator of a function.
    """

    def __init__(self, phases: PhaseStack, event: str, timing: Any) -> None:
        self._phases = phases
        self._event = event
        self._timing = timing

    def __enter__(self) -> Any:
        self._phases.begin(self._event)
        return self._timing.__enter__()

    def __exit__(self, *raised: Any) -> Any:
        try:
            return self._timing.__exit__(*raised)
        finally:
            self._phases.end(self._event)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return self._phases.around(self._timing(function), self._event)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._timing, name)


def follow_timings(
    original: Callable[..., Any], phases: PhaseStack, running: Callable[[], bool], unknown: Callable[[str], None]
) -> Callable[..., Any]:
    """A function in the place of the compiler's `dynamo_timed` that makes a phase of what it times.

    Its parameters are the compiler's affair and are only passed on. What it returns tells its shape: since torch 2.5 a
    context manager, in 2.4 a decorator or a decorated function. Anything else goes back untouched and is said once.
    """
    said: list[str] = []

    @functools.wraps(original)
    def dynamo_timed(*arguments: Any, **named: Any) -> Any:
        timing = original(*arguments, **named)
        if not running():
            return timing
        if hasattr(type(timing), "__enter__"):
            return TimedPhase(phases, _event(arguments, named), timing)
        if not callable(timing):
            if not said:
                said.append(f"dynamo_timed returns {type(timing).__name__} in this torch; compilation has no phases.")
                unknown(said[0])
            return timing
        if arguments and callable(arguments[0]):
            return phases.around(timing, _event((arguments[0].__qualname__,), named))

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            return phases.around(timing(function), _event((function.__qualname__,), named))

        return decorate

    return dynamo_timed


class PhaseStack:
    """Compile events of torch as nested phases of each thread: `compile` around, then the part of the compiler."""

    def __init__(self, native: Native) -> None:
        self._native = native
        self._threads = threading.local()

    def begin(self, event: str) -> None:
        """An event begins; a phase does too when the event belongs to another one than the innermost."""
        stack = self._stack()
        phase = phase_of(event)
        tokens: list[int] = []
        if not stack:
            tokens.append(self._native.phase_begin("compile"))
        inner = stack[-1][1] if stack else ""
        if phase and phase != inner:
            tokens.append(self._native.phase_begin(phase))
        stack.append((event, phase or inner, tokens))

    def end(self, event: str) -> None:
        """The event ends, and with it what had begun with it. An end without its begin is not ours."""
        stack = self._stack()
        if not any(entry[0] == event for entry in stack):
            return
        while stack:
            name, _, tokens = stack.pop()
            for token in reversed(tokens):
                self._native.phase_end(token)
            if name == event:
                return

    def around(self, function: Callable[..., Any], event: str) -> Callable[..., Any]:
        """The function with an event of the compiler around each call."""

        @functools.wraps(function)
        def phased(*arguments: Any, **named: Any) -> Any:
            self.begin(event)
            try:
                return function(*arguments, **named)
            finally:
                self.end(event)

        return phased

    def _stack(self) -> list[tuple[str, str, list[int]]]:
        stack: list[tuple[str, str, list[int]]] | None = getattr(self._threads, "stack", None)
        if stack is None:
            stack = self._threads.stack = []
        return stack


def _event(arguments: tuple[Any, ...], named: dict[str, Any]) -> str:
    """Name of a timing: its phase where it gives one, else its key. Both come by position or by name."""
    words = (named.get("phase_name"), *arguments[1:2], *arguments[:1], named.get("key"))
    return next((word for word in words if isinstance(word, str)), "")


def phase_of(event: str) -> str:
    """The phase a compile event of torch belongs to; empty for one that is part of whatever is around it."""
    return next((phase for part, phase in _PHASES if part in event), "")
