"""The trees of several profiles as one: rows of the aligned tree are paths of names.

A frame's key is its kind and qualified name; nameless code (`<module>`, `<lambda>`) adds the file's name, a process is
its rank, the program that was started, or else its command without folders, numbers in thread names do not count.
Lines, pids and folders are no part of it, so moved code stays where it is. Siblings with one key are one row. What one
side alone has, below a row of both, is matched with what the other side alone has there where the names below agree:
that is a renamed function or module. Its old name is nowhere on side B, its new one nowhere on side A, and calls below
it were counted: what samples met on one side only is not gone on the other.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass
from leadline.profiles import Profile
from leadline.profiles.rollup import Shape, subtree_sums
from leadline.schema import FrameKind

Rows = NDArray[np.int64]

_NUMBER = re.compile(r"\d+")
_MOST_RENAMES = 2_000
_ROUNDS = 4
_ALIKE = 0.5
_RENAMED_KINDS = frozenset((FrameKind.PYTHON, FrameKind.MODULE, FrameKind.NATIVE, FrameKind.REGION))

Key = tuple[int, str, str]
"""Kind, name, and file or class where they belong to the identity."""


@dataclass(frozen=True)
class Aligned:
    """`row_of[i][n]`: row of node n of profile i. Parents have smaller rows than their children. `renamed`: for a row
    of both sides, the key it has on side B where that is another."""

    keys: list[Key]
    key_of: Rows
    shape: Shape
    row_of: list[Rows]
    renamed: dict[int, Key]

    def path(self, row: int) -> list[int]:
        """Rows from below the root to `row`."""
        rows = []
        while row > 0:
            rows.append(row)
            row = int(self.shape.parent[row])
        return rows[::-1]


def align(profiles: Sequence[Profile], side_b: Sequence[bool]) -> Aligned:
    """One tree for all of `profiles`; `side_b` says which of them are on the second side."""
    known: dict[Key, int] = {}
    keys = [_keys(profile, known) for profile in profiles]
    listed = list(known)
    renamed: dict[tuple[int, ...], Key] = {}
    for _ in range(_ROUNDS):
        parent, key_of, row_of = _joined(profiles, keys)
        shape = Shape(parent)
        sides = _sides(row_of, side_b, len(parent))
        sides[~_counted(profiles, row_of, len(parent))] = 0
        pairs = _renamed(shape, key_of, listed, sides)
        if not pairs:
            break
        for old, new in pairs.items():
            renamed[_names(shape, key_of, old)] = listed[key_of[new]]
            for place, rows in enumerate(row_of):
                keys[place] = np.where(rows == new, key_of[old], keys[place])
    else:
        parent, key_of, row_of = _joined(profiles, keys)
        shape = Shape(parent)
    found: dict[int, Key] = {}
    if renamed:
        wanted = {chain[-1] for chain in renamed}
        for row in np.flatnonzero(np.isin(key_of, list(wanted))).tolist():
            key = renamed.get(_names(shape, key_of, row))
            if key is not None:
                found[row] = key
    return Aligned(listed, key_of, shape, row_of, found)


def _names(shape: Shape, key_of: Rows, row: int) -> tuple[int, ...]:
    chain = []
    while row >= 0:
        chain.append(int(key_of[row]))
        row = int(shape.parent[row])
    return tuple(chain[::-1])


def _keys(profile: Profile, known: dict[Key, int]) -> Rows:
    """The number of every node's key."""
    tree = profile.tree
    frames = tree.frames
    process = {int(tree.frame_of[one.node.row]): one for one in profile.processes}
    numbers = np.empty(len(frames["kind"]), np.int64)
    kinds, names, files, modules = (frames[name].tolist() for name in ("kind", "name", "file", "module"))
    text = tree.tables.strings
    for row, kind in enumerate(kinds):
        name = text[names[row]]
        extra = ""
        if kind == FrameKind.PYTHON:
            extra = text[files[row]].rpartition("/")[2] if name.startswith("<") else ""
        elif kind == FrameKind.MODULE:
            extra = text[modules[row]]
        elif kind == FrameKind.THREAD:
            name = _NUMBER.sub("*", name)
        elif kind == FrameKind.PROCESS:
            known_as = process.get(row)
            rank = -1 if known_as is None else known_as.rank
            if rank >= 0:
                name = f"rank {rank}"
            elif known_as is not None and known_as.row == 0:
                name = "the program"  # however it was started; other arguments are told apart from any path
            else:
                name = " ".join(word.rpartition("/")[2] for word in name.split())
        numbers[row] = known.setdefault((kind, name, extra), len(known))
    return numbers[tree.frame_of]


