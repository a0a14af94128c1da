"""Steps of a rank that ended without being timed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from leadline.profiles import step_rows
from leadline.profiles.fold.state import UNTIMED
from leadline.profiles.tables import Tables


class Source(Protocol):
    """A file of one or more ranks; `records`: what each process said of itself."""

    @property
    def tables(self) -> Tables: ...

    @property
    def records(self) -> Sequence[Mapping[str, Any]]: ...


class Member(Protocol):
    """A process of a rank."""

    @property
    def row(self) -> int: ...

    @property
    def main(self) -> bool: ...


def untimed_steps(
    values: Mapping[str, tuple[int, int]], pieces: Sequence[tuple[Source, Sequence[Member]]]
) -> dict[str, tuple[int, int]]:
    """The value that counts them, of the main processes; nothing where there are none. A start that recorded no step
    where another did ended none."""
    if "steps" not in values:
        return {}
    found: list[tuple[bool, int]] = []
    for source, members in pieces:
        process_of = source.tables["threads"]["process"]
        steps: dict[int, list[step_rows.StepRows]] = {}
        for thread, one in step_rows.rows_of(source.tables).items():
            steps.setdefault(int(process_of[thread]), []).append(one)
        for member in members:
            if member.main:
                rows = step_rows.together(steps.get(member.row, []))
                found.append((bool(rows.spans), step_rows.untimed(rows, source.records[member.row])))
    recorded = any(known for known, _ in found)
    number = sum(number for known, number in found if known or not recorded)
    return {UNTIMED: (0, number)} if number else {}
