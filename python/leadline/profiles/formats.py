"""Every format version there has been, oldest first: what its columns were, and the one step to the next version.

A reader takes a file of version v through the steps v -> v+1 -> ... to today's schema; old files stay in tests/compat
and must open for ever. Versions 1 and 2 have the same tables: what changed is that readers of version 1 refuse a kind
that they do not know. To change a table: freeze today's tables as a literal in `format_v2.py`, give them to the
entries of versions 1 and 2, to version 2 together with a function that makes the next version's columns and meta from
them, and append an entry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from leadline import schema
from leadline._dataclass import dataclass
from leadline.profiles.tables import Columns


@dataclass(frozen=True)
class RawProfile:
    """Columns and meta as a version of the format has them, types checked, contents not."""

    columns: Mapping[str, Columns]
    meta: dict[str, Any]


@dataclass(frozen=True)
class Format:
    """A version: its tables, and the step to the next one (None for today's)."""

    version: int
    tables: Mapping[str, schema.Table]
    upgrade: Callable[[RawProfile], RawProfile] | None


def _as_it_is(raw: RawProfile) -> RawProfile:
    return raw


FORMATS: Final[tuple[Format, ...]] = (
    Format(version=1, tables=schema.TABLES, upgrade=_as_it_is),
    Format(version=2, tables=schema.TABLES, upgrade=None),
)


def upgraded(raw: RawProfile, version: int, formats: Sequence[Format] = FORMATS) -> RawProfile:
    """`raw`, of format `version`, as the newest of `formats`."""
    for one in formats:
        if one.version >= version and one.upgrade is not None:
            raw = one.upgrade(raw)
    return raw
