"""Compilation as phases: `compile`, and below it the part of the compiler that spends the time.

The compilers say when their parts begin and end; a phase begins where the part differs from the one around it.
"""

from __future__ import annotations

import contextlib
import threading
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


class TimedPhase(contextlib.ContextDecorator):
    """One of the compiler's own timings and its phase, which stands where the timing was begun."""

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

    def _stack(self) -> list[tuple[str, str, list[int]]]:
        stack: list[tuple[str, str, list[int]]] | None = getattr(self._threads, "stack", None)
        if stack is None:
            stack = self._threads.stack = []
        return stack


def phase_of(event: str) -> str:
    """The phase a compile event of torch belongs to; empty for one that is part of whatever is around it."""
    return next((phase for part, phase in _PHASES if part in event), "")
