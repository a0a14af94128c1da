"""What to say of a function of the program that takes much of the step outside of operators, and what to do instead."""

from __future__ import annotations

import re
from collections.abc import Sequence

from leadline.analysis.case import Case
from leadline.analysis.rules.place.converts import Converted
from leadline.analysis.rules.place.inside import Inside
from leadline.analysis.rules.whole_arrays import WholeArrays
from leadline.analysis.sampled import SampledFunction
from leadline.units import percent

IN_PYTHON = "in Python code, not in operators"
"""How the title of a function ends that takes time itself."""
_OF_CONTAINERS = re.compile(
    r"^(?:list|dict|set|tuple|str|unicode|deque|bytes)(?:[_.]|$)|^(?:insert|remove|index|pop|contains)$"
)
_NEARLY_ALL = 0.7
"""Of a function's CPU time."""


def title_of(
    case: Case,
    one: SampledFunction,
    inside: Inside | None,
    values_to: Sequence[Converted],
    arrays: WholeArrays | None,
) -> str:
    """The function of the program, or what it does where a library's line takes nearly all of that."""
    share = f"{percent(case.share(one.ns))} of the step"
    if values_to:
        return f"{one.name} makes tensors of lists or tuples element by element, {share}"
    if arrays is not None:
        return f"{one.name} computes on whole NumPy arrays: {arrays.text}"
    subject = f"{inside.name} in {one.name}" if inside is not None and inside.share >= _NEARLY_ALL else one.name
    return f"{subject} takes {share} {IN_PYTHON}"


def instead_of_function(one: SampledFunction, inside: Inside | None) -> str:
    """What to do about a function: of its own text, whether it loops, calls a library, or is called often."""
    name = one.name.rsplit(".", 1)[-1]
    if inside is not None and inside.converts:
        return inside.instead
    if inside is not None and one.called and inside.name != one.called[0][0]:  # far below what the line calls
        return (
            f"Read {inside.where} ({inside.name}): give it less to do, or leave out the argument of "
            f"{one.called[0][0]} that asks for it."
        )
    below = next((called for called, share in one.called if share >= 0.4), "")
    if below:
        cheaper = "use a container for which it is cheap" if _OF_CONTAINERS.search(below) else "ask it for less"
        return (
            f"Call {below} less often in {name}: for all elements at once, or not again while its input stays the same "
            f"(keep its result); or {cheaper}."
        )
    return (
        f"Do less in {name} each time: compute what stays the same once, before the loop, and handle all elements in "
        "one call of NumPy or of an operator, not one by one in Python."
    )
