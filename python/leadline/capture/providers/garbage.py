"""Pauses of Python's garbage collector: how long, and for whole collections (generation 2) at which line.

A pause stops whatever the thread does, in an operator or between, so it is no scope of its own: it is booked at the end
as calls of the phase `garbage collection`, without time, below the thread that ends the session.
Whole collections while something is compiled stand in a phase `compile`: they are no part of a step.
Promises: two clock readings a collection, frames read for whole collections only; nothing is kept alive; `stop` takes
the callback back. A process that is killed says nothing of its pauses.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from leadline.capture.config import Options
from leadline.capture.current import CURRENT
from leadline.capture.native import PLACE_THREAD, Native

PHASE = "garbage collection"
_COMPILE = "compile"
_REGIONS = 1 << 3  # LEADLINE_SOURCE_REGION: phases, too
_WHOLE = 2
_IMPORTING = "<frozen importlib._bootstrap"
_DEEPEST = 100
_MOST_PATHS = 500
_Place = tuple[tuple[CodeType, int], ...]


class GarbageProvider:
    """One per session."""

    name = "garbage collector"

    def __init__(self, native: Native) -> None:
        self._native = native
        self._pauses: dict[tuple[int, bool, _Place], list[int]] = {}
        """By generation, whether something was compiled, place: number, sum, smallest, largest, sum of squares."""
        self._began_ns = 0
        self._clock = time.perf_counter_ns  # kept here: while the interpreter ends, modules lose their names
        self._here = sys._getframe

    def start(self) -> None:
        """Be told of collections."""
        gc.callbacks.append(self._collecting)

    def stop(self) -> None:
        """Book what was learnt."""
        if self._collecting in gc.callbacks:
            gc.callbacks.remove(self._collecting)
        for (generation, compiling, place), (number, total, least, most, squares) in self._pauses.items():
            frames = [_python(code, line) for code, line in reversed(place)]
            frames += [_phase(_COMPILE, "")] if compiling else []
            phase = _phase(PHASE, f'{{"generation": {generation}}}')
            totals = [("call_time", number, total, least, most, float(squares))]
            self._native.book(PLACE_THREAD, [*frames, phase], totals, "cpu", -1, -1)
        self._pauses.clear()

    def forked(self) -> None:
        """The parent's pauses are the parent's."""
        self._pauses.clear()

    def status(self) -> dict[str, Any]:
        """See `Provider.status`."""
        return {"ok": True, "version": "", "message": ""}

    def _collecting(self, event: str, facts: dict[str, int]) -> None:
        """The collector's callback: nothing may escape, and nothing here is what a collection could collect."""
        now_ns = self._clock()
        if event == "start":
            self._began_ns = now_ns
            return
        if CURRENT.native is None or not self._began_ns:
            return  # a forked child that is not followed, or a collection that was running when measuring began
        pause = now_ns - self._began_ns
        generation = facts.get("generation", 0)
        place: _Place = _frames(self._here().f_back) if generation >= _WHOLE else ()
        compiling = generation >= _WHOLE and self._compiles()
        if (generation, compiling, place) not in self._pauses and len(self._pauses) >= _MOST_PATHS:
            place = ()
        known = self._pauses.setdefault((generation, compiling, place), [0, 0, pause, pause, 0])
        known[0] += 1
        known[1] += pause
        known[2], known[3] = min(known[2], pause), max(known[3], pause)
        known[4] += pause * pause

    def _compiles(self) -> bool:
        """Whether a compiler has this thread."""
        return any(str(frame["name"]).startswith(_COMPILE) for frame in self._native.callpath(_REGIONS))


def _phase(name: str, detail: str) -> tuple[str, str, str, str, str, int, int, int]:
    return ("phase", name, "", "", detail, 0, 0, 0)


def _frames(frame: FrameType | None) -> _Place:
    """Code and line of every frame, the innermost first; nothing while something is imported, which happens once."""
    found: list[tuple[CodeType, int]] = []
    while frame is not None and len(found) < _DEEPEST:
        if frame.f_code.co_filename.startswith(_IMPORTING):
            return ()
        found.append((frame.f_code, frame.f_lineno or 0))
        frame = frame.f_back
    return tuple(found)


def _python(code: CodeType, line: int) -> tuple[str, str, str, str, str, int, int, int]:
    """As the native side names a frame of Python."""
    name = getattr(code, "co_qualname", code.co_name)
    return ("python", name, "", code.co_filename, "", line, code.co_firstlineno, 0)


def create(native: Native, options: Options, changed: Callable[[], None]) -> GarbageProvider:
    """See `leadline.capture.providers`."""
    return GarbageProvider(native)
