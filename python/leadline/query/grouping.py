"""Rows brought together by fields. Sums with what lies below count a node once, however its group nests in itself."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from leadline._dataclass import dataclass
from leadline.profiles import Measures
from leadline.query.columns import (
    NUMBER_FIELDS,
    Mask,
    Rows,
    Texts,
    TreeColumns,
    dimension,
    grouped_measures,
    numbered,
)
from leadline.query.errors import QueryError
from leadline.query.expressions import (
    EVENT_FIELDS,
    Evaluator,
    Floats,
    Quantity,
    metric_of,
    own_stat,
    stat_of,
    statistic,
)
from leadline.query.syntax import TEXT_FIELDS, Field
from leadline.schema import MetricInfo, MetricKind


@dataclass(frozen=True)
class Groups:
    """`of`: the group 0..number-1 of every row of `rows`. `first`: a row of every group."""

    rows: Evaluator
    of: Rows
    first: Rows
    number: int

    def column(self, field: Field) -> Texts | Quantity:
        """A field of every group: of its rows together."""
        if field.name in (*TEXT_FIELDS, *NUMBER_FIELDS, "event", "step", "stream") and not field.stat:
            found = self.rows.column(field)
            if isinstance(found, Texts):
                return found.at(self.first)
            return Quantity(found.values[self.first], found.dimension)
        if field.name == "nodes":
            return Quantity(np.bincount(self.of, minlength=self.number).astype(np.float64), "1")
        if self.rows.events is not None and field.name in EVENT_FIELDS:
            found = self.rows.column(Field(field.name, "", field.position))
            assert isinstance(found, Quantity)
            return Quantity(self._event_statistic(found.values, field), found.dimension)
        if field.name in ("calls", "count") and not field.stat:
            calls = self.rows.columns.calls[self.rows.nodes] if self.rows.events is None else np.ones(len(self.of))
            return Quantity(np.bincount(self.of, weights=calls, minlength=self.number), "1")
        if field.name in ("self", "share", "per_step") and not field.stat:
            field = Field("time", field.name, field.position)
        if field.name == "self":
            own = self._metric(Field("time", "self", field.position))
            return self._shared(own.values, own_stat(field, self.rows.text), own.dimension, self._whole_time(), field)
        return self._metric(field)

    def _whole_time(self) -> float:
        return self.rows.columns.total(MetricKind.TIME)

    def _event_statistic(self, values: Floats, field: Field) -> Floats:
        stat = field.stat or "sum"
        if stat not in ("sum", "mean", "min", "max", "count"):
            raise self.rows.error("events have sum, mean, min, max and count", field.position)
        sums = np.bincount(self.of, weights=values, minlength=self.number)
        count = np.bincount(self.of, minlength=self.number)
        if stat in ("sum", "count"):
            return sums if stat == "sum" else count.astype(np.float64)
        if stat == "mean":
            return sums / np.maximum(count, 1)
        result = np.full(self.number, np.inf if stat == "min" else -np.inf)
        (np.minimum if stat == "min" else np.maximum).at(result, self.of, values)
        return result

    def _metric(self, field: Field) -> Quantity:
        text, columns = self.rows.text, self.rows.columns
        info = metric_of(field, text)
        if self.rows.events is not None:
            raise self.rows.error("events have no metrics; use duration or bytes", field.position)
        stat = stat_of(field, info, text)
        unit, factor = dimension(info)
        if info.additive and stat in ("sum", "share", "per_step"):
            topmost = self._topmost
            sums = columns.below(info.kind)[self.rows.nodes[topmost]] * factor
            values = np.bincount(self.of[topmost], weights=sums, minlength=self.number)
            return self._shared(values, stat, unit, columns.total(info.kind) * factor, field)
        own = self._own(info, stat)
        if stat == "share":
            raise self.rows.error(f"{field.name} does not add up to a whole, so it has no share", field.position)
        if stat == "per_step":
            return self._shared(own.sum * factor, stat, unit, 0.0, field)
        return Quantity(statistic(own, stat) * (1.0 if stat == "count" else factor), "1" if stat == "count" else unit)

    def _shared(self, values: Floats, stat: str, unit: str, total: float, field: Field) -> Quantity:
        if stat == "share":
            return Quantity(values / total if total else np.zeros(len(values)), "%")
        if stat == "per_step":
            if not self.rows.columns.steps:
                raise self.rows.error("this profile has no steps: nothing in it repeats", field.position)
            return Quantity(values / self.rows.columns.steps, unit)
        return Quantity(values, unit, total)

    @cached_property
    def _topmost(self) -> Mask:
        """The same for every metric: what lies below another node of its group is counted there."""
        return topmost_of(self.rows.columns, self.rows.nodes, self.of, self._order)

    @cached_property
    def _order(self) -> Rows:
        """Rows group by group, in each as a walk through the tree meets them."""
        columns = self.rows.columns
        return np.argsort(self.of * (len(columns.tree) + 1) + columns.before[self.rows.nodes])

    @cached_property
    def _by_group(self) -> tuple[Rows, Rows]:
        """(nodes group by group, where each group begins), for every metric."""
        order = self._order
        groups = self.of[order]
        first = np.flatnonzero(np.concatenate(([True], groups[1:] != groups[:-1]))) if len(groups) else groups
        return self.rows.nodes[order], first

    def _own(self, info: MetricInfo, stat: str) -> Measures:
        own = self.rows.columns.tree.exclusive(info.kind)
        return grouped_measures(own, *self._by_group, max(self.number, 0), stat)


def grouped(rows: Evaluator, by: tuple[Field, ...]) -> Groups:
    """Rows with equal fields as one group each, in the order in which they first appear. Raises QueryError for a field
    that is a measurement."""
    keys: list[Rows] = []
    for field in by:
        if field.name not in (*TEXT_FIELDS, *NUMBER_FIELDS, "event", "step", "stream") or field.stat:
            known = ", ".join((*TEXT_FIELDS, *NUMBER_FIELDS))
            raise QueryError(f"rows can be grouped by {known}, not by {field}", rows.text, field.position)
        found = rows.column(field)
        keys.append(found.codes if isinstance(found, Texts) else found.values.astype(np.int64))
        if field.name == "line":
            keys.append(rows.columns.text("file").codes[rows.nodes])
    if not len(rows.nodes):
        return Groups(rows, np.zeros(0, np.int64), np.zeros(0, np.int64), 0)
    codes = numbered(keys)
    unique, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    place = np.empty(len(unique), np.int64)
    place[order] = np.arange(len(unique))
    return Groups(rows, place[inverse], first[order].astype(np.int64), len(unique))


def topmost_of(columns: TreeColumns, nodes: Rows, groups: Rows, order: Rows) -> Mask:
    """Which of `nodes` (each given once) have no node of their own group above them. `order`: group by group, in each
    as a walk through the tree meets them."""
    if not len(nodes):
        return np.zeros(0, np.bool_)
    begin, end = columns.before[nodes][order], columns.last[nodes][order]
    offset = groups[order] * (len(columns.tree) + 1)  # a later group begins beyond all ends of the one before
    covered = np.maximum.accumulate(offset + end)
    top = np.ones(len(nodes), np.bool_)
    top[1:] = (offset + begin)[1:] > covered[:-1]
    result = np.empty(len(nodes), np.bool_)
    result[order] = top
    return result
