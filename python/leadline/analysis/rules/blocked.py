"""Waiting in the step that no operator, loader or device explains: a sleep, a child process, a socket. No rule."""

from __future__ import annotations

import ast

from leadline.analysis.origin import Origin, origin
from leadline.analysis.rules.base import Case, Line
from leadline.schema import FrameKind

_WAITS = frozenset(
    (
        *("sleep", "run", "call", "check_call", "check_output", "getoutput", "system", "communicate", "wait"),
        *("urlopen", "recv", "recvfrom", "accept", "connect", "acquire", "join", "select", "poll", "input"),
    )
)
_MODULES = frozenset(("time", "subprocess", "os", "requests", "urllib", "socket", "select", "asyncio", "httpx"))
"""Of a function that is called on a module, only those of such modules wait: `model.run` does not."""


def blocked_ns(case: Case) -> float:
    """Of a step, the time in which the loop's thread had no core and did not wait for one, less what is known to wait:
    for batches, devices, ranks. 0 where that was not measured."""
    main = case.loop.of.main
    if main.running_ns < 0 or not case.loop.measured_by:
        return 0.0
    blocked = case.loop.step_ns - main.running_ns - max(main.core_wait_ns, 0.0)
    return max(0.0, min(blocked, case.between_ns / case.loop.steps))


def waiting_lines(case: Case) -> list[Line]:
    """Lines of the loop's source that call what waits, at most two."""
    found: dict[tuple[str, int], Line] = {}
    for row in case.loop.anchors[:20].tolist():
        for at in case.tree.path_rows(row):
            node = case.tree.node(at)
            if case.tree.kinds[at] != int(FrameKind.PYTHON) or origin(node.file) != Origin.USER:
                continue
            source = case.sources.of(node.file)
            for block in source.blocks(node.line) if source else ():
                for call in ast.walk(block.node):
                    if isinstance(call, ast.Call) and _may_wait(call.func):
                        found.setdefault((node.file, call.lineno), case.line_at(node.file, call.lineno, node.name))
    return list(found.values())[:2]


def _may_wait(function: ast.expr) -> bool:
    if isinstance(function, ast.Name):
        return function.id in ("sleep", "urlopen", "check_call", "check_output", "input")
    if not isinstance(function, ast.Attribute):
        return False
    owner = function.value
    while isinstance(owner, ast.Attribute):
        owner = owner.value
    named = owner.id if isinstance(owner, ast.Name) else ""
    return named in _MODULES and (function.attr in _WAITS or named in ("requests", "httpx"))
