"""What was measured of a place: how often it runs, how that develops, on what, and whether it was known before."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from leadline.analysis.case import Case
from leadline.analysis.columns import Rows, nearest
from leadline.analysis.rules.by_shape import PRODUCTS, Shape, broadcast, tensor_shapes
from leadline.analysis.rules.computed_again import repeated_part
from leadline.analysis.rules.place.at import At, at_line, cost_of, loop_of
from leadline.analysis.rules.place.fact import Fact
from leadline.analysis.seldom import runs_of
from leadline.analysis.workclass import classes_of_nodes
from leadline.schema import FrameKind
from leadline.units import duration, how_often, percent, times

_OFTEN = 4
"""Calls a step for each module: a layer is called once or twice, an update of all parameters is the optimizer's."""
_TINY_NS, _TINY = 30_000.0, 4096
"""A call that takes no longer, on no more elements, is mostly its dispatch."""
_GROWN = 1.5
_UNLIKE, _MOSTLY = 3, 0.5
"""So few of the calls take so much of the time: their mean tells nothing."""
_FEWEST_SIZES = 3
_AGAIN, _NEARLY_ALL = 0.5, 0.9
_BROADCAST, _LARGE = 8, 1 << 16
_TYPES: Mapping[str, str] = {
    "c10::Half": "float16",
    "c10::BFloat16": "bfloat16",
    "double": "float64",
    "float": "float32",
    "long int": "int64",
    "int": "int32",
    "bool": "bool",
    "unsigned char": "uint8",
    "c10::complex<float>": "complex64",
    "c10::complex<double>": "complex128",
}
_SELDOM = frozenset(("float16", "bfloat16", "float64", "complex64", "complex128"))
_COPIES = frozenset(("aten::copy_", "aten::_to_copy"))
_ENOUGH_SAMPLES = 20


def measured(case: Case, at: At, ns: float) -> list[Fact]:
    """All facts of this file."""
    found = [*_over_run(case, at)]
    seldom = _seldom(case, at)
    found += seldom
    if at.operator:
        again = _again(case, at)
        said = any("is part of" in one.text for one in again)
        found += [*([] if seldom else _often(case, at, ns)), *_inputs(case, at), *again]
        found += [] if said else _part_of(case, at)
    return found


def _steps(case: Case) -> int:
    loop = loop_of(case)
    return loop.steps if loop is not None else 0


def _calls(case: Case, rows: Rows) -> int:
    return int(case.tree.exclusive("call_time").count[rows].sum())


def _begun(case: Case, rows: Rows) -> Rows:
    """Without those that an operator of the same name calls: `aten::sort` in `aten::sort` is one call."""
    parent, frame = np.maximum(case.tree.shape.parent, 0), case.tree.frames["name"][case.tree.frame_of]
    same = (frame[parent[rows]] == frame[rows]) & (case.tree.kinds[parent[rows]] == int(FrameKind.OPERATOR))
    begun: Rows = rows[~same]
    return begun


def _often(case: Case, at: At, ns: float) -> list[Fact]:
    steps, number = _steps(case), _calls(case, _begun(case, at.mine))
    if not steps or not number:
        return []
    each = number / steps
    modules = max(len(np.unique(case.analysis.scopes.module[at.mine])), 1)
    takes = _takes(case, at, ns, each)
    loop = case.inner_loop(at.row) if each >= _OFTEN * modules else None
    where = f" in the loop at line {loop[1].first}" if loop is not None and loop[0] == at.file else ""
    if not where and modules > 1 and abs(each / modules - round(each / modules)) < 0.05:
        where = f" for {modules:,} modules"
    if ns > 0 and ns / each < _TINY_NS and each >= _OFTEN and _largest(case, at) <= _TINY:
        takes = f", {duration(ns / each)} each on at most {max(_largest(case, at), 1):,} elements"
    if times(each) == "0":
        return [Fact("often", f"is called {number:,} times in {steps:,} steps", 0.2)]
    return [Fact("often", f"is called {how_often(each)} a step{where}{takes}", _tells_often(each / modules))]


