"""Part of `slow_type`: float32 tensors that meet one of float64, so that all that follows is computed in float64.

Where the function asks for float64 itself, it is meant: then only its cost is stated, without a remedy.
"""

from __future__ import annotations

import ast
import json

import numpy as np

from leadline.analysis.calls_in_source import name_of
from leadline.analysis.columns import Mask, Rows
from leadline.analysis.measurable import NO_FIX
from leadline.analysis.origin import Origin, origin
from leadline.analysis.rules.base import Case, Finding, Severity
from leadline.schema import FrameKind
from leadline.units import percent

_CONVERTS = ("aten::to", "aten::_to_copy", "aten::type_as", "aten::copy")
"""Operators that are given both types because they turn one into the other."""
_DOUBLE = frozenset(("float64", "double", "DoubleTensor"))


def promoted(case: Case, rule: str, learn_more: str, share_from: float) -> list[Finding]:
    """Where types are known (`--shapes`, `leadline why`): the line that mixes them, and what is in double behind it."""
    double, mixed = _doubles(case)
    mixed &= case.loop.inside & ~case.in_phase("backward")
    ns = int(case.time[double & case.loop.inside].sum())
    share = case.share(ns)
    if share < share_from or not mixed.any():
        return []
    rows = np.flatnonzero(mixed & (case.time > 0))
    rows = rows[np.argsort(-case.time[rows], kind="stable")]
    order = rows[[not _is_meant(case, row) for row in rows.tolist()]]
    if not len(order):
        return [_cost(case, rule, learn_more, rows, share)]
    return [
        Finding(
            rule,
            Severity.WARNING,
            f"Float32 meets float64 here, and {percent(share)} of the step is computed in double precision",
            case.gain(ns, (0.2, 0.4, 0.6), "bound: twice the bytes and half the vector width"),
            tuple(order[:20].tolist()),
            case.lines(order.tolist(), 3),
            ("an operator on both gives float64, and so does all that uses its result",),
            "Make the float64 tensor float32 where it is made: NumPy's numbers are float64 by default "
            "(torch.from_numpy(x).float(), x.astype(np.float32)).",
            learn_more,
            share,
            fix=NO_FIX,  # autocast leaves doubles as they are
        )
    ]


def _cost(case: Case, rule: str, learn_more: str, rows: Rows, share: float) -> Finding:
    """What it costs, where the source asks for float64."""
    return Finding(
        rule,
        Severity.INFO,
        f"{percent(share)} of the step is computed in float64, as this function asks",
        case.no_gain("float64 is what the function asks for"),
        tuple(rows[:20].tolist()),
        case.lines(rows.tolist(), 3),
        ("a float64 takes twice the memory of a float32 and half the vector width",),
        "Keep float64 where its precision is needed, and compute what stays the same once, before the loop.",
        learn_more,
        share,
    )


def _is_meant(case: Case, row: int) -> bool:
    """Whether the function around the user's line of a node names float64: `dtype=torch.float64`, `.double()`."""
    line = case.line(row)
    source = case.sources.of(line.file) if line is not None and origin(line.file) == Origin.USER else None
    if line is None or source is None:
        return False
    function = source.function(line.line)
    if function is source.tree:  # top level: all of the program is no function, but what the line says counts
        return any(word in source.text(line.line) for word in _DOUBLE)
    return function is not None and any(_names_double(node) for node in ast.walk(function))


def _names_double(node: ast.AST) -> bool:
    if isinstance(node, ast.keyword):
        value = node.value
        return node.arg == "dtype" and isinstance(value, ast.Constant) and value.value in _DOUBLE
    return isinstance(node, ast.Attribute | ast.Name) and name_of(node) in _DOUBLE


def _doubles(case: Case) -> tuple[Mask, Mask]:
    """Nodes of operators with a float64 tensor among their inputs; those that have one of float32 as well."""
    frames, text = case.tree.frames, case.tree.tables.strings
    double, mixed = (np.zeros(len(frames["kind"]), np.bool_) for _ in range(2))
    for frame in np.flatnonzero(frames["kind"] == int(FrameKind.OPERATOR)).tolist():
        detail = text[int(frames["detail"][frame])]
        if '"double"' in detail:
            types = _tensors(detail)
            double[frame] = "double" in types
            name = text[int(frames["name"][frame])]
            converts = name in _CONVERTS or name.endswith("_")  # the result of `a.add_(b)` is of the type of `a`
            mixed[frame] = {"double", "float"} <= types and not converts
    return double[case.tree.frame_of], mixed[case.tree.frame_of]


def _tensors(detail: str) -> set[str]:
    """Types of the inputs that have a shape; a single number promotes nothing."""
    try:
        told = json.loads(detail)
        pairs = zip(told["shapes"], told["types"], strict=False)
        return {kind for shape, kind in pairs if shape and isinstance(kind, str)}
    except (ValueError, KeyError, TypeError):
        return set()
