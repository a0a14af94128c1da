"""What JAX hands to the compiler, looked through for what costs: large constants, loops that tracing has unrolled,
double precision, and memory that could be donated, or is and cannot be.

Each program is looked at once, when it is lowered, operation by operation as the user's code asked for them; XLA has
changed nothing yet. Bounded by `_MOST` operations. Promises: lowering goes on as it would, and `uninstall` leaves no
wrapper.
"""

from __future__ import annotations

import functools
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from leadline.capture.providers.jax import places as jax_places
from leadline.capture.providers.replaced import Replacements

_MOST = 50_000
_LEAST_BYTES = 256 << 10
"""Of a constant, and of an argument that could be donated."""
_LEAST_TURNS = 32
_MOST_GROUPS = 12
_MOST_FRAMES = 8
_WIDE = ("float64", "complex128")
_NARROW = ("float32", "bfloat16", "float16", "complex64")
_LEAST_PROMOTED = 256
"""Elements; numbers by themselves are promoted everywhere."""
_DONATED = 7
"""Place of `donated_invars` among the arguments of `lower_sharding_computation`."""
Note = Callable[[str, dict[str, Any]], None]
"""Takes the name of a habit, and what there is of it."""
Frames = list[list[Any]]
"""[file, line, function], innermost first."""


class Lowerings:
    """Follows each lowering. `donatable`: functions with arguments that their results could take the memory of."""

    def __init__(self, note: Note, lowered: Callable[[str], None], loss: Callable[[str], None]) -> None:
        """`lowered`: hears of each by its function's name."""
        self._note = note
        self._lowered = lowered
        self._loss = loss
        self._replaced = Replacements()
        self.donatable: set[str] = set()

    def install(self) -> None:
        """A release without the function goes without what it tells."""
        pxla = jax_places.member("jax._src.interpreters.pxla")
        original = getattr(pxla, "lower_sharding_computation", None)
        if original is None:
            return

        @functools.wraps(original)
        def lower(*arguments: Any, **named: Any) -> Any:
            try:
                self._look(arguments, named)
            except Exception as error:
                self._loss(f"The operations of a JAX program could not be inspected ({error!r}).")
            return original(*arguments, **named)

        self._replaced.attribute(pxla, "lower_sharding_computation", lower)

    def uninstall(self) -> None:
        """Undo `install`."""
        self._replaced.undo()

    def _look(self, arguments: Sequence[Any], named: dict[str, Any]) -> None:
        closed, name = arguments[0], str(named.get("fun_name", arguments[2] if len(arguments) > 2 else "?"))
        donated = named.get("donated_invars", arguments[_DONATED] if len(arguments) > _DONATED else ())
        self._lowered(name)
        walk = _Walk(closed, wide=_wide_is_on())
        for number, constant in enumerate(walk.constants):
            self._note("constants", {"function": name, "number": number, **constant})
        if unrolled := walk.unrolled():
            self._note("unrolled", {"function": name, "operations": walk.number, "groups": unrolled})
        if doubles := walk.doubles():
            self._note("doubles", {"function": name, **doubles})
        self._donations(name, closed, donated)

    def _donations(self, name: str, closed: Any, donated: Sequence[Any]) -> None:
        if len(donated) != len(closed.in_avals):
            return
        free = Counter(_kind(aval) for aval in closed.out_avals)
        vain: list[tuple[str, int]] = []
        names = _argument_names(closed)
        for given in (True, False):  # what is donated is served first
            for position, (aval, is_donated) in enumerate(zip(closed.in_avals, donated, strict=True)):
                if bool(is_donated) is not given:
                    continue
                size, kind = _bytes(aval), _kind(aval)
                if free[kind]:
                    free[kind] -= 1
                    if not given and size >= _LEAST_BYTES:
                        self.donatable.add(name)
                elif given and size >= _LEAST_BYTES:
                    vain.append((f"{names.get(position, f'argument {position}')}: {kind}", size))
        if vain:
            listed = [text for text, _ in vain[:_MOST_GROUPS]]
            self._note(
                "donated_in_vain", {"function": name, "bytes": sum(size for _, size in vain), "arguments": listed}
            )


