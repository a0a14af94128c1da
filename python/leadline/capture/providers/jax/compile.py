"""Compilation by JAX: `compile` and its parts as phases on the line that caused them, and the programs that come of it.

JAX says when tracing, lowering and compiling begin (since 0.7) and how long each took. Before 0.7 only the durations
are known, and are booked when they end. Promise: nothing is raised into the compilation; `uninstall` leaves no
listener.
"""

from __future__ import annotations

import functools
import json
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from leadline.capture.native import Native
from leadline.capture.providers.jax import cached as jax_cached
from leadline.capture.providers.jax import places as jax_places
from leadline.capture.providers.jax import runs as jax_runs
from leadline.capture.providers.jax.programs import Programs
from leadline.capture.providers.replaced import Replacements

_PARTS = {
    "/jax/core/compile/jaxpr_trace_duration": "compile: trace",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "compile: lower",
    "/jax/core/compile/backend_compile_duration": "compile: XLA",
}
_COMPILED = "/jax/core/compile/backend_compile_duration"
_CACHE_HIT = "/jax/compilation_cache/cache_hits"
_TAKEN = (
    "The program removed all listeners of jax.monitoring (clear_event_listeners), so compilations are missing until "
    "the next first run of a program."
)
_MACHINERY = (
    *("leadline.", "contextlib", "functools", "jax._src.pjit", "jax._src.api", "jax._src.traceback_util"),
    *("jax._src.interpreters.", "jax._src.dispatch", "jax._src.core", "jax._src.monitoring", "jax._src.compiler"),
    *("jax._src.linear_util", "jax._src.profiler", "jax._src.util", "jax._src.stages", "jax._src.config"),
)
"""Modules between a call that compiles and the compilation."""
_PYTHON = 1
"""Of `Native.callpath`: Python frames only."""
_FARTHEST = 40
"""Frames looked through for the call that compiles."""


class _Thread(threading.local):
    """What is under way on one thread. `compile`: the phase around the parts; `parts`: those that have begun."""

    def __init__(self) -> None:
        self.compile = 0
        self.parts: list[tuple[str, int]] = []
        self.ended: list[tuple[int, int]] = []
        self.spent_ns = 0
        self.hit = False


