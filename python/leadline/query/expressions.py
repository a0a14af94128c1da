"""Conditions and values over rows, which are nodes or events, with their units: 5 ms is not comparable with bytes.

A metric by itself is its inclusive sum where it is additive, its sum (`call_time`) or mean elsewhere. `self`, `count`,
`mean`, `min`, `max` and `std` are of what was measured at the node itself; `share` is of the profile's whole.
"""

from __future__ import annotations

import re
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass
from leadline.profiles import Measures
from leadline.query import paths, syntax
from leadline.query.columns import (
    NUMBER_FIELDS,
    STATS,
    Mask,
    Rows,
    Texts,
    TreeColumns,
    dimension,
    find_metric,
)
from leadline.query.errors import QueryError
from leadline.schema import EventKind, MetricInfo, MetricKind

Floats: TypeAlias = NDArray[Any]  # numbers of any width; they are compared and summed as 64-bit floats

EVENT_FIELDS = ("start", "duration", "step", "bytes", "stream", "event")
_EVENT_COLUMNS = {"start": "start_ns", "duration": "duration_ns"}
_EVENT_UNITS = {"start": "ns", "duration": "ns", "bytes": "bytes"}
_ALIASES = {"calls": "count"}
_ORDERS = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "=": np.equal,
    "!=": np.not_equal,
}


@dataclass(frozen=True)
class Quantity:
    """A number per row, or one for all. `whole`: what a percentage of it is a percentage of."""

    values: Floats
    dimension: str
    whole: float | None = None


