"""What compiled programs hold in their temporary memory when it is fullest, by XLA's plan, on the user's lines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from leadline.analysis import Analysis
from leadline.analysis.columns import Mask
from leadline.report.model import CompiledProgram, HeldBuffer
from leadline.report.paths import PathWords
from leadline.schema import FrameKind

MOST = 3
"""Programs that are shown: those with the most temporary memory."""
SMALLEST_BYTES = 64 << 10
"""Of temporary memory; what has less is not worth a line."""


def compiled_programs(analysis: Analysis, words: PathWords, kept: Mask) -> tuple[CompiledProgram, ...]:
    """Those with the most temporary memory, largest first; none where XLA does not tell."""
    tree = analysis.tree
    found = []
    for frame in np.flatnonzero(tree.frames["kind"] == int(FrameKind.OPERATOR)).tolist():
        if detail := _detail(tree.text("detail", frame)):
            rows = np.flatnonzero(kept & (tree.frame_of == frame)).tolist()
            if rows:
                found.append((detail["planned_bytes"], detail["temporaries"], tree.text("name", frame), rows))
    found.sort(key=lambda one: (-int(one[0].get("temporaries", 0)), one[3][0]))
    return tuple(_program(analysis, words, *one) for one in found[:MOST])


def _detail(text: str) -> dict[str, Any]:
    """Of a program with a plan of enough temporary memory; else empty."""
    if '"temporaries"' not in text:
        return {}
    try:
        detail = json.loads(text)
        planned, held = detail["planned_bytes"], detail["temporaries"]
        [(str(name), int(size)) for name, size in held["largest"]]
        return detail if int(planned.get("temporaries", 0)) >= SMALLEST_BYTES else {}
    except (ValueError, TypeError, KeyError, AttributeError):  # written by somebody else
        return {}


def _program(
    analysis: Analysis, words: PathWords, planned: dict[str, Any], held: dict[str, Any], name: str, rows: list[int]
) -> CompiledProgram:
    tree = analysis.tree
    wanted = {str(name) for name, _ in held["largest"]}
    makers: dict[str, int] = {}
    for row in _inside(analysis, rows):
        made = tree.node(row).detail.get("hlo")
        if made in wanted:
            makers.setdefault(made, row)
    buffers = [
        HeldBuffer(
            int(size),
            tree.node(makers[made]).name if made in makers else str(made).partition(".")[0],
            words.place(makers[made]) if made in makers else None,
            makers.get(made),
        )
        for made, size in held["largest"]
    ]
    return CompiledProgram(
        name=name,
        place=words.place(rows[0]),
        node=rows[0],
        arguments_bytes=int(planned.get("arguments", 0)),
        results_bytes=int(planned.get("results", 0)),
        temporaries_bytes=int(planned.get("temporaries", 0)),
        at_peak=bool(held.get("at_peak")),
        buffers=tuple(buffers),
    )


def _inside(analysis: Analysis, rows: list[int]) -> Iterator[int]:
    """Operators below the places of a program."""
    tree = analysis.tree
    for row in rows:
        for node in tree.node(row).walk():
            if node.row != row and node.kind == "operator":
                yield node.row
