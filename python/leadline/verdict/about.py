"""What is known of the places that a verdict names, in its words: `leadline.analysis.rules.place` has the facts."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from leadline.analysis.case import Case
from leadline.analysis.findings import Finding, Line
from leadline.analysis.rules.place import TELLING, facts_of, sentence_of
from leadline.verdict.model import Place
from leadline.verdict.words import named

_SAYS: Mapping[str, Collection[str]] = {
    "grows": ("shape", "often"),
    "logging_in_loop": ("for",),
    "op_by_op": ("jit",),
    "redundant_work": ("shape", "again", "read"),
    "weights_again": ("again", "often"),
    "slow_type": ("type",),
    "double_precision": ("type",),
}
"""Kinds of facts that findings of a rule have in their titles."""


def of_place(case: Case, place: Place | None) -> list[str]:
    """`aten::kthvalue at hook_quantile.py:49 runs in a forward hook; is called 14 times a step`; empty where nothing is
    known of it."""
    if place is None or not place.file or not place.line:
        return []
    name = named(place)
    at = "" if name == place.text else f" at {place.text}"
    sentence = sentence_of(case, f"{name}{at}", place.file, place.line, place.what, place.ns)
    return [sentence] if sentence else []


class Remarks:
    """Remarks on the other places that a verdict names, each of them once."""

    def __init__(self, case: Case, place: Place | None) -> None:
        self._case = case
        self._said = {(place.file, place.line)} if place is not None else set()

    def of_place(self, place: Place | None) -> str:
        """` (it runs in a forward hook)`: what tells most of a place; empty where nothing tells much."""
        return self._of(place.file, place.line, place.what, place.ns, ()) if place is not None else ""

    def of_finding(self, one: Finding) -> str:
        """The same of a finding's line, but what the finding itself says."""
        return self.of_line(one.lines[0], _SAYS.get(one.rule, ()))

    def of_line(self, line: Line, known: Collection[str] = ()) -> str:
        """The same of any line; `known`: kinds of facts that are said already."""
        return self._of(line.file, line.line, "", 0.0, known)

    def _of(self, file: str, line: int, what: str, ns: float, known: Collection[str]) -> str:
        if not file or not line or (file, line) in self._said:
            return ""
        found = [one for one in facts_of(self._case, file, line, what, ns) if one.kind not in known]
        if not found or found[0].tells < TELLING:
            return ""
        self._said.add((file, line))
        return f" (it {found[0].text})"
