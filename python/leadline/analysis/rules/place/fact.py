"""One fact of a place."""

from __future__ import annotations

from leadline._dataclass import dataclass


@dataclass(frozen=True)
class Fact:
    """`kind`: facts of one kind say the same in other words; `text`: a verb and what follows, the place is its subject;
    `tells`: how much of the place's time it explains, 0 to 1, by which facts are chosen; `instead`: what to do where
    the fact is the cause, as an instruction, empty where that is not known."""

    kind: str
    text: str
    tells: float
    instead: str = ""
