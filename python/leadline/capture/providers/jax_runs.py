"""Every execution of a compiled program, counted at the call path that ran it.

Two doors lead to an execution: the fast path in C++, which calls JAX's post hook, and `ExecuteReplicated`, which runs
first calls and programs with effects. Both together see each execution once. Promise: `uninstall` leaves JAX as it was
found, and a hook of somebody else goes on being called.
"""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable
from typing import Any

from leadline.capture.native import Native
from leadline.capture.providers import jax_places
from leadline.capture.providers.jax_arguments import LOOKS
from leadline.capture.providers.replaced import Replacements

Key = tuple[int, str]
"""A place, and how JAX calls the program there: `jit(train_step)`."""


class Runs:
    """`before(name)` and `after(key, output)` are called around each execution; `before` only on the slow path."""

    def __init__(
        self, native: Native, before: Callable[[str], None], after: Callable[[Key, Any], None], *, late: bool = False
    ) -> None:
        """`late`: the program has had JAX for a while, so somebody else may have put a hook of his in."""
        self._native = native
        self._late = late
        self._before = before
        self._after = after
        self._replaced = Replacements()
        self._restore: Callable[[], None] | None = None
        self._keep: Callable[[], None] = lambda: None
        self._in_use = [True]
        """Empty after `uninstall`, when a hook of somebody else's may still pass on to ours."""
        self.look: Callable[[Any, str, Any, Any, Any], bool] = lambda *_: False
        """Hears of the first calls on the fast path what a function was given, and what came of it, and of all where it
        says so; to be set before `install`."""
        self.counts: dict[Key, int] = {}
        self.hooked = False
        self.wrapped = False
        self._here = threading.local()

    def is_inside(self) -> bool:
        """Whether this thread is inside of a run on the slow path, whose arguments are put where they belong there."""
        return bool(getattr(self._here, "depth", 0))

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
        own.set_global(self._hook(lambda: None if theirs[0] is None else theirs[0].value))

        def set_post_hook_state(state: Any) -> None:
            if self.hooked and isinstance(state, type(own)):
                theirs[0] = state
            else:
                put(state)

        theirs[0] = (_put_in_place_of(type(own), put, own) if self._late else put(own)) or theirs[0]
        self._replaced.attribute(jit, "set_post_hook_state", set_post_hook_state)
        self._restore = lambda: put(theirs[0])

    def _hook_in_global_state(self, state: Any) -> None:
        """Up to 0.7. `jax_debug_nans` puts its own hook there whenever it is switched, so ours is put back before a
        program runs for the first time, which a switch makes every program do again."""
        theirs = [state.post_hook]
        mine = self._hook(lambda: theirs[0])

        def keep() -> None:
            if state.post_hook is not mine:
                theirs[0] = state.post_hook
                state.post_hook = mine

        state.post_hook = mine
        self._keep = keep
        self._restore = lambda: setattr(state, "post_hook", theirs[0]) if state.post_hook is mine else None
        self.hooked = True

    def _hook(self, theirs: Callable[[], Any]) -> Callable[..., None]:
        counts, place, after, look = self.counts, self._native.place, self._after, self.look
        in_use = self._in_use
        told = threading.local()
        looked_at: set[Key] = set()

        def hook(function: Any, arguments: Any, named: Any, output: Any) -> None:
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
            token = place()
            if token:
                key = (token, "jit(" + (getattr(function, "__name__", "") or _nameless(function)) + ")")
                counts[key] = count = counts.get(key, 0) + 1
                if (count <= LOOKS or key in looked_at) and look(function, key[1], arguments, named, output):
                    looked_at.add(key)
                after(key, output)

        return hook

    def _install_wrapper(self) -> None:
        execute = jax_places.member("jax._src.interpreters.pxla.ExecuteReplicated")
        original = vars(execute).get("__call__") if isinstance(execute, type) else None
        if original is None:
            return
        counts, place, before, after = self.counts, self._native.place, self._before, self._after
        here = self._here

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
            counts[key] = counts.get(key, 0) + 1
            after(key, output)
            return output

        self._replaced.attribute(execute, "__call__", __call__)
        self.wrapped = True


def _put_in_place_of(kind: type, put: Callable[[Any], None], own: Any) -> Any:
    """Put a state in; the one that was there, None where that cannot be told. jaxlib does not say which it asks, but it
    holds that one, and lets go of it."""
    states = [one for one in gc.get_referrers(kind) if type(one) is kind and one is not own]
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