class Evaluator:
    """Evaluates over `nodes`, one per row; `events`: the row of the events table behind each, where rows are events."""

    def __init__(self, columns: TreeColumns, text: str, nodes: Rows, events: Rows | None = None) -> None:
        self.columns = columns
        self.text = text
        self.nodes = nodes
        self.events = events

    def over(self, nodes: Rows) -> Evaluator:
        """The same query over other nodes."""
        return Evaluator(self.columns, self.text, nodes)

    def error(self, problem: str, position: int) -> QueryError:
        return QueryError(problem, self.text, position)

    def holds(self, condition: syntax.Condition) -> Mask:
        """Which rows the condition holds for."""
        if isinstance(condition, syntax.Both):
            return self.holds(condition.left) & self.holds(condition.right)
        if isinstance(condition, syntax.Either):
            return self.holds(condition.left) | self.holds(condition.right)
        if isinstance(condition, syntax.Not):
            return ~self.holds(condition.part)
        if isinstance(condition, syntax.Relation):
            return self._related(condition)
        return self._compared(condition)

    def matching(self, path: syntax.Path) -> Mask:
        """Nodes of the whole tree that the path means."""
        return paths.matching(self.columns, path, lambda condition, rows: self.over(rows).holds(condition))

    def column(self, field: syntax.Field) -> Texts | Quantity:
        """The field's values; raises QueryError for one that does not exist."""
        if not field.stat:
            if self.events is not None and field.name in EVENT_FIELDS:
                return self._event_column(field.name)
            if field.name in syntax.TEXT_FIELDS:
                return self.columns.text(field.name).at(self.nodes)
            if field.name in NUMBER_FIELDS:
                return Quantity(self.columns.number(field.name)[self.nodes].astype(np.float64), "1")
            if field.name in ("calls", "count"):
                return Quantity(self.columns.calls[self.nodes].astype(np.float64), "1")
            if field.name in ("self", "share", "per_step"):
                field = syntax.Field("time", field.name, field.position)
        if field.name == "self":
            return self._own_time(field)
        return self._metric(field)

    def _own_time(self, field: syntax.Field) -> Quantity:
        """`self.share` and `self.per_step`."""
        own = self._metric(syntax.Field("time", "self", field.position))
        return self._shared(own.values, own_stat(field, self.text), own.dimension, own.whole, field)

    def _related(self, relation: syntax.Relation) -> Mask:
        found = self.matching(relation.path)
        related = {"under": paths.below, "above": paths.above, "calls": paths.parents_of}[relation.name]
        return related(self.columns, found)[self.nodes]

    # values --------------------------------------------------------------------------------------------------------

    def _event_column(self, name: str) -> Texts | Quantity:
        events = self.columns.profile.events
        if name == "event":
            names = ["", *(str(EventKind(number)) for number in range(256))]
            return Texts(events["kind"][self.events].astype(np.int64) + 1, names)
        values = events[_EVENT_COLUMNS.get(name, name)][self.events].astype(np.float64)
        if name == "start":
            values = values - float(events["start_ns"].min(initial=np.iinfo(np.int64).max))
        return Quantity(values, _EVENT_UNITS.get(name, "1"))

    def _metric(self, field: syntax.Field) -> Quantity:
        info = metric_of(field, self.text)
        stat = stat_of(field, info, self.text)
        tree = self.columns.tree
        unit, factor = dimension(info)
        if stat in ("sum", "share", "per_step") and info.additive:
            total = self.columns.total(info.kind) * factor
            values = self.columns.below(info.kind)[self.nodes] * factor
            return self._shared(values, stat, unit, total, field)
        own = Measures(*(column[self.nodes] for column in vars(tree.exclusive(info.kind)).values()))
        whole = self.columns.total(info.kind) * factor if info.additive else None
        if stat in ("share", "per_step"):
            return self._shared(own.sum * factor, stat, unit, whole, field)
        return Quantity(statistic(own, stat) * (1.0 if stat == "count" else factor), _unit_of(stat, unit), whole)

    def _shared(self, values: Floats, stat: str, unit: str, total: float | None, field: syntax.Field) -> Quantity:
        if stat == "share":
            if total is None:
                raise self.error(f"{field.name} does not add up to a whole, so it has no share", field.position)
            return Quantity(values / total if total else np.zeros(len(values)), "%")
        if stat == "per_step":
            if not self.columns.steps:
                raise self.error("this profile has no steps: nothing in it repeats", field.position)
            return Quantity(values / self.columns.steps, unit)
        return Quantity(values, unit, total)

    def value(self, value: syntax.Value) -> Texts | Quantity | syntax.Text:
        if isinstance(value, syntax.Number):
            return Quantity(np.array(value.value), value.dimension)
        if isinstance(value, syntax.Text):
            return value
        if isinstance(value, syntax.Field):
            return self.column(value)
        left, right = self._quantity(value.left), self._quantity(value.right)
        return self._calculated(value, left, right)

    def _quantity(self, value: syntax.Value) -> Quantity:
        found = self.value(value)
        if not isinstance(found, Quantity):
            raise self.error("a number is needed here, not a text", value.position)
        return found

    def _calculated(self, value: syntax.Arithmetic, left: Quantity, right: Quantity) -> Quantity:
        ratio = {"%": "1"}
        one, other = ratio.get(left.dimension, left.dimension), ratio.get(right.dimension, right.dimension)
        if value.operator in "+-":
            if "any" not in (one, other) and one != other:
                raise self.error(f"{_named(one)} and {_named(other)} cannot be added or subtracted", value.position)
            result = left.values + right.values if value.operator == "+" else left.values - right.values
            return Quantity(result, right.dimension if one == "any" else left.dimension, left.whole or right.whole)
        if value.operator == "*":
            if one != "1" and other != "1":
                raise self.error(f"{_named(one)} times {_named(other)} has no unit", value.position)
            return Quantity(left.values * right.values, other if one == "1" else one, left.whole or right.whole)
        divided = np.divide(
            left.values,
            right.values,
            out=np.zeros(np.broadcast(left.values, right.values).shape),
            where=right.values != 0,
        )
        return Quantity(divided, "1" if one == other else one if other == "1" else f"{one}/{other}")

    # comparisons ---------------------------------------------------------------------------------------------------

    def _compared(self, compare: syntax.Compare) -> Mask:
        if isinstance(compare.left, syntax.Field) and compare.left.name == "device" and not compare.left.stat:
            return self._device(compare)
        left = self.value(compare.left)
        if isinstance(left, syntax.Text):
            raise self.error("a field is needed on the left of a comparison, not a text", compare.left.position)
        if isinstance(left, Texts):
            return self._text_compared(compare, left)
        if compare.operator == "~":
            raise self.error("only texts can be compared with a regular expression", compare.position)
        if compare.operator == "in":
            found = np.zeros(len(self.nodes), np.bool_)
            for value in compare.right:
                found |= self._number_compared("=", left, value)
            return found
        return self._number_compared(compare.operator, left, compare.right[0])

    def _number_compared(self, operator: str, left: Quantity, value: syntax.Value) -> Mask:
        right = self._quantity(value)
        values, others = left.values, right.values
        if right.dimension == "%" and left.dimension not in ("%", "1", "any"):
            if left.whole is None:
                raise self.error("a percentage needs a sum that is part of a whole on its left", value.position)
            values = values / left.whole if left.whole else np.zeros_like(values)
        elif not {left.dimension, right.dimension} <= {"%", "1", "any"} and left.dimension != right.dimension:
            plain = isinstance(value, syntax.Number) and right.dimension == "1"
            if not plain or float(value.value) != 0.0:  # type: ignore[union-attr]
                hint = f"; give it a unit, such as {'5ms' if left.dimension == 'ns' else '5MB'}" if plain else ""
                raise self.error(
                    f"{_named(left.dimension)} cannot be compared with {_named(right.dimension)}{hint}", value.position
                )
        result: Mask = np.broadcast_to(_ORDERS[operator](values, others), (len(self.nodes),))
        return result

    def _text_compared(self, compare: syntax.Compare, left: Texts) -> Mask:
        if compare.operator not in ("=", "!=", "~", "in"):
            raise self.error("texts can be compared with =, !=, ~ and in", compare.position)
        wanted = np.zeros(len(left.values), np.bool_)
        for value in compare.right:
            text = self._text_of(value)
            if compare.operator == "~":
                matches = re.compile(text).search
            else:
                matches = re.compile(paths.glob_regex(text), re.DOTALL).fullmatch
            ends = isinstance(compare.left, syntax.Field) and compare.left.name == "file" and compare.operator != "~"
            wanted |= np.array(
                [bool(matches(one) or (ends and matches(one.rpartition("/")[2]))) for one in left.values], np.bool_
            )
        found: Mask = wanted[left.codes]
        return ~found if compare.operator == "!=" else found

    def _text_of(self, value: syntax.Value) -> str:
        """A text, also one that is a single word without quotes."""
        if isinstance(value, syntax.Text):
            return value.value
        if isinstance(value, syntax.Field):
            return str(value)
        raise self.error("a text is needed here; put it in quotes", value.position)

    def _device(self, compare: syntax.Compare) -> Mask:
        if compare.operator not in ("=", "!=", "in"):
            raise self.error("device can be compared with =, != and in", compare.position)
        found = np.zeros(len(self.nodes), np.bool_)
        for value in compare.right:
            if isinstance(value, syntax.Number) and value.dimension == "1" and float(value.value).is_integer():
                found |= self.columns.on_device(int(value.value))[self.nodes]
            elif isinstance(value, syntax.Field | syntax.Text) and self._text_of(value).lower() == "cpu":
                found |= self.columns.number("device")[self.nodes] == -1
            else:
                raise self.error("a device is a number, or cpu", value.position)
        return ~found if compare.operator == "!=" else found