def _takes(case: Case, at: At, ns: float, each: float) -> str:
    """The mean time of a call; if few calls take most of the time, the mean of these, by input shapes or by module."""
    if ns <= 0 or each < 1:
        return ""
    mine = _begun(case, at.mine)
    details, module = case.tree.frames["detail"][case.tree.frame_of], case.analysis.scopes.module
    named = case.tree.frame_of[np.maximum(module, 0)]
    inputs = details[mine] == details[at.row]
    layer = (module[mine] >= 0) & (named[mine] == named[at.row])
    cost = cost_of(case)
    whole = float(cost[mine].sum())
    for alike, which in ((inputs, ""), (layer, case.name(int(module[at.row])) if module[at.row] >= 0 else "")):
        some = float(cost[mine[alike]].sum())
        number = _calls(case, mine[alike]) / max(_steps(case), 1)
        if not _shapes(case, at.row) or not 0 < number <= each / _UNLIKE or some < _MOSTLY * whole:
            continue
        taken = duration(ns * some / whole / number)
        one = times(number) == "1"
        those = f"{'one' if one else times(number)} of them{which and f' ({which})'}, {taken}{'' if one else ' each'}"
        return f", {percent(some / whole)} of its time in {those}"
    return f", {duration(ns / each)} each"


def _seldom(case: Case, at: At) -> list[Fact]:
    """Of a line that not every step comes to."""
    steps = _steps(case)
    row = int(nearest(case.tree.shape, case.rare_lines)[at.row]) if steps else -1
    node = case.tree.node(row) if row >= 0 else None
    if node is None or (node.file, node.line) != (at.file, at.line) or not (number := runs_of(case, row)):
        return []
    return [Fact("often", f"happens in {number:,} of {steps:,} steps", 0.6)]


def _tells_often(number: float) -> float:
    """Of so many calls in a step for each module."""
    if number < 2 * _OFTEN:
        return 0.18 if number < _OFTEN else 0.4
    return 0.55 if number < 4 * _OFTEN else 0.9 - 0.3 * 4 * _OFTEN / number


def _shapes(case: Case, row: int) -> list[Shape]:
    """Of its tensors, without a result that is yet to be allocated."""
    return [one for one in tensor_shapes(case, row) if one != (0,)]


def _types(case: Case, row: int) -> list[str]:
    recorded = case.tree.node(row).detail.get("types")
    texts = [one for one in recorded if isinstance(one, str)] if isinstance(recorded, list) else []
    return [_TYPES[one] for one in texts if one in _TYPES]


def _largest(case: Case, at: At) -> int:
    """Elements of the largest input; a large number where shapes were not recorded."""
    sizes = [math.prod(one) for row in at.mine[:50].tolist() for one in _shapes(case, row)]
    return max(sizes, default=1 << 62)


def _inputs(case: Case, at: At) -> list[Fact]:
    """Types and shapes of the calls that take most."""
    shapes, types = _shapes(case, at.row), _types(case, at.row)
    found = []
    if at.what in _COPIES and len(types) > 1 and types[0] != types[1]:
        source, target = (types[1], types[0]) if at.what == "aten::copy_" else (types[0], types[1])
        found.append(Fact("type", f"converts {source} to {target}", 0.5))
    elif types and types[0] in _SELDOM:
        found.append(Fact("type", f"computes in {types[0]}", 0.4))
    product = classes_of_nodes(case.tree)[at.row] in PRODUCTS
    result = broadcast(shapes) if len(shapes) > 1 and not product else ()
    largest = max(map(math.prod, shapes), default=0)
    if math.prod(result) >= max(_LARGE, _BROADCAST * largest) and largest:
        both = sorted(shapes[:2], key=len)
        text = f"broadcasts {list(both[0])} and {list(both[1])} to {list(result)}"
        found.append(Fact("shape", text, 1 - largest / math.prod(result)))
    elif shapes and not at.what.startswith("autograd::"):
        found.append(Fact("shape", f"works on {' and '.join(str(list(one)) for one in _two_largest(shapes))}", 0.15))
    return found


