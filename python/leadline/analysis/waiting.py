"""What threads waited for, by samples (`leadline run --wait`): by thread and state, with the lines where they did.

A wait stands at a frame of its own below the path that waited; the frame's detail names the state.
"""

from __future__ import annotations

import json

import numpy as np

from leadline._dataclass import dataclass
from leadline.analysis.columns import Mask, Rows, at_rows, group_sums
from leadline.analysis.scopes import Scopes
from leadline.analysis.threads import main_threads
from leadline.profiles import Profile, Tree

METRIC = "wait"
STATES = ("gil", "lock", "io", "sleep", "child", "device", "core", "network", "other")
"""`core`: the thread could run, and others did. `other`: another system call, or not known."""
_MOST_LINES = 3
_WORTH = 0.02  # of the longest thread's wall time that a thread ran, to be worth showing


@dataclass(frozen=True)
class WaitLine:
    """`row`: a node whose user line it is."""

    state: str
    row: int
    ns: int


@dataclass(frozen=True)
class ThreadWaits:
    """One thread; `thread` is its row. `states_ns` has every state that occurred; with `ran_ns` they make up the wall
    time, as far as the thread was looked at."""

    thread: int
    main: bool
    ran_ns: int
    wall_ns: int
    states_ns: dict[str, int]
    lines: tuple[WaitLine, ...]


def states_of(tree: Tree) -> Rows:
    """For every node the place in `STATES` of what is waited for there, -1 where it is no wait."""
    frames = tree.frames
    by_detail = np.full(int(frames["detail"].max(initial=0)) + 1, -1, np.int64)
    for row in np.unique(frames["detail"]).tolist():
        by_detail[row] = _state(tree.tables.strings[row])
    found: Rows = by_detail[frames["detail"]][tree.frame_of]
    return found


def in_line_ns(tree: Tree, where: Mask) -> float:
    """What threads stood in line for a core at these nodes, by looks."""
    return float(tree.exclusive(METRIC).sum[where & (states_of(tree) == STATES.index("core"))].sum())


def _state(detail: str) -> int:
    if '"wait"' not in detail:
        return -1
    try:
        state = json.loads(detail).get("wait")
    except (ValueError, AttributeError):
        return -1
    if not isinstance(state, str):
        return -1
    return STATES.index(state) if state in STATES else STATES.index("other")


def thread_waits(profile: Profile, scopes: Scopes) -> tuple[list[ThreadWaits], int]:
    """Threads that matter (main ones, those with lines of the user, those that ran), by process, main first; and how
    many others there are, which only wait. Empty where waiting was not looked at."""
    tree = profile.tree
    ns = np.maximum(tree.exclusive(METRIC).sum, 0)
    if not ns.any():
        return [], 0
    state = states_of(tree)
    mains = main_threads(profile)
    longest = max((thread.wall_ns for thread in profile.threads), default=0)
    place = np.full(len(tree), -1, np.int64)
    for thread in profile.threads:
        place[thread.node.row] = thread.row
    thread_of = at_rows(place, scopes.thread)
    sums = group_sums(
        np.where((thread_of >= 0) & (state >= 0), thread_of * len(STATES) + state, -1),
        ns,
        len(profile.threads) * len(STATES),
    ).reshape(-1, len(STATES))
    made, hidden = [], 0
    for thread in profile.threads:
        values = sums[thread.row]
        if not values.any():
            continue
        main = thread.row in mains
        lines = _lines(tree, scopes, np.flatnonzero((thread_of == thread.row) & (ns > 0) & (state >= 0)), ns, state)
        if not (main or lines or thread.cpu_ns >= _WORTH * longest):
            hidden += 1
            continue
        named = {name: int(value) for name, value in zip(STATES, values.tolist(), strict=True) if value}
        made.append(
            (thread.process, not main, ThreadWaits(thread.row, main, thread.cpu_ns, thread.wall_ns, named, lines))
        )
    return [one[-1] for one in sorted(made, key=lambda one: (one[0], one[1], -one[2].wall_ns))], hidden


def _lines(tree: Tree, scopes: Scopes, rows: Rows, ns: Rows, state: Rows) -> tuple[WaitLine, ...]:
    """The lines of the user with most of any state, the largest first."""
    rows = rows[scopes.user[rows] >= 0]
    if not len(rows):
        return ()
    frames = tree.frames
    keys = [frames[name][tree.frame_of[scopes.user[rows]]].astype(np.int64) for name in ("file", "line", "name")]
    _, first, group = np.unique(np.stack([*keys, state[rows]]), axis=1, return_index=True, return_inverse=True)
    sums = np.bincount(group.ravel(), weights=ns[rows].astype(np.float64))
    order = np.argsort(-sums, kind="stable")[:_MOST_LINES]
    return tuple(WaitLine(STATES[state[rows[first[one]]]], int(rows[first[one]]), int(sums[one])) for one in order)
