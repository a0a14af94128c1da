"""A query that cannot be understood: one sentence that names the place of the mistake."""

from __future__ import annotations

_SHOWN = 24


class QueryError(ValueError):
    """`position` counts characters of the query from 0; the sentence counts columns from 1."""

    def __init__(self, problem: str, text: str = "", position: int = 0) -> None:
        rest = text[position : position + _SHOWN].split("\n")[0]
        there = f"at {rest!r}" if rest.strip() else "at its end"
        super().__init__(f"The query is wrong at column {position + 1}, {there}: {problem}.")
        self.problem = problem
        self.position = position


class SqlError(ValueError):
    """DuckDB is missing, or did not accept the statement."""