def _two_largest(shapes: list[Shape]) -> list[Shape]:
    """In their order: the factors of a product, and not the bias beside them."""
    largest = sorted(range(len(shapes)), key=lambda at: (-math.prod(shapes[at]), at))[:2]
    return [shapes[at] for at in sorted(largest)]


def _part_of(case: Case, at: At) -> list[Fact]:
    """The operator that Python called, where that is another one."""
    outer = int(case.analysis.scopes.outer[at.row])
    if outer < 0 or outer == at.row or case.tree.kinds[outer] != int(FrameKind.OPERATOR):
        return []
    name = case.name(outer).rpartition(": ")[2]
    if not name or name == at.what or re.search(r"Backward\d*$", name):  # of a backward pass the phase says it
        return []
    return [Fact("part of", f"is part of {name}", 0.2)]


def _again(case: Case, at: At) -> list[Fact]:
    """Calls from Python with inputs that they had before, by the numbers that the process gives to values."""
    if not _steps(case):
        return []
    outer = np.unique(case.analysis.scopes.outer[at.mine])
    outer = outer[outer >= 0]
    part, operators = repeated_part(case)
    outer = outer[operators[outer]]
    calls = _calls(case, outer)
    share = float((part * case.calls)[outer].sum()) / calls if calls else 0.0
    if share < _AGAIN or calls < 2:
        return []
    names = {case.name(row) for row in outer.tolist()}
    whose = f"is part of {names.pop()}, which gets" if len(names) == 1 and at.what not in names else "gets"
    often = "nearly all" if share >= _NEARLY_ALL else "most"
    return [Fact("again", f"{whose} inputs that it had before in {often} of its calls", share)]


def _over_run(case: Case, at: At) -> list[Fact]:
    return _sizes(case, at) or _parts_of_run(case, at)


def inputs_grow(case: Case, file: str, line: int, what: str) -> bool | None:
    """Whether the inputs of an operator on a line become larger from call to call; None where no shapes were recorded.
    Of a node of autograd, which has none, by the operators that it calls."""
    place = at_line(case, file, line, what)
    if place is None or not place.operator:
        return None
    rows = place.mine
    if not any(_shapes(case, row) for row in rows.tolist()):
        below = [one for row in rows.tolist() for one in case.tree.shape.children(row).tolist()]
        rows = np.array([one for one in below if _shapes(case, one)], np.int64)
    if not len(rows):
        return None
    names = case.tree.frames["name"][case.tree.frame_of[rows]]
    return any(_rising([shape for shape, _ in _order(case, rows[names == name])]) for name in np.unique(names))


def _order(case: Case, rows: Rows) -> list[tuple[Shape, int]]:
    """The largest inputs by size, in the order in which they came, with the calls of each."""
    calls = case.tree.exclusive("call_time").count
    sizes: dict[int, tuple[Shape, int]] = {}
    for row in sorted(rows.tolist()):
        shapes = _shapes(case, row)
        if shapes and calls[row]:
            shape = max(shapes, key=math.prod)
            size = math.prod(shape)
            sizes[size] = sizes.get(size, (shape, 0))[0], max(int(calls[row]), sizes.get(size, (shape, 0))[1])
    return list(sizes.values())


def _rising(order: list[Shape]) -> bool:
    sizes = [math.prod(one) for one in order]
    if len(sizes) < _FEWEST_SIZES or sizes[-1] < _GROWN * sizes[0]:
        return False
    return sum(later > before for before, later in itertools.pairwise(sizes)) >= 0.9 * (len(sizes) - 1)


