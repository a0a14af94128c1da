"""The frames below the call of a program for each operation that XLA executes: lines, modules, passes, primitives."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from leadline._dataclass import dataclass
from leadline.xla import scopes

if TYPE_CHECKING:
    from leadline._xla import Program

Frame = tuple[str, str, str, str, str, int, int, int]
"""Kind, name, module, file, detail, line, first line, address; what the native module books."""
MODULE_SYSTEMS = ("flax", "haiku", "keras", "penzai")
"""Packages whose calls open a scope for each module."""
_BY_CLASS = ("/flax/nnx/nn/", "/equinox/nn/")
"""Layers of packages whose modules are known by their classes: flax nnx opens no scopes, Equinox some for its own
layers only, which tell neither instances nor the user's modules."""
_PACKAGES = tuple(f"/{package}/" for package in (*MODULE_SYSTEMS, "equinox"))
_OF_EQUINOX = "eqx."
_NO_MODULES = ("PRNGSequence.",)
"""Scopes that Haiku opens for itself."""


_MODULE = re.compile(r"[A-Za-z_][\w.]*")
"""Names of modules; the formula of an einsum is a scope too, and no module."""
_CALL = ".__call__"
_DOES = {
    "dot": ("dot_general", "ragged_dot_general", "ragged_dot", "einsum"),
    "convolution": ("conv_general_dilated",),
}
"""Instructions that take time by their nature, and the primitives that they are of; the first where none fits."""
_TALKS = {
    "all-reduce": ("psum", "psum_invariant", "pmax", "pmin", "all_reduce"),
    "all-gather": ("all_gather", "all_gather_invariant"),
    "reduce-scatter": ("reduce_scatter", "psum_scatter"),
    "all-to-all": ("all_to_all",),
    "ragged-all-to-all": ("ragged_all_to_all",),
    "collective-permute": ("ppermute", "pshuffle"),
    "collective-broadcast": ("pbroadcast",),
    "send": (),
    "recv": (),
}
"""Instructions that go between devices or processes, and the primitives that ask for them; the partitioner puts in most
of them for primitives that know nothing of it. Asynchronous ones end in `-start` and `-done`."""
_MOVES = frozenset(
    ["copy", "transpose", "reshape", "bitcast", "bitcast-convert", "broadcast", "slice", "pad", "convert"]
)


@dataclass(frozen=True)
class Part:
    """One of the operations that an executed one was made from: its frames below the call of the program, outermost
    first, and its share of the time."""

    frames: tuple[Frame, ...]
    share: float


def parts_of(program: Program, operation: str, above: Sequence[tuple[str, str]]) -> list[Part]:
    """What an executed operation was made from; one part without a stack where nothing is known. `above`: (file,
    function) of the Python frames that the call of the program stands on."""
    found = program.origins(operation)
    if found is None:
        return [Part((_operator(operation, {"hlo": operation}),), 1.0)]
    opcode, _, parts = found
    by_class = any(map(_is_layer, program.files))
    made = []
    for stack, op_name, part_opcode, share in parts:
        scope = scopes.parse(op_name)
        detail: dict[str, Any] = {"hlo": operation}
        if len(parts) > 1 or part_opcode != opcode:
            detail["part"] = part_opcode
        if _talk(part_opcode) in _TALKS:
            detail["role"] = "communication"
        if scope.transforms:
            detail["transforms"] = list(scope.transforms)
        python = below(stack, above)
        frames = [("python", function or "?", "", file, "", line, 0, 0) for file, function, line in python]
        kind = "module" if any(_of_module_system(file) for file, _, _ in python) else "region"
        path = ""
        for name in scope.scopes:
            if kind == "module" and name.endswith(_CALL):  # the class and its method, after or instead of the instance
                if path:
                    continue
                name = name.removesuffix(_CALL)
            if by_class and name.startswith(_OF_EQUINOX):
                continue
            if kind == "module" and _MODULE.fullmatch(name) is not None and not name.startswith(_NO_MODULES):
                path = f"{path}.{name}" if path else name
                frames.append(("module", path, "", "", "", 0, 0, 0))
            else:
                frames.append(("region", name, "", "", "", 0, 0, 0))
        if by_class and not path:
            frames += [("module", name, "", "", "", 0, 0, 0) for name in _classes(python)]
        if scope.differentiated:
            frames.insert(0, ("phase", "forward", "", "", "", 0, 0, 0))
        if scope.backward:
            frames.append(("phase", "backward", "", "", "", 0, 0, 0))
        frames.append(_operator(named(scope.primitive, part_opcode), detail))
        made.append(Part(tuple(frames), share))
    if made:
        return made
    detail = {"hlo": operation} | ({"role": "communication"} if _talk(opcode) in _TALKS else {})
    return [Part((_operator(named("", opcode), detail),), 1.0)]