class _Walk:
    """Every operation of a program, those of loops and functions inside of it included, each function once."""

    def __init__(self, closed: Any, *, wide: bool) -> None:
        self._closed = closed
        self._wide = wide
        self._above = _callers()
        self._equations: list[Any] = []
        self._seen: set[int] = set()
        self._counts: Counter[str] = Counter()
        self.number = 0
        self.constants: list[dict[str, Any]] = []
        self._known_constants: set[int] = set()
        self._in(closed.jaxpr, getattr(closed, "consts", ()))

    def _in(self, jaxpr: Any, constants: Sequence[Any]) -> None:
        if id(jaxpr) in self._seen:
            return
        self._seen.add(id(jaxpr))
        large = {
            id(variable): value
            for variable, value in zip(getattr(jaxpr, "constvars", ()), constants, strict=False)
            if getattr(value, "nbytes", 0) >= _LEAST_BYTES
        }
        for equation in jaxpr.eqns:
            self.number += 1
            if self.number > _MOST:
                return
            self._equations.append(equation)
            self._counts[equation.primitive.name] += 1
            for variable in equation.invars:
                value = large.get(id(variable)) if large else None
                value = getattr(variable, "val", None) if value is None else value
                if value is not None and getattr(value, "nbytes", 0) >= _LEAST_BYTES:
                    self._constant(value, equation)
            for inner in _inner(equation.params):
                self._in(getattr(inner, "jaxpr", inner), getattr(inner, "consts", ()))

    def _constant(self, value: Any, equation: Any) -> None:
        if id(value) not in self._known_constants and len(self.constants) < _MOST_GROUPS:
            self._known_constants.add(id(value))
            shape = f"{value.dtype}[{','.join(map(str, value.shape))}]"
            self.constants.append({"bytes": int(value.nbytes), "shape": shape, "frames": self._frames(equation)})

    def unrolled(self) -> list[dict[str, Any]]:
        """Operations that the same lines have asked for again and again: most turns first."""
        if max(self._counts.values(), default=0) < _LEAST_TURNS:
            return []
        groups: dict[tuple[Any, ...], tuple[Any, Counter[str], Counter[Any]]] = {}
        for equation in self._equations:
            stack = self._stack(equation)
            if stack:
                _, names, sites = groups.setdefault(tuple(stack), (equation, Counter(), Counter()))
                names[equation.primitive.name] += 1
                sites[self._site(equation)] += 1
        turned = [(_turns(sites), sum(names.values()), equation, names) for equation, names, sites in groups.values()]
        turned = sorted((one for one in turned if one[0] >= _LEAST_TURNS), key=lambda one: -one[1])
        return [
            {
                "turns": turns,
                "operations": number,
                "primitive": count.most_common(1)[0][0],
                "frames": self._frames(equation),
            }
            for turns, number, equation, count in turned[:_MOST_GROUPS]
        ]

    def doubles(self) -> dict[str, Any]:
        """How many operations are of double precision, and what brought that in; empty where nothing is."""
        if not self._wide:
            return {}
        names = _argument_names(self._closed)
        wide = sum(any(_is(out, _WIDE) for out in equation.outvars) for equation in self._equations)
        if not wide:
            return {}
        arguments = [
            names.get(position, f"argument {position}")
            for position, aval in enumerate(self._closed.in_avals)
            if str(getattr(aval, "dtype", "")) in _WIDE and _bytes(aval) >= 8 * _LEAST_PROMOTED
        ]
        narrow = sum(_bytes(aval) for aval in self._closed.in_avals if str(getattr(aval, "dtype", "")) in _NARROW)
        promoted = next((equation for equation in self._equations if _promotes(equation)), None)
        made = promoted or next((one for one in self._equations if any(_is(out, _WIDE) for out in one.outvars)), None)
        return {
            "operations": wide,
            "of": self.number,
            "arguments": arguments[:_MOST_GROUPS],
            "narrow_bytes": narrow,
            "promoted": promoted is not None,
            "frames": self._frames(made),
        }

    def _stack(self, equation: Any) -> list[tuple[Any, int]]:
        """(code, instruction) of the frames below the call of the program that are not JAX's, innermost first."""
        return [one for one in self._frames_below(equation) if not one[0].co_filename.startswith(_hidden())]

    def _site(self, equation: Any) -> tuple[Any, ...]:
        """What two operations share that one place of JAX's own code made for one line of the program, in the same
        pass: a `gelu` and its gradient multiply 13 times, each at a place of its own."""
        passes = str(getattr(getattr(equation, "source_info", None), "name_stack", ""))
        return equation.primitive.name, passes, *self._frames_below(equation)

    def _frames_below(self, equation: Any) -> list[tuple[Any, int]]:
        """The same with JAX's own."""
        traceback = getattr(getattr(equation, "source_info", None), "traceback", None)
        if traceback is None:
            return []
        codes, instructions = traceback.raw_frames()
        end = len(codes)
        for above in self._above:
            if not end or codes[end - 1] is not above:
                break
            end -= 1
        return list(zip(codes[:end], instructions[:end], strict=True))

    def _frames(self, equation: Any) -> Frames:
        stack = self._stack(equation)[:_MOST_FRAMES] if equation is not None else []
        return [[code.co_filename, _line(code, at), getattr(code, "co_qualname", code.co_name)] for code, at in stack]