def metric_of(field: syntax.Field, text: str) -> MetricInfo:
    """The metric that a field names; raises QueryError."""
    info = find_metric(field.name)
    if info is None and field.name in EVENT_FIELDS:
        raise QueryError(
            f"{field.name!r} is a field of single events; begin the query with 'events'", text, field.position
        )
    if info is None:
        from difflib import get_close_matches

        known = [*syntax.TEXT_FIELDS, *NUMBER_FIELDS, "calls", "self", "share", *EVENT_FIELDS, *_metric_names()]
        near = get_close_matches(field.name, known, 3)
        hint = f"did you mean {' or '.join(near)}" if near else f"the fields are {', '.join(known)}"
        raise QueryError(f"there is no field or metric called {field.name!r}; {hint}", text, field.position)
    return info


def own_stat(field: syntax.Field, text: str) -> str:
    """The statistic of `self.share` and `self.per_step`; raises QueryError for others."""
    if field.stat not in ("share", "per_step"):
        raise QueryError("self has the statistics share and per_step", text, field.position + len("self."))
    return field.stat


def _metric_names() -> list[str]:
    return [str(kind) for kind in MetricKind]


def stat_of(field: syntax.Field, info: MetricInfo, text: str) -> str:
    """The statistic a field asks for, or the one its metric has by itself; raises QueryError."""
    if not field.stat:
        return "sum" if info.additive or (info.unit == "ns" and str(info.kind) != "launch_latency") else "mean"
    stat = _ALIASES.get(field.stat, field.stat)
    if stat not in STATS:
        raise QueryError(
            f"there is no statistic {field.stat!r}; the statistics are {', '.join(STATS)}",
            text,
            field.position + len(field.name) + 1,
        )
    return stat


def statistic(own: Measures, stat: str) -> Floats:
    """`count`, `sum`, `self`, `mean`, `min`, `max` or `std` of every row; 0 where nothing was measured."""
    there = own.count > 0
    if stat == "count":
        return own.count.astype(np.float64)
    if stat in ("sum", "self"):
        return own.sum.astype(np.float64)
    if stat in ("min", "max"):
        return np.where(there, getattr(own, stat), 0).astype(np.float64)
    count = np.maximum(own.count, 1)
    mean = own.sum / count
    if stat == "mean":
        return mean
    return np.sqrt(np.maximum(own.sum_squares / count - mean**2, 0.0))


def _unit_of(stat: str, unit: str) -> str:
    return "1" if stat == "count" else unit


def _named(dimension: str) -> str:
    return {"ns": "a time", "bytes": "a size", "1": "a plain number", "%": "a percentage"}.get(dimension, dimension)