def unknown(operation: str) -> Part:
    """An operation of a program that cannot be read."""
    return Part((_operator(operation.partition(".")[0], {"hlo": operation}),), 1.0)


def named(primitive: str, opcode: str) -> str:
    """The primitive that an instruction does. XLA rewrites instructions and lets them keep names of their neighbours: a
    product of a transposed matrix may be called `transpose`, and a copy of its result `dot_general`."""
    if (talk := _talk(opcode)) in _TALKS:
        return primitive if primitive in _TALKS[talk] else talk
    does = _DOES.get(opcode)
    if does is not None:
        return primitive if primitive in does else does[0]
    if not primitive or (opcode in _MOVES and any(primitive in does for does in _DOES.values())):
        return opcode
    return primitive


def talks(instruction: str) -> bool:
    """Whether an instruction such as `all-reduce-start.1` goes between devices or processes."""
    return _talk(instruction.partition(".")[0]) in _TALKS


def _talk(opcode: str) -> str:
    return opcode.removesuffix("-start").removesuffix("-done")


def _operator(name: str, detail: dict[str, Any]) -> Frame:
    return ("operator", name, "", "", json.dumps(detail, sort_keys=True), 0, 0, 0)


def _classes(stack: Sequence[tuple[str, str, int]]) -> list[str]:
    """Paths of the modules that call each other on a stack, by their classes: one instance looks like another. Only of
    programs that layers of such a package are in, since any class may have a `__call__`."""
    called = [
        function.removesuffix(_CALL).rpartition(".")[2]
        for file, function, _ in stack
        if function.endswith(_CALL) and (_is_layer(file) or not any(package in file for package in _PACKAGES))
    ]
    return [".".join(called[: end + 1]) for end in range(len(called))]


def _is_layer(file: str) -> bool:
    return any(layers in file for layers in _BY_CLASS)


def _of_module_system(file: str) -> bool:
    return any(f"/{package}/" in file for package in MODULE_SYSTEMS)


def below(stack: Sequence[tuple[str, str, int]], above: Sequence[tuple[str, str]]) -> list[tuple[str, str, int]]:
    """The frames of a stack that lie below the call of the program: those of the caller are left out, wherever
    inlining has put them."""
    start = 0
    for (file, function, _), (above_file, above_function) in zip(stack, above, strict=False):
        if file != above_file or function.rpartition(".")[2] != above_function.rpartition(".")[2]:
            break
        start += 1
    callers = {(file, function.rpartition(".")[2]) for file, function in above[:start]}
    return [
        frame
        for position, frame in enumerate(stack)
        if position >= start and (frame[0], frame[1].rpartition(".")[2]) not in callers
    ]


def program_name(called: str) -> str:
    """What XLA calls the program that JAX calls `jit(f)`."""
    plain = called.removesuffix(")").replace("(", "_", 1)
    return "".join(character if character.isalnum() or character in "_.-" else "_" for character in plain)