def _joined(profiles: Sequence[Profile], keys: Sequence[Rows]) -> tuple[NDArray[np.int32], Rows, list[Rows]]:
    """Level by level: rows with one parent and one key are one row. Exact, no hashing."""
    row_of = [np.zeros(len(one), np.int64) for one in keys]
    most = max(int(one.max(initial=0)) for one in keys) + 1
    parents: list[Rows] = [np.full(1, -1, np.int64)]
    names: list[Rows] = [keys[0][:1]]
    known = 1
    deepest = max(len(profile.tree.shape.level_offsets) - 1 for profile in profiles)
    for level in range(1, deepest):
        here: list[Rows] = []
        for profile in profiles:
            shape = profile.tree.shape
            bounds = shape.level_offsets
            inside = level < len(bounds) - 1
            here.append(shape.by_level[bounds[level] : bounds[level + 1]] if inside else np.zeros(0, np.int64))
        codes = [
            row_of[place][profiles[place].tree.parent[rows]] * most + keys[place][rows]
            for place, rows in enumerate(here)
        ]
        unique, inverse = np.unique(np.concatenate(codes), return_inverse=True)
        at = 0
        for place, rows in enumerate(here):
            row_of[place][rows] = known + inverse[at : at + len(rows)]
            at += len(rows)
        parents.append(unique // most)
        names.append(unique % most)
        known += len(unique)
    return np.concatenate(parents).astype(np.int32), np.concatenate(names), row_of


def _sides(row_of: Sequence[Rows], side_b: Sequence[bool], rows: int) -> NDArray[np.int8]:
    """Bit 0: on side A; bit 1: on side B."""
    sides = np.zeros(rows, np.int8)
    for one, second in zip(row_of, side_b, strict=True):
        sides[one] |= 2 if second else 1
    return sides


def _counted(profiles: Sequence[Profile], row_of: Sequence[Rows], rows: int) -> NDArray[np.bool_]:
    """Rows with calls at or below them, in any profile."""
    counted = np.zeros(rows, np.bool_)
    for profile, place in zip(profiles, row_of, strict=True):
        counted[place[subtree_sums(profile.tree.shape, profile.tree.exclusive("call_time").count) > 0]] = True
    return counted


def _renamed(shape: Shape, key_of: Rows, keys: list[Key], sides: NDArray[np.int8]) -> dict[int, int]:
    """Pairs of rows, of A alone and of B alone, that are one thing with two names."""
    lone = (sides != 3) & (sides[np.maximum(shape.parent, 0)] == 3)
    lone[:1] = False
    for side in (1, 2):  # a name that the other side knows somewhere is not gone
        lone &= (sides != side) | ~np.isin(key_of, key_of[(sides & (3 - side)) != 0])
    kinds = np.array([kind for kind, _, _ in keys], np.int64)[key_of]
    lone &= np.isin(kinds, [int(kind) for kind in _RENAMED_KINDS])
    rows = np.flatnonzero(lone)
    by_place: dict[tuple[int, int], tuple[list[int], list[int]]] = {}
    for row in rows[: 10 * _MOST_RENAMES].tolist():
        pair = by_place.setdefault((int(shape.parent[row]), int(kinds[row])), ([], []))
        pair[int(sides[row]) - 1].append(row)
    found: dict[int, int] = {}
    for left, right in by_place.values():
        free = list(right)
        for old in left:
            below = _names_below(shape, key_of, old)
            scored = [(_dice(below, _names_below(shape, key_of, new)), new) for new in free[:50]]
            score, new = max(scored, default=(0.0, -1))
            if score >= _ALIKE:
                found[old] = new
                free.remove(new)
            if len(found) >= _MOST_RENAMES:
                return found
    return found


def _names_below(shape: Shape, key_of: Rows, row: int) -> set[int]:
    """Keys of children and grandchildren: what a function calls tells it from others."""
    children = shape.children(row)[:200]
    deeper = [shape.children(child)[:50] for child in children[:50].tolist()]
    return {(int(key_of[one])) for one in np.concatenate([children, *deeper]).tolist()}


def _dice(one: set[int], other: set[int]) -> float:
    return 2 * len(one & other) / (len(one) + len(other)) if one or other else 0.0
