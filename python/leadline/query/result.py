"""The answer to a query: columns of equal length, and the nodes behind them where rows are nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.profiles import Node, Tree

Column = NDArray[Any]


@dataclass(frozen=True, eq=False)
class QueryResult:
    """Iterating gives one mapping per row. `columns`: NumPy arrays by name; texts are objects, times are nanoseconds,
    sizes bytes, shares 0 to 1 (`units` says which). `rows`: rows of the nodes, or of the events where `events`; None
    where rows were grouped. `note`: a sentence where nothing was found and there is a likely reason."""

    tree: Tree
    columns: Mapping[str, Column]
    units: Mapping[str, str]
    rows: NDArray[np.int64] | None
    events: bool = False
    note: str = ""

    @property
    def nodes(self) -> list[Node]:
        """The nodes, in the order of the rows. Raises ValueError where rows are groups or events."""
        if self.rows is None or self.events:
            raise ValueError("The rows of this result are not nodes; ask without 'by' and without 'events'.")
        return [Node(self.tree, row) for row in self.rows.tolist()]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()))) if self.columns else 0

    def __iter__(self) -> Iterator[dict[str, Any]]:
        names = list(self.columns)
        for values in zip(*(self.columns[name].tolist() for name in names), strict=True):
            yield dict(zip(names, values, strict=True))

    def __getitem__(self, name: str) -> Column:
        return self.columns[name]

    def to_numpy(self) -> dict[str, Column]:
        """The columns by name."""
        return dict(self.columns)

    def to_pandas(self) -> Any:
        """A pandas.DataFrame; raises ImportError where pandas is missing."""
        import pandas

        return pandas.DataFrame(dict(self.columns))

    def to_polars(self) -> Any:
        """A polars.DataFrame; raises ImportError where polars is missing."""
        import polars

        return polars.DataFrame({name: _plain(column) for name, column in self.columns.items()})

    def to_arrow(self) -> Any:
        """A pyarrow.Table; raises ImportError where pyarrow is missing."""
        import pyarrow

        return pyarrow.table({name: _plain(column) for name, column in self.columns.items()})

    def __repr__(self) -> str:
        return f"<QueryResult {len(self)} rows: {', '.join(self.columns)}>"


def _plain(column: Column) -> Any:
    """Texts as a list of str, which every table library takes; surrogates become U+FFFD."""
    if column.dtype != object:
        return column
    return [text.encode("utf-8", "replace").decode("utf-8") for text in column.tolist()]
