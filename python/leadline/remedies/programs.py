"""Compiled programs of JAX: what `jax.jit` returns, with its calls seen, and made anew where a fix wants it so.

Only what the program asks `jax.jit` for; JAX's own programs are left alone.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leadline.remedies.trial import Trial

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


class Programs:
    """`actions`: what is done with each program when it is made; `called`: what is recorded of each call that runs one,
    with its result; `jit`: JAX's own, once it is imported."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self._installed = False
        self.actions: list[Callable[[Program], None]] = []
        self.called: list[Callable[[Program, Any], None]] = []
        self.made: list[Program] = []
        self.jit: Any = None

    def install(self) -> None:
        """Follow `jax.jit` from its import on; a second call does nothing."""
        if not self._installed:
            self._installed = True
            self._trial.when_imported("jax", self._follow)

    def _follow(self, jax: Any) -> None:
        original = self.jit = jax.jit

        @functools.wraps(original)
        def jit(*arguments: Any, **named: Any) -> Any:
            function = arguments[0] if arguments else named.pop("fun", None)
            if not callable(function):  # jax.jit(static_argnums=0): a decorator
                return lambda inner: self._program(inner, named)
            return self._program(function, named)

        self._trial.replaced.attribute(jax, "jit", jit)

    def _program(self, function: Any, options: dict[str, Any]) -> Program:
        made = Program(self, function, options)
        self.made.append(made)
        for action in self.actions:
            self.safely(lambda action=action: action(made))  # type: ignore[misc]
        return made

    def safely(self, call: Callable[[], Any], otherwise: Any = None) -> Any:
        """What goes wrong in here is no error of the program."""
        try:
            return call()
        except Exception as error:
            self._trial.fault(error)
            return otherwise

    def returned(self, program: Program, arguments: Any, named: Any, result: Any) -> None:
        """A call has ended."""
        if is_traced(result):
            return
        after = program.after
        if after is not None:
            self.safely(lambda: after(program, arguments, named, result))
        for call in self.called:
            call(program, result)


class Program:
    """What `jax.jit` returned; everything that is not a call is passed on. `options`: those of `jax.jit`; `before`:
    what changes the arguments of the next call; `after`: what a fix does behind each call."""

    def __init__(self, programs: Programs, function: Any, options: dict[str, Any]) -> None:
        self._programs = programs
        self.function, self.options = function, options
        self._made = programs.jit(function, **options)
        self.name = f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', 'function')}"
        self.before: Callable[[Program, Any, Any], Arguments] | None = None
        self.after: Callable[[Program, Any, Any, Any], None] | None = None
        functools.update_wrapper(self, function, updated=())

    @property
    def donates(self) -> bool:
        """Calls take the memory of arguments."""
        return any(self.options.get(name) not in (None, (), []) for name in ("donate_argnums", "donate_argnames"))

    def make_anew(self, **options: Any) -> None:
        """With other options from the next call on."""
        self.options = {**self.options, **options}
        self._made = self._programs.jit(self.function, **self.options)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        before = self.before
        if before is not None:
            given = (arguments, named)
            arguments, named = self._programs.safely(lambda: before(self, *given), given)
        result = self._made(*arguments, **named)
        self._programs.returned(self, arguments, named, result)
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self._made, name)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)


def is_called(name: str, function: Any) -> bool:
    """Whether a function goes by this name: `update`, or `Model.update` of a method."""
    qualified = str(getattr(function, "__qualname__", ""))
    return qualified == name or qualified.endswith(f".{name}")


def is_traced(result: Any) -> bool:
    """Inside another program's tracing a call runs nothing."""
    import jax

    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree_util.tree_leaves(result))
