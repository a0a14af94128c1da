"""What is known of one place (a line, with what runs there), whatever rule fires or none: facts that tell its cause.

Each fact is measured, or read in the program's own source at that very line. It is a description and no finding: it
holds for a healthy program as well. Verdict, findings and page say it with `known_of`, so they cannot differ.
"""

from __future__ import annotations

from collections.abc import Iterable

from leadline._dataclass import replace
from leadline.analysis.case import Case
from leadline.analysis.rules.place.at import At, at_line
from leadline.analysis.rules.place.behalf import on_behalf
from leadline.analysis.rules.place.converts import converts
from leadline.analysis.rules.place.deques import deques
from leadline.analysis.rules.place.fact import Fact
from leadline.analysis.rules.place.inside import inside
from leadline.analysis.rules.place.known_calls import known_calls
from leadline.analysis.rules.place.measured import measured
from leadline.analysis.rules.place.searched import searched
from leadline.analysis.rules.place.written import written

__all__ = ["TELLING", "At", "Fact", "at_line", "facts_of", "instead_at", "known_of", "sentence_of"]

TELLING = 0.5
"""A fact that tells more than what the place is: worth a line where the place is not the dominant one."""
_MOST = 3
_PART_OF = "part of"


def facts_of(case: Case, file: str, line: int, what: str = "", ns: float = 0.0) -> list[Fact]:
    """Facts of a line, those that explain most first, one of each kind. `what`: the operator or function that takes the
    time there; `ns`: its time a step, where that is known."""
    key = (file, line, what, ns)
    kept: dict[tuple[str, int, str, float], list[Fact]] = vars(case).setdefault("_places", {})
    if key not in kept:
        place = at_line(case, file, line, what)
        if place is not None and ns and not what:  # the time is not that of the line's operators
            place = replace(place, operator=False)
        kept[key] = [] if place is None else _best(_asked(case, place, ns))
    return kept[key]


def _asked(case: Case, place: At, ns: float) -> list[Fact]:
    return [
        *case.optional(lambda: measured(case, place, ns)),
        *case.optional(lambda: on_behalf(case, place)),
        *case.optional(lambda: searched(case, place)),
        *case.optional(lambda: inside(case, place)),
        *case.optional(lambda: converts(case, place)),
        *case.optional(lambda: known_calls(case, place)),
        *case.optional(lambda: list(deques(place))),
        *case.optional(lambda: written(case, place)),
    ]


def known_of(case: Case, file: str, line: int, what: str = "", ns: float = 0.0, least: float = 0.0) -> str:
    """`runs in a forward hook; is called 14 times a step`: at most three facts as what the place does; empty where none
    tells at least so much."""
    found = [one for one in facts_of(case, file, line, what, ns) if one.tells >= least]
    return "; ".join(one.text for one in found[:_MOST])


def instead_at(case: Case, file: str, line: int, what: str = "") -> str:
    """What to do instead, of the fact that tells most of those that know it; empty where none tells enough."""
    found = (one for one in facts_of(case, file, line, what) if one.instead and one.tells >= TELLING)
    return next((one.instead for one in found), "")


def sentence_of(case: Case, name: str, file: str, line: int, what: str = "", ns: float = 0.0) -> str:
    """`aten::kthvalue runs in a forward hook; is called 14 times a step`; empty where nothing is known."""
    known = known_of(case, file, line, what, ns)
    return f"{name} {known}" if known else ""


def _best(facts: Iterable[Fact]) -> list[Fact]:
    """The facts in order, one of each kind."""
    found: dict[str, Fact] = {}
    for one in sorted(facts, key=lambda one: -one.tells):
        found.setdefault(one.kind, one)
    return list(found.values()) if set(found) != {_PART_OF} else []  # alone, it says nothing
