"""A step of JAX that is mostly calls of single operations, outside of `jax.jit`: dispatch, at the lines with most of
them, however their time is spread over XLA's threads, Python and the helpers of a library."""

from __future__ import annotations

from collections.abc import Iterable

from leadline._dataclass import replace
from leadline.analysis.calls_in_source import only_call
from leadline.analysis.case import Case
from leadline.analysis.findings import Finding, Severity
from leadline.analysis.rules.jaxwork import by_themselves
from leadline.verdict.model import Account, Place
from leadline.verdict.places import MOST
from leadline.verdict.resource import Resource

RULE = "op_by_op"
_KINDS = ("compute", "framework", "python", "dispatch")
_NEARLY = 0.8
"""Of the largest part: calling takes so much that it is what sets the length of the step."""


def one_by_one(case: Case, made: Account, resource: Resource, found: Iterable[Finding]) -> list[Resource]:
    """The resource as dispatch, with the lines that call most of the operations; none where another part is larger, or
    the rule has no warning."""
    calling = next((one for one in made.lane("thread") if one.key == "calling"), None)
    warned = any(one.rule == RULE and one.severity is Severity.WARNING for one in found)
    if not warned or calling is None or resource.part is None or resource.kind not in _KINDS:
        return []
    if calling.ns < _NEARLY * resource.part.ns:
        return []
    groups = case.by_line(by_themselves(case), case.calls)
    every = sum(one.value for one in groups)
    places = []
    for group in groups[:MOST]:
        line = case.line(group.row)
        if line is not None:
            short = line.short.rsplit("/", 1)[-1] if line.short.startswith("/") else line.short
            called = only_call(case, group.row)
            ns = int(calling.ns * group.value / max(every, 1))
            places.append(Place(line.file, line.line, line.function, short, called, "", ns))
    return [replace(resource, kind="dispatch", part=replace(calling, places=tuple(places)))] if places else []