class Compiling:
    """Listens to `jax.monitoring`."""

    def __init__(self, native: Native, programs: Programs, loss: Callable[[str], None]) -> None:
        self._native = native
        self._programs = programs
        self._loss = loss
        self._here = _Thread()
        self._begins = False
        self._monitoring: Any = None
        self._replaced = Replacements()
        self.cache_hits = 0
        self.compiled = 0

    def install(self) -> None:
        """Begin to listen."""
        self._monitoring = jax_places.first("jax._src.monitoring", "jax.monitoring")
        if self._monitoring is None:
            return
        self._begins = hasattr(self._monitoring, "register_scalar_listener")
        self._listen()
        if self._begins:
            self._bound()

    def _listen(self) -> None:
        """Put in those of ours that are not in."""
        for kind, register, listener in self._listeners():
            if register is not None and listener not in getattr(self._monitoring, f"_{kind}_listeners", ()):
                register(listener)

    def _listeners(self) -> list[tuple[str, Any, Callable[..., None]]]:
        kinds = (
            ("event_duration_secs", "event_duration_secs", self._ended),
            ("event", "event", self._happened),
            ("scalar", "scalar", self._began),  # since 0.7
        )
        return [
            (kind, getattr(self._monitoring, f"register_{name}_listener", None), listener)
            for kind, name, listener in kinds
        ]

    def listen_again(self, *, missed: bool = True) -> None:
        """Where the program has taken all listeners away, put ours back in. To be called before programs run, and
        where a compilation begins, which leaves nothing `missed`: some releases still tell it then."""
        if self._monitoring is None or self.listening():
            return
        self._listen()
        while self._here.parts:  # begun, and nobody was there to hear the end
            self._native.phase_end(self._here.parts.pop()[1])
            missed = True
        if missed:
            self._loss(_TAKEN)

    def uninstall(self) -> None:
        """Listen no more."""
        self._replaced.undo()
        self._forget()

    def _forget(self) -> None:
        for names, listener in (
            (("unregister_event_duration_listener", "_unregister_event_duration_listener_by_callback"), self._ended),
            (("unregister_event_listener", "_unregister_event_listener_by_callback"), self._happened),
            (("unregister_scalar_listener", "_unregister_scalar_listener_by_callback"), self._began),
        ):
            remove = next((found for name in names if (found := getattr(self._monitoring, name, None))), None)
            try:
                if remove is not None:
                    remove(listener)
            except Exception:  # it was taken out by `clear_event_listeners`
                continue

    def listening(self) -> bool:
        """Whether JAX still calls; `jax.monitoring.clear_event_listeners()` takes every listener out."""
        held = getattr(self._monitoring, "_event_duration_secs_listeners", None)
        return not isinstance(held, list) or self._ended in held

    def over(self) -> None:
        """What was compiled on this thread is about to run, or nothing came of it."""
        if self._here.compile and not self._here.parts:
            token, self._here.compile = self._here.compile, 0
            self._native.phase_end(token)

    def _bound(self) -> None:
        """A call that compiles ends its compilation when it returns, also where it fails."""
        pjit = jax_places.member("jax._src.pjit")
        name = next((name for name in ("_run_python_pjit", "_python_pjit_helper") if name in vars(pjit)), "")
        if not name:
            return
        original = vars(pjit)[name]

        @functools.wraps(original)
        def run(*arguments: Any, **named: Any) -> Any:
            try:
                return original(*arguments, **named)
            finally:
                self.over()

        self._replaced.attribute(pjit, name, run)

    def _began(self, event: str, value: float | int, **named: Any) -> None:
        try:
            part = _PARTS.get(event)
            if part is None:
                return
            here = self._here
            self.listen_again(missed=False)
            if not here.compile:
                function = jax_runs.function_name(str(named.get("fun_name", "")))
                facts = {"function": function, **({"of": "jax"} if _is_of_jax() else {})}
                here.compile = self._native.phase_begin("compile", detail=json.dumps(facts))
            here.parts.append((event, self._native.phase_begin(part)))
        except Exception as error:
            self._loss(f"A compilation was not followed ({error}).")

    def _ended(self, event: str, duration_s: float, **_named: Any) -> None:
        try:
            part = _PARTS.get(event)
            if part is None:
                return
            if event == _COMPILED:
                self._learn()
            here = self._here
            if any(name == event for name, _ in here.parts):
                name = ""
                while here.parts and name != event:
                    name, token = here.parts.pop()
                    self._native.phase_end(token)
                if event == _COMPILED or not _will_compile():
                    self.over()
            elif not self._begins:
                self._book(part, int(duration_s * 1e9))
        except Exception as error:
            self._loss(f"A compilation was not followed ({error}).")

    def _happened(self, event: str, **_named: Any) -> None:
        if event == _CACHE_HIT:
            self.cache_hits += 1
            self._here.hit = True

    def _learn(self) -> None:
        self.compiled += 1
        path = self._native.callpath(_PYTHON)
        compiled = self._programs.learn_newest(
            [(frame["file"], frame["name"]) for frame in path],
            cached=self._here.hit,
            today=jax_cached.lines_of_today() if self._here.hit else None,
        )
        self._here.hit = False
        place = self._native.place() if compiled is not None and compiled.change else 0
        if compiled is not None and place:
            detail = json.dumps({"function": jax_runs.function_name(compiled.name), "change": compiled.change})
            frames = (("phase", "compiled again", "", "", detail, 0, 0, 0),)
            self._native.book(place, frames, [_once("call_time", 0)], "cpu", -1, -1)

    def _book(self, part: str, duration_ns: int) -> None:
        """Of a part that JAX has told at its end: what ended inside of it is not its own."""
        here = self._here
        now_ns = time.monotonic_ns()
        inside_ns = 0
        while here.ended and here.ended[-1][0] >= now_ns - duration_ns:
            inside_ns += here.ended.pop()[1]
        here.ended = [(now_ns - duration_ns, duration_ns)]
        own_ns = max(duration_ns - inside_ns, 0)
        place = self._native.place()
        if not place:
            return
        frames = tuple(("phase", name, "", "", "", 0, 0, 0) for name in ("compile", part))
        self._native.book(place, frames, [_once("time", own_ns), _once("call_time", duration_ns)], "cpu", -1, -1)
        here.spent_ns += own_ns
        if part == _PARTS[_COMPILED]:
            self._native.book(place, frames[:1], [_once("call_time", here.spent_ns)], "cpu", -1, -1)
            here.spent_ns = 0


def _once(metric: str, value: int) -> tuple[str, int, int, int, int, float]:
    return (metric, 1, value, value, value, 0.0)


def _is_of_jax() -> bool:
    """Whether what is compiled here is an operation of JAX's own, which runs by itself, and no function of the
    program's: the function is JAX's (`jnp.tanh`), or the first frame above the machinery is."""
    frame = sys._getframe(1)
    for _ in range(_FARTHEST):
        module = str(frame.f_globals.get("__name__", ""))
        if not module.startswith(_MACHINERY):
            return module.startswith(("jax.", "jax_"))
        if frame.f_code.co_name == "cache_miss":
            compiled = frame.f_locals.get("fun")
            if str(getattr(compiled, "__module__", "")).startswith(("jax.", "jax_")):
                return True
        if frame.f_back is None:
            return False
        frame = frame.f_back
    return False


def _will_compile() -> bool:
    """Whether this is inside a call that goes on to compile what it has traced or lowered."""
    frame = sys._getframe(1)
    for _ in range(_FARTHEST):
        if frame.f_code.co_name == "cache_miss":
            return True
        if frame.f_back is None:
            return False
        frame = frame.f_back
    return False
