"""Where a node of TensorFlow's graphs stands and what it waits for, through calls of functions, loops and branches.

TensorFlow puts functions in the place of their calls before it runs them: a node of `f` that `call` calls is
`call/node`, one of a loop's body `while/body/_3/node`. What a call is handed is followed to who made it, and what a
call results in to who made that inside of it; a loop hands each turn what the turn before made.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

_CALLS = frozenset(("PartitionedCall", "StatefulPartitionedCall"))
_PARTS = {"body": "body", "cond": "cond", "then": "then_branch", "else": "else_branch"}
"""In the names of nodes, and the attribute of the loop or branch that names the function."""
_LOOPS, _BRANCHES = frozenset(("While", "StatelessWhile")), frozenset(("If", "StatelessIf"))
_NUMBERED = re.compile(r"/(?:body|cond|then|else)/(_\d+/)")
_PASSES_EACH = "IdentityN"
_MOST = 1000
"""Steps that one input is followed for."""


@dataclass(frozen=True, eq=False)
class _Scope:
    """A function that was put in place of a call, `None` for what Python called. `part`: of a loop or branch."""

    prefix: str
    graph: Any
    call: Any = None
    part: str = ""
    outer: _Scope | None = None


class Calls:
    """`graph_of`: the graph of a function by TensorFlow's name, None where it is unknown or gone; `operations`:
    its operations by name."""

    def __init__(self, graph_of: Callable[[str], Any], operations: Callable[[str], dict[str, Any]]) -> None:
        self._graph_of = graph_of
        self._operations = operations
        self._ran: Collection[str] = ()
        self._numbers: dict[str, str] = {}

    def find(self, function: str, node: str) -> Any:
        """The operation of that name, None where the path leads to none."""
        return self._find(function, node)[1]

    def inputs(self, function: str, node: str, ran: Collection[str]) -> tuple[str, ...] | None:
        """Names of the nodes that a node waits for; None for one that is not found. `ran`: names of nodes that ran,
        which tell the numbers of loops and branches."""
        scope, operation = self._find(function, node)
        if scope is None:
            return None
        if ran is not self._ran:
            self._ran, self._numbers = ran, _numbers(ran)
        numbers = self._numbers
        found = {scope.prefix + str(one.name): None for one in operation.control_inputs}
        for tensor in operation.inputs:
            found.update(dict.fromkeys(self._makers(tensor, scope, numbers)))
        return tuple(found)

    def _find(self, function: str, node: str) -> tuple[_Scope | None, Any]:
        graph = self._graph_of(function)
        scope = None if graph is None else _Scope("", graph)
        while scope is not None:
            operations, rest = self._operations(function), node[len(scope.prefix) :]
            if rest in operations:
                return scope, operations[rest]
            function, scope = self._inner(scope, operations, rest.split("/"))
        return None, None

    def _inner(self, scope: _Scope, operations: dict[str, Any], parts: list[str]) -> tuple[str, _Scope | None]:
        for end in range(1, len(parts)):
            call = operations.get("/".join(parts[:end]))
            if call is None:
                continue
            part = ""
            if str(call.type) not in _CALLS:
                part = parts[end] if end + 1 < len(parts) else ""
            name = _callee(call, _PARTS.get(part, "f"))
            graph = self._graph_of(name)
            if graph is not None:
                behind = parts[:end] if not part else parts[: end + 2]
                return name, _Scope(scope.prefix + "/".join(behind) + "/", graph, call, part, scope)
        return "", None

    def _makers(self, tensor: Any, scope: _Scope, numbers: dict[str, str]) -> Iterator[str]:
        """Of a tensor: names of nodes that run, or that may have been taken out."""
        at = [(tensor, scope)]
        passed: set[tuple[str, str]] = set()
        for _ in range(_MOST):
            if not at:
                return
            tensor, scope = at.pop()
            where = (scope.prefix, str(tensor.name))
            if where in passed:
                continue
            passed.add(where)
            before = self._before(tensor, scope, numbers)
            if before:
                at += before
            else:
                yield scope.prefix + str(tensor.op.name)

    def _before(self, tensor: Any, scope: _Scope, numbers: dict[str, str]) -> list[tuple[Any, _Scope]]:
        """Tensors that this one is the same as; none for one that its operation makes."""
        operation, place = tensor.op, int(tensor.value_index)
        kind = str(operation.type)
        if kind == _PASSES_EACH:
            return [(operation.inputs[place], scope)]
        if kind == "Placeholder" and scope.call is not None and scope.outer is not None:
            return self._handed(tensor, scope, scope.outer, numbers)
        parts = (
            [""] if kind in _CALLS else ["body"] if kind in _LOOPS else ["then", "else"] if kind in _BRANCHES else []
        )
        inner = (self._part(operation, part, scope, numbers) for part in parts)
        return [(one.graph.outputs[place], one) for one in inner if one is not None and place < len(one.graph.outputs)]

    def _part(self, call: Any, part: str, scope: _Scope, numbers: dict[str, str]) -> _Scope | None:
        """What was put in place of a call; None where it did not run."""
        graph = self._graph_of(_callee(call, _PARTS.get(part, "f")))
        prefix = f"{scope.prefix}{call.name}/"
        if part:
            prefix = numbers.get(f"{prefix}{part}/", "")
        return _Scope(prefix, graph, call, part, scope) if graph is not None and prefix else None

    def _handed(self, tensor: Any, scope: _Scope, outer: _Scope, numbers: dict[str, str]) -> list[tuple[Any, _Scope]]:
        """What a function was handed; in a loop also what the turn before made."""
        place = next((at for at, one in enumerate(scope.graph.inputs) if one is tensor), -1)
        given = place + 1 if scope.part in ("then", "else") else place  # a branch is handed its condition first
        if place < 0 or given >= len(scope.call.inputs):
            return []
        found = [(scope.call.inputs[given], outer)]
        body = scope if scope.part == "body" else None
        if scope.part == "cond":
            body = self._part(scope.call, "body", outer, numbers)
        if body is not None and place < len(body.graph.outputs):
            found.append((body.graph.outputs[place], body))
        return found


def _numbers(ran: Collection[str]) -> dict[str, str]:
    """`while/body/_3/` by `while/body/`, for every loop and branch that ran."""
    return {name[: one.start(1)]: name[: one.end(1)] for name in ran for one in _NUMBERED.finditer(name)}


def _callee(operation: Any, attribute: str) -> str:
    if str(operation.type) not in _CALLS | _LOOPS | _BRANCHES:
        return ""
    try:
        return str(operation.get_attr(attribute).name)
    except (ValueError, AttributeError):  # of another kind of call, or of another release
        return ""
