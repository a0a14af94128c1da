"""JAX: a function that runs operation by operation becomes one compiled program.

The function object keeps its identity: its code becomes a call of the compiled copy, so that whoever holds the
function, under whatever name, calls the program. Where JAX cannot compile it, it runs as it did.
"""

from __future__ import annotations

import gc
import os
import sysconfig
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from leadline.remedies.base import Remedy
from leadline.remedies.programs import is_called, is_traced
from leadline.remedies.trial import Trial

CALLED: list[Callable[..., Any]] = []
"""What the replaced functions of this process call, by number."""


class Jit(Remedy):
    name = "jit"
    changes = "compiles a function of the program that runs operation by operation with jax.jit"
    needs = "FUNCTION"

    def __init__(self, value: str = "") -> None:
        super().__init__(value)
        self._found = 0
        self._calls = 0
        self._traced = 0
        self._refusal = ""

    def start(self, trial: Trial) -> None:
        trial.programs.install()
        trial.on_step(1, lambda: self._replace(trial))

    def _replace(self, trial: Trial) -> None:
        """Every function of that name, once the first step has defined and called them."""
        compiled = {id(one.function) for one in trial.programs.made}
        for one in gc.get_objects():
            if type(one) is not FunctionType or not is_called(self.chosen, one) or not _is_users(one):
                continue
            if id(one) in compiled:
                self._refusal = f"{self.chosen} is compiled by jax.jit already"
                continue
            self._found += 1
            CALLED.append(self._compiled(trial.programs.jit, _copied(one)))
            one.__code__ = _calling(one.__code__, len(CALLED) - 1)

    def _compiled(self, jit: Any, function: FunctionType) -> Callable[..., Any]:
        programs: dict[Any, Any] = {}

        def call(*arguments: Any, **named: Any) -> Any:
            if self._refusal:
                return function(*arguments, **named)
            try:
                places = tuple(place for place, one in enumerate(arguments) if _is_static(one))
                names = tuple(name for name, one in named.items() if _is_static(one))
                program = programs.get((places, names))
                if program is None:
                    program = programs[places, names] = jit(function, static_argnums=places, static_argnames=names)
                result = program(*arguments, **named)
            except Exception as error:
                self._refusal = f"JAX cannot compile {self.chosen}: {_first_sentence(error)}"
                return function(*arguments, **named)
            if not is_traced(result):
                self._calls += 1
            else:
                self._traced += 1
            return result

        return call

    def outcome(self, trial: Trial) -> str:
        import sys

        if "jax" not in sys.modules:
            return "the program does not import jax"
        if self._refusal:
            return self._refusal
        if not self._found:
            return f"the program has no function {self.chosen} when its first step has ended"
        if not self._calls:
            inside = self._traced
            return f"{self.chosen} is called {'inside of a compiled program only' if inside else 'by no later step'}"
        return ""


def _is_users(function: FunctionType) -> bool:
    file = os.path.abspath(function.__code__.co_filename)  # noqa: PTH100
    own = str(Path(__file__).resolve().parents[2])
    installed = (own, sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))
    return not file.startswith(tuple(f"{one}{os.sep}" for one in installed))


def _copied(function: FunctionType) -> FunctionType:
    made = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    made.__kwdefaults__, made.__qualname__, made.__module__ = (
        function.__kwdefaults__,
        function.__qualname__,
        function.__module__,
    )
    return made


def _calling(code: CodeType, number: int) -> CodeType:
    """Code that calls CALLED[number]; with the free variables of what it replaces, as Python demands."""
    free = ", ".join(code.co_freevars)
    text = (
        f"def outer({free}):\n"
        " def stub(*arguments, **named):\n"
        f"  lambda: ({free})\n"
        f"  from {__name__} import CALLED\n"
        f"  return CALLED[{number}](*arguments, **named)\n"
        " return stub\n"
    )
    space: dict[str, Any] = {}
    exec(compile(text, code.co_filename, "exec"), space)
    stub: CodeType = space["outer"](*(None for _ in code.co_freevars)).__code__
    return stub.replace(co_name=code.co_name, co_firstlineno=code.co_firstlineno)


def _is_static(value: Any) -> bool:
    """Whether a value is no array and no number: JAX then compiles for each."""
    import jax

    if value is None or isinstance(value, bool):
        return isinstance(value, bool)
    return not all(
        isinstance(leaf, int | float | complex) or hasattr(leaf, "dtype") for leaf in jax.tree_util.tree_leaves(value)
    )


def _first_sentence(error: Exception) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}{': ' + text[0][:160] if text else ''}"
