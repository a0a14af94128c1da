"""Asking a profile: one line, its answer as nodes and as columns.

    result = p.query("operator:aten::* where phase = backward sort -self top 10")
    result.nodes, result["self"], result.to_pandas()

The language is described in docs/query.md.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

from leadline.profiles import Profile
from leadline.query.columns import TreeColumns
from leadline.query.errors import QueryError, SqlError
from leadline.query.parser import parse, parse_path
from leadline.query.result import QueryResult
from leadline.query.run import answer

__all__ = ["QueryError", "QueryResult", "SqlError", "TreeColumns", "columns_of", "parse", "parse_path", "query"]

_COLUMNS: WeakKeyDictionary[Profile, TreeColumns] = WeakKeyDictionary()


def columns_of(profile: Profile) -> TreeColumns:
    """The columns of `profile`, made once and kept as long as it is."""
    found = _COLUMNS.get(profile)
    if found is None:
        found = _COLUMNS[profile] = TreeColumns(profile)
    return found


def query(profile: Profile, text: str) -> QueryResult:
    """What the one-line query `text` asks of `profile`. Raises QueryError, a sentence with the place of the mistake."""
    return answer(columns_of(profile), parse(text))
