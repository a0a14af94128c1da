"""Every execution of a compiled program, counted at the call path that ran it.

Two doors lead to an execution: the fast path in C++, which calls JAX's post hook, and `ExecuteReplicated`, which runs
first calls and programs with effects. Both together see each execution once. The hook is native (`RunHook`) and asks
Python only about a run that is new where it is, or that may be looked at. Promise: `uninstall` leaves JAX as it was
found, and a hook of somebody else goes on being called.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

from leadline.capture.contained import lose
from leadline.capture.native import Native
from leadline.capture.providers.jax import places as jax_places
from leadline.capture.providers.jax.arguments import LOOKS
from leadline.capture.providers.replaced import Replacements, living

_OURS_NS = 1_000_000
"""What takes us longer is no part of the program's turn."""
Key = tuple[int, str]
"""A place, and how JAX calls the program there: `jit(train_step)`."""


class RunHook(Protocol):
    """The native hook: counts runs at places that were added, until `quiet_until_s` of `time.monotonic`."""

    quiet_until_s: float
    state: Any
    """Somebody else's state of JAX's configuration; while its `value` is a hook, every run comes to Python."""

    def __call__(self, function: Any, arguments: Any, named: Any, output: Any) -> None: ...
    def add(self, place: int, name: str) -> None:
        """`name`: the very object that is the function's `__name__`."""

    def counts(self) -> list[tuple[int, str, int]]: ...
    def turn(self, place: int, name: str, ends: bool) -> None:
        """A run has begun that Python sees; `ends`: whether the time since the one before is a turn of the program."""

    def turns(self) -> list[tuple[str, int, int, int, int, float]]:
        """Name, number, sum, shortest, longest, sum of squares of the turns in ns since it was asked last."""

    def clear(self) -> None: ...


class RunsNative(Native, Protocol):
    """What counting alone needs of the native module."""

    def RunHook(self, slow: Callable[..., None]) -> RunHook: ...


class Follows(Protocol):
    """Who is told of runs."""

    def before(self, name: str) -> None:
        """A run on the slow path begins."""

    def after(self, key: Key, output: Any) -> bool:
        """A run has been dispatched. Whether those of this key need to be counted only, until `quiet_until_s`."""

    def is_timing(self) -> bool:
        """Whether runs take longer now, since they are being timed."""

    def quiet_until_s(self) -> float:
        """Until when, of `time.monotonic`; 0 while every run is to be told."""


