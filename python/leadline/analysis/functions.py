"""CPU time by function, from samples: what each function ran itself, and with all that it called.

A function that stands on a path more than once (recursion) counts once. Operators, regions and native frames are
functions too, so a line of Python and the operator that it calls are told apart.
"""

from __future__ import annotations

import re

import numpy as np

from leadline.analysis.columns import Mask, Rows, factorized, group_sums, nearest, preorder, subtree_sums
from leadline.analysis.rows import FunctionRow
from leadline.profiles import Tree
from leadline.schema import FrameKind

METRIC = "cpu_sample"
IMPORTLIB = "<frozen importlib._bootstrap"
"""Begins the files of the interpreter's import system."""
_AT_EXIT = re.compile(
    r"/(?:weakref\.py:finalize\._exitfunc|multiprocessing/util\.py:_exit_function|threading\.py:_shutdown"
    r"|concurrent/futures/(?:thread|process)\.py:_python_exit|logging/__init__\.py:shutdown)$"
)
_THAT_END = ("/weakref.py", "/util.py", "/threading.py", "/thread.py", "/process.py", "/logging/__init__.py")
"""Files of these functions: only names in them are looked at."""
_ADDRESS = re.compile(r"\+0x[0-9a-f]+$")
_PLACES = (FrameKind.ROOT, FrameKind.PROCESS, FrameKind.MODULE, FrameKind.PHASE)
"""Frames that say where something runs and are no functions themselves."""


def function_of_line(tree: Tree, line: Rows) -> Rows:
    """For each of these nodes the number of the function that its line is in, by file and name; -1 for -1 (no node)."""
    frames, frame = tree.frames, tree.frame_of[np.maximum(line, 0)]
    key = frames["file"].astype(np.int64)[frame] * (len(tree.tables.strings) + 1) + frames["name"][frame]
    return np.where(line >= 0, key, -1)


def functions(tree: Tree, kept: Mask) -> list[FunctionRow]:
    """Every function with samples, the largest own time first, ties by name. Empty where none were taken."""
    measured = tree.exclusive(METRIC)
    own = np.where(kept, measured.sum, 0)
    if not own.any():
        return []
    unnamed = _unnamed(tree)
    function_of, number = _functions(tree, unnamed)
    whole_below = subtree_sums(tree.shape, own)
    whole = _once(tree, function_of, number, whole_below)
    holder = _nearest_function(tree)
    of_node = function_of[holder]
    selves = group_sums(of_node, own, number)
    samples = group_sums(of_node, np.where(kept, measured.count, 0), number)
    best = _hottest_nodes(tree, holder, of_node, own, whole_below)
    rows = []
    for one in np.flatnonzero(whole > 0).tolist():
        node = tree.node(int(best[one]))
        if node.kind == str(FrameKind.THREAD) and not selves[one]:
            continue
        source, line = node.detail.get("source"), node.detail.get("line")  # of native frames with debug information
        place = (source, line) if isinstance(source, str) and isinstance(line, int) else (node.file, node.line)
        rows.append(
            FunctionRow(
                node.kind,
                f"[{node.file.rpartition('/')[2]}]" if unnamed[tree.frame_of[node.row]] else node.name,
                *place,
                int(selves[one]),
                int(whole[one]),
                int(samples[one]),
            )
        )
    return sorted(rows, key=lambda row: (-row.self_ns, -row.total_ns, row.name))


def imports(tree: Tree) -> Mask:
    """Nodes at or below the interpreter's import system, which runs once and crowds a short program's samples."""
    frames = np.unique(tree.frames["file"])
    files = [row for row in frames.tolist() if tree.tables.strings[row].startswith(IMPORTLIB)]
    importing = np.isin(tree.frames["file"], np.array(files, np.int64))
    mask: Mask = nearest(tree.shape, importing[tree.frame_of]) >= 0
    return mask


def ending(tree: Tree) -> Mask:
    """Nodes at or below what the interpreter calls when a program has ended: finalizers, ends of pools and logs."""
    frames, text = tree.frames, tree.tables.strings
    files = [row for row in np.unique(frames["file"]).tolist() if text[row].endswith(_THAT_END)]
    ends = np.zeros(len(frames["file"]), np.bool_)
    for one in np.flatnonzero(np.isin(frames["file"], np.array(files, np.int64))).tolist():
        ends[one] = bool(_AT_EXIT.search(f"{text[int(frames['file'][one])]}:{text[int(frames['name'][one])]}"))
    mask: Mask = nearest(tree.shape, ends[tree.frame_of]) >= 0
    return mask


def _is_function(tree: Tree) -> Mask:
    mask: Mask = ~np.isin(tree.kinds, [int(kind) for kind in _PLACES])
    return mask


def _unnamed(tree: Tree) -> Mask:
    """Native frames that have an address and no name."""
    frames = tree.frames
    native = frames["kind"] == int(FrameKind.NATIVE)
    names = np.unique(frames["name"][native])
    found = [row for row in names.tolist() if _ADDRESS.search(tree.tables.strings[row])]
    mask: Mask = native & np.isin(frames["name"], np.array(found, np.int64))
    return mask


def _functions(tree: Tree, unnamed: Mask) -> tuple[Rows, int]:
    """For every node the number of its frame's function: the same for all lines of one, and for all that has no name in
    one file."""
    frames = tree.frames
    of_frame = factorized(
        frames["kind"].astype(np.int64),
        np.where(unnamed, -1, frames["name"].astype(np.int64)),
        np.where(frames["kind"] == int(FrameKind.THREAD), 0, frames["file"].astype(np.int64)),
        frames["first_line"].astype(np.int64),
    )
    return of_frame[tree.frame_of], int(of_frame.max(initial=-1)) + 1


def _nearest_function(tree: Tree) -> Rows:
    """For every node the row of the function that it belongs to: its own, or that around a phase or module."""
    found = nearest(tree.shape, _is_function(tree))
    return np.where(found >= 0, found, 0)


def _once(tree: Tree, function_of: Rows, number: int, whole: Rows) -> Rows:
    """Sums of `whole` over the nodes of each function that have no node of it above them."""
    rows = np.flatnonzero(_is_function(tree) & (whole > 0))
    outermost = _outermost(tree, function_of, rows)
    return group_sums(function_of[rows[outermost]], whole[rows[outermost]], number)


def _outermost(tree: Tree, function_of: Rows, rows: Rows) -> Mask:
    place, size = preorder(tree.shape)
    order = np.lexsort((place[rows], function_of[rows]))
    ordered = rows[order]
    offset = function_of[ordered] * (tree.shape.size + 1)
    ended = np.maximum.accumulate(place[ordered] + size[ordered] + offset) if len(ordered) else offset
    first = np.ones(len(rows), np.bool_)
    first[order[1:]] = place[ordered][1:] + offset[1:] >= ended[:-1]
    return first


def _hottest_nodes(tree: Tree, holder: Rows, of_node: Rows, own: Rows, whole: Rows) -> Rows:
    """Per function a node of the line with most of its own time; where none is its own, of that which called most."""
    best = np.zeros(int(of_node.max(initial=0)) + 1, np.int64)
    for values, where in ((whole, _is_function(tree)), (own, np.ones(len(tree), np.bool_))):
        rows = np.flatnonzero((values > 0) & where)
        if not len(rows):
            continue
        lines = factorized(of_node[rows], tree.frame_of[holder[rows]].astype(np.int64))
        _, first = np.unique(lines, return_index=True)
        order = np.argsort(group_sums(lines, values[rows], len(first)), kind="stable")  # the largest is written last
        best[of_node[rows[first[order]]]] = holder[rows[first[order]]]
    return best
