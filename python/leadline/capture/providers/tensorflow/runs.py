"""Every operation that a TensorFlow program runs at once and every call of a `tf.function`, counted and timed where it
is called.

All of them pass two functions of TensorFlow's Python layer: the fast path of generated operations, and the general one,
which also runs functions. Promise: `uninstall` leaves both as they were found; errors are the program's own.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

from leadline.capture.native import Native
from leadline.capture.providers.replaced import Replacements

Key = tuple[int, str]
"""A place, and what ran there: the name of an operation, or of a function as TensorFlow calls it."""
FUNCTION = re.compile(r"^__(?:inference|forward|backward)_(?P<name>.+?)(?:_\d+)*$")


def function_name(name: str) -> str | None:
    """The function of the program in `__inference_step_57`; None for an operation."""
    found = FUNCTION.match(name)
    return found["name"] if found else None


class Runs:
    """`before(name)` and `after(key, begin, duration)` are called around each run, `made` with what it was given and
    gave. `totals`: count, sum, shortest and longest in ns. Times are of CLOCK_MONOTONIC."""

    def __init__(
        self,
        native: Native,
        before: Callable[[str], None],
        after: Callable[[Key, int, int], None],
        made: Callable[[Key, tuple[Any, ...], Any], None] | None = None,
    ) -> None:
        self._native = native
        self._made = made
        self._before = before
        self._after = after
        self._replaced = Replacements()
        self.totals: dict[Key, list[int]] = {}

    def install(self, layer: Any) -> bool:
        """Wrap both functions of `tensorflow.python.pywrap_tfe`; False where this release has them no more."""
        if not all(callable(vars(layer).get(name)) for name in ("TFE_Py_FastPathExecute", "TFE_Py_Execute")):
            return False
        for name, place_of_name in (("TFE_Py_FastPathExecute", 1), ("TFE_Py_Execute", 2)):
            self._replaced.attribute(layer, name, self._wrapped(vars(layer)[name], place_of_name))
        return True

    def uninstall(self) -> None:
        """Take both out."""
        self._replaced.undo()

    def _wrapped(self, original: Callable[..., Any], place_of_name: int) -> Callable[..., Any]:
        totals, place, before, after = self.totals, self._native.place, self._before, self._after
        clock, made = time.monotonic_ns, self._made

        def execute(*arguments: Any) -> Any:
            token = place()
            if not token:
                return original(*arguments)
            name = arguments[place_of_name]
            if type(name) is bytes:
                name = name.decode(errors="replace")
            before(name)
            began_ns = clock()
            output = original(*arguments)
            took_ns = clock() - began_ns
            key = (token, name)
            total = totals.get(key)
            if total is None:
                totals[key] = [1, took_ns, took_ns, took_ns]
            else:
                total[0] += 1
                total[1] += took_ns
                if took_ns < total[2]:
                    total[2] = took_ns
                elif took_ns > total[3]:
                    total[3] = took_ns
            if made is not None:
                made(key, arguments, output)
            after(key, began_ns, took_ns)
            return output

        return execute