class Runs:
    """Counts runs and tells of those that somebody wants to look at."""

    def __init__(self, native: RunsNative, follows: Follows, *, late: bool = False) -> None:
        """`late`: the program has had JAX for a while, so somebody else may have put a hook of his in."""
        self._native = native
        self._late = late
        self._follows = follows
        self._replaced = Replacements()
        self._restore: Callable[[], None] | None = None
        self._keep: Callable[[], None] = lambda: None
        self._in_use = [True]
        """Empty after `uninstall`, when a hook of somebody else's may still pass on to ours."""
        self.inspect: Callable[[Any, str, Any, Any, Any], bool] = lambda *_: False
        """Hears of the first calls on the fast path what a function was given, and what came of it, and of all where it
        says so; to be set before `install`."""
        self._counted: dict[Key, int] = {}
        self._native_keys: set[Key] = set()
        self._hook: RunHook | None = None
        self._names: dict[str, str] = {}
        """Of functions without one."""
        self._resting = threading.RLock()  # a signal may run a program within
        self.hooked = False
        self.wrapped = False
        self._here = threading.local()

    def is_inside(self) -> bool:
        """Whether this thread is inside of a run on the slow path, whose arguments are put where they belong there."""
        return bool(getattr(self._here, "depth", 0))

    @property
    def counts(self) -> dict[Key, int]:
        """Runs of each place and program so far."""
        counts = self._counted.copy()
        for place, name, runs in [] if self._hook is None else self._hook.counts():
            key = (place, f"jit({name})")
            counts[key] = counts.get(key, 0) + runs
        return counts

    def turns(self) -> list[tuple[str, int, int, int, int, float]]:
        """See `RunHook`."""
        return [] if self._hook is None else self._hook.turns()

    def forget(self) -> None:
        """Nothing has run yet."""
        self._counted.clear()
        self._native_keys.clear()
        if self._hook is not None:
            self._hook.clear()

    def install(self) -> None:
        """Put the hook and the wrapper in; what this release of JAX does not have is left out."""
        self._install_hook()
        self._install_wrapper()

    def uninstall(self) -> None:
        """Take both out."""
        self._replaced.undo()
        if self._restore is not None:
            self._restore()
            self._restore = None
            self._keep = lambda: None
        self._in_use.clear()
        self.hooked = self.wrapped = False

    def _install_hook(self) -> None:
        runtime = jax_places.runtime()
        jit = getattr(runtime, "jax_jit", None)
        if jit is None:
            return
        config = getattr(getattr(runtime, "config", None), "Config", None)
        if config is not None and hasattr(jit, "set_post_hook_state"):
            self.hooked = True
            self._hook_in_state(jit, config("leadline_post_hook", None, include_in_jit_key=False))
        elif hasattr(jit, "global_state"):
            self._hook_in_global_state(jit.global_state())

    def _hook_in_state(self, jit: Any, own: Any) -> None:
        """Since 0.8. Whoever else has put a state of his own in, before or later, is called by ours, as JAX's own state
        is."""
        put = jit.set_post_hook_state
        theirs = [jax_places.member("jax._src.api._post_hook_state")]
        hook = self._make(lambda: None if theirs[0] is None else theirs[0].value)
        own.set_global(hook)

        def set_post_hook_state(state: Any) -> None:
            if self.hooked and isinstance(state, type(own)):
                theirs[0] = hook.state = state
            else:
                put(state)

        theirs[0] = (_put_in_place_of(type(own), put, own) if self._late else put(own)) or theirs[0]
        hook.state = theirs[0]
        self._replaced.attribute(jit, "set_post_hook_state", set_post_hook_state)
        self._restore = lambda: put(theirs[0])

    def _hook_in_global_state(self, state: Any) -> None:
        """Up to 0.7. `jax_debug_nans` puts its own hook there whenever it is switched, so ours is put back before a
        program runs for the first time, which a switch makes every program do again."""
        theirs = [state.post_hook]
        mine = self._make(lambda: theirs[0])

        def keep() -> None:
            if state.post_hook is not mine:
                theirs[0] = state.post_hook
                mine.state = _Fixed(theirs[0])
                state.post_hook = mine

        mine.state = _Fixed(theirs[0])
        state.post_hook = mine
        self._keep = self._guarded(keep)
        self._restore = lambda: setattr(state, "post_hook", theirs[0]) if state.post_hook is mine else None
        self.hooked = True

    def _make(self, theirs: Callable[[], Any]) -> RunHook:
        place, look, in_use = self._native.place, self.inspect, self._in_use
        told = threading.local()
        looked_at: set[Key] = set()

        def slow(function: Any, arguments: Any, named: Any, output: Any) -> None:
            if not in_use:
                return
            other = theirs()
            if other is not None:
                if getattr(told, "output", told) is output:
                    return  # the other one passes on to what was there before it, which is ours
                outer, told.output = getattr(told, "output", told), output
                try:
                    other(function, arguments, named, output)
                finally:
                    told.output = outer
            tell(function, arguments, named, output)

        @self._guarded
        def tell(function: Any, arguments: Any, named: Any, output: Any) -> None:
            token = place()
            if not token:
                return
            name = getattr(function, "__name__", "")
            key = (token, "jit(" + (name or _nameless(function)) + ")")
            began_ns, timing = time.monotonic_ns(), self._follows.is_timing()
            told_name = name if type(name) is str and name else self._names.setdefault(key[1], key[1])
            hook.turn(token, told_name, not timing)
            first = self._counted.get(key, 0) < LOOKS
            if (first or key in looked_at) and look(function, key[1], arguments, named, output):
                looked_at.add(key)
            quiet = self._count(key, output) and not first and key not in looked_at
            if timing or self._follows.is_timing() or time.monotonic_ns() - began_ns > _OURS_NS:
                hook.turn(token, told_name, False)  # the next turn begins behind what was ours
            if quiet and type(name) is str and name and key not in self._native_keys:
                self._native_keys.add(key)
                hook.add(token, name)

        self._hook = hook = self._native.RunHook(slow)
        return hook

    def _count(self, key: Key, output: Any) -> bool:
        """Whether others like it need to be counted only."""
        self._counted[key] = self._counted.get(key, 0) + 1
        if self._hook is not None and self._hook.quiet_until_s:
            self._rest(0.0)  # while this one is looked at others are not left alone
        quiet = self._follows.after(key, output)
        self._rest()
        return quiet

    def _before(self, name: str) -> None:
        """A run on the slow path begins."""
        self._rest(0.0)
        self._follows.before(name)

    def _guarded(self, ours: Callable[..., Any]) -> Callable[..., None]:
        """The program calls it within a run of its own: nothing of ours may raise there, whatever JAX has become."""

        def call(*arguments: Any) -> None:
            try:
                ours(*arguments)
            except Exception as error:
                lose(self._native, "A run of a compiled program could not be counted", error)

        return call

    def _rest(self, until_s: float | None = None) -> None:
        hook = self._hook
        if hook is None:
            return
        with self._resting:  # what is asked for last holds
            if until_s is None and self._in_use:
                until_s = self._follows.quiet_until_s()
            hook.quiet_until_s = until_s or 0.0

    def _install_wrapper(self) -> None:
        execute = jax_places.member("jax._src.interpreters.pxla.ExecuteReplicated")
        original = vars(execute).get("__call__") if isinstance(execute, type) else None
        if original is None:
            return
        place, here = self._native.place, self._here
        before, count = self._guarded(self._before), self._guarded(self._count)

        def __call__(this: Any, *arguments: Any, **named: Any) -> Any:
            self._keep()
            token = place()
            if not token:
                return original(this, *arguments, **named)
            key = (token, called(str(getattr(this, "name", "?"))))
            before(key[1])
            outer = here.depth = getattr(here, "depth", 0) + 1
            try:
                output = original(this, *arguments, **named)
            finally:
                here.depth = outer - 1
            count(key, output)
            return output

        self._replaced.attribute(execute, "__call__", __call__)
        self.wrapped = True