def _sizes(case: Case, at: At) -> list[Fact]:
    """Inputs that become larger from call to call: nodes of other shapes stand in the order in which they came."""
    if not at.operator:
        return []
    user, module = case.analysis.scopes.user, case.analysis.scopes.module
    found = _order(case, at.mine[(user[at.mine] == user[at.row]) & (module[at.mine] == module[at.row])])
    shapes = [one for one, _ in found]
    if len(shapes) < _FEWEST_SIZES or not all(_changed(shapes[0], one) <= 1 for one in shapes):
        return []  # calls of one line that do different things
    if not _rising(shapes):
        low, high = min(shapes, key=math.prod), max(shapes, key=math.prod)
        text = f"works on {len(shapes):,} sizes of inputs, from {list(low)} to {list(high)}"
        return [Fact("shape", text, 0.3)]
    steps = max(_steps(case), 1)
    each_step = np.median([number for _, number in found]) >= 0.8 * steps
    over = "within each step" if each_step and steps > 1 else "over the run"
    text = f"works on inputs that grow from {list(shapes[0])} to {list(shapes[-1])} {over}"
    return [Fact("shape", text, 1 - math.prod(shapes[0]) / math.prod(shapes[-1]))]


def _changed(one: Shape, other: Shape) -> int:
    """In how many dimensions two shapes differ; all of them where they have different numbers of them."""
    if len(one) != len(other):
        return max(len(one), len(other)) + 1
    return sum(a != b for a, b in zip(one, other, strict=True))


def _parts_of_run(case: Case, at: At) -> list[Fact]:
    """Calls and time early and late in the run, where they rose from part to part."""
    row = growth_at(case.profile.meta.get("growth"), at.file, at.line, at.what if at.operator else "")
    if row is None:
        return []
    steps, calls, ns = row["steps"], row["calls"], row["ns"]
    if at.operator and min(steps[0], steps[-1]) > 0 and ever_more(row):
        rates = calls[0] / steps[0], calls[-1] / steps[-1]
        if rates[1] >= _GROWN * rates[0] > 0:
            text = f"is called {times(rates[0])} times a step early in the run and {times(rates[1])} times late"
            return [Fact("often", text, 1 - rates[0] / rates[1])]
    if at.operator and ever_dearer(row):
        first, last = ns[0] / max(calls[0], 1), ns[-1] / max(calls[-1], 1)
        text = f"takes {duration(first)} a call early in the run and {duration(last)} late"
        return [Fact("shape", text, 1 - first / last)]
    if not at.operator and min(steps[0], steps[-1]) > 0 and min(calls[0], calls[-1]) >= _ENOUGH_SAMPLES:
        rate = [taken / number for taken, number in zip(ns, steps, strict=False) if number]
        if all(later > 1.2 * before > 0 for before, later in itertools.pairwise(rate)) and rate[-1] > _GROWN * rate[0]:
            text = f"takes {duration(rate[0])} of CPU time a step early in the run and {duration(rate[-1])} late"
            return [Fact("shape", text, 1 - rate[0] / rate[-1])]
    return []


def growth_at(growth: object, file: str, line: int, what: str) -> Mapping[str, Any] | None:
    """The row of `meta["growth"]` for a place, where it has at least two parts of the run."""
    for row in growth if isinstance(growth, list) else ():
        if isinstance(row, dict) and (row.get("file"), row.get("line"), row.get("what")) == (file, line, what):
            parts = [row.get(name) for name in ("steps", "calls", "ns")]
            return row if all(isinstance(one, list) and len(one) >= 2 for one in parts) else None
    return None


def ever_more(row: Mapping[str, Any]) -> bool:
    """Whether each part of the run has more calls a step than the one before."""
    rates = [calls / max(steps, 1) for calls, steps in zip(row["calls"], row["steps"], strict=False)]
    return all(later > 1.2 * before for before, later in itertools.pairwise(rates))


def ever_dearer(row: Mapping[str, Any]) -> bool:
    """Whether a call takes much longer in each part of the run than in the one before."""
    calls, ns = row.get("calls"), row.get("ns")
    if not isinstance(calls, list) or not isinstance(ns, list):
        return False
    each = [taken / max(number, 1) for number, taken in zip(calls, ns, strict=False)]
    return len(each) > 2 and all(later > 1.5 * before > 0 for before, later in itertools.pairwise(each))
