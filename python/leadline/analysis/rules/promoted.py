"""Part of `slow_type`: float32 tensors that meet one of float64, so that all that follows is computed in float64."""

from __future__ import annotations

import json

import numpy as np

from leadline.analysis.columns import Mask
from leadline.analysis.rules.base import Case, Finding, Severity
from leadline.schema import FrameKind
from leadline.units import percent


def promoted(case: Case, rule: str, learn_more: str, share_from: float) -> list[Finding]:
    """Where types are known (`--shapes`, `leadline why`): the line that mixes them, and what is in double behind it."""
    double, mixed = _doubles(case)
    mixed &= case.loop.inside & ~case.in_phase("backward")
    ns = int(case.time[double & case.loop.inside].sum())
    share = case.share(ns)
    if share < share_from or not mixed.any():
        return []
    rows = np.flatnonzero(mixed & (case.time > 0))
    order = rows[np.argsort(-case.time[rows], kind="stable")]
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
        )
    ]


def _doubles(case: Case) -> tuple[Mask, Mask]:
    """Nodes of operators with a float64 tensor among their inputs; those that have one of float32 as well."""
    frames, text = case.tree.frames, case.tree.tables.strings
    double, mixed = (np.zeros(len(frames["kind"]), np.bool_) for _ in range(2))
    for frame in np.flatnonzero(frames["kind"] == int(FrameKind.OPERATOR)).tolist():
        detail = text[int(frames["detail"][frame])]
        if '"double"' in detail:
            types = _tensors(detail)
            double[frame] = "double" in types
            mixed[frame] = {"double", "float"} <= types
    return double[case.tree.frame_of], mixed[case.tree.frame_of]


def _tensors(detail: str) -> set[str]:
    """Types of the inputs that have a shape; a single number promotes nothing."""
    try:
        told = json.loads(detail)
        pairs = zip(told["shapes"], told["types"], strict=False)
        return {kind for shape, kind in pairs if shape and isinstance(kind, str)}
    except (ValueError, KeyError, TypeError):
        return set()