class _Fixed:
    """A state whose hook does not change."""

    def __init__(self, value: Any) -> None:
        self.value = value


def _put_in_place_of(kind: type, put: Callable[[Any], None], own: Any) -> Any:
    """Put a state in; the one that was there, None where that cannot be told. jaxlib does not say which it asks, but it
    holds that one, and lets go of it."""
    states = [one for one in living(kind) if one is not own]
    before = list(map(sys.getrefcount, states))
    put(own)
    after = list(map(sys.getrefcount, states))
    left = [state for state, old, new in zip(states, before, after, strict=True) if new < old]
    return left[0] if len(left) == 1 else None


def called(name: str) -> str:
    """`jit(f)`, as newer releases say, of `jit(f)`, `jit_f` and `f`."""
    return name if name.endswith(")") else f"jit({name.removeprefix('jit_')})"


def function_name(name: str) -> str:
    """The function of `jit(f)`, `jit_f` or `f`."""
    return called(name).partition("(")[2].removesuffix(")")


def _nameless(function: Any) -> str:
    """The name of a function that JAX itself has made: of what was compiled ahead of time, or differentiated. What
    compiles it when it is called with something new knows it."""
    compiles = getattr(function, "_cache_miss", None)
    code = getattr(compiles, "__code__", None)
    cells = getattr(compiles, "__closure__", None) or ()
    known = dict(zip(getattr(code, "co_freevars", ()), cells, strict=False))
    try:
        if "name" in known:
            return function_name(str(known["name"].cell_contents))
        if "self" in known:
            executable = known["self"].cell_contents
            return function_name(str(executable.unsafe_call.name))
    except (AttributeError, ValueError):  # another release
        pass
    return "?"