def _turns(sites: Counter[Any]) -> int:
    """How often a loop went round whose operations were made so often at each place. A place that makes two in a turn
    counts twice as many, and one that makes none in the first turn one less, so the usual number tells; of two that are
    as usual, the smaller."""
    usual = Counter(sites.values())
    return min(usual, key=lambda turns: (-usual[turns], turns))


def _inner(parameters: dict[str, Any]) -> Iterator[Any]:
    """Programs inside of an operation: bodies of loops, branches, functions."""
    for value in parameters.values():
        for one in value if isinstance(value, tuple | list) else (value,):
            if hasattr(one, "eqns") or hasattr(getattr(one, "jaxpr", None), "eqns"):
                yield one


def _callers() -> list[Any]:
    """Code of the frames of this thread, outermost first."""
    codes, frame = [], sys._getframe(1)
    while frame is not None:
        codes.append(frame.f_code)
        frame = frame.f_back  # type: ignore[assignment]
    return codes[::-1]


@functools.cache
def _hidden() -> tuple[str, ...]:
    folder = Path(str(getattr(sys.modules.get("jax"), "__file__", "/jax/"))).parent
    return (f"{folder}/", f"{Path(__file__).parent.parent}/", f"{Path(functools.__file__).parent}/", "<")


def _line(code: Any, instruction: int) -> int:
    return next((line or 0 for begin, end, line in code.co_lines() if begin <= instruction < end), 0)


def _wide_is_on() -> bool:
    state = jax_places.member("jax._src.config.enable_x64")
    return bool(getattr(state, "value", False))


def _argument_names(closed: Any) -> dict[int, str]:
    told = getattr(getattr(closed.jaxpr, "debug_info", None), "arg_names", None)
    return {position: name for position, name in enumerate(told or ()) if isinstance(name, str)}


def _is(variable: Any, kinds: tuple[str, ...], least: int = 1) -> bool:
    aval = getattr(variable, "aval", None)
    return str(getattr(aval, "dtype", "")) in kinds and getattr(aval, "size", 0) >= least


def _promotes(equation: Any) -> bool:
    return (
        equation.primitive.name == "convert_element_type"
        and _is(equation.outvars[0], _WIDE)
        and _is(equation.invars[0], _NARROW, _LEAST_PROMOTED)
    )


def _bytes(aval: Any) -> int:
    try:
        return int(aval.size) * int(aval.dtype.itemsize)
    except (AttributeError, TypeError):  # keys, tokens, sizes that are not known
        return 0


def _kind(aval: Any) -> str:
    return f"{getattr(aval, 'dtype', '?')}[{','.join(map(str, getattr(aval, 'shape', ())))}]"
