"""What is asked of the profile of a program that ran below torch.profiler too: the same calls, time and bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tests.truth.invariants import process_of_node

from leadline.profiles import Profile
from leadline.schema import FrameKind, MetricKind

PER_CALL_NS = 20_000
"""Between the two profilers' readings of one border."""
ONCE_NS = 100_000_000
"""What the machine may do to a whole program between two such readings."""


@dataclass(frozen=True)
class Theirs:
    """What torch.profiler saw: by name (calls, ns), and bytes allocated and freed."""

    operators: dict[str, tuple[int, int]]
    allocated: int
    freed: int

    @classmethod
    def read(cls, path: Path) -> Theirs:
        seen = json.loads(path.read_text())
        return cls({name: (count, ns) for name, (count, ns) in seen["operators"].items()}, *seen["bytes"])


def differences(profile: Profile, theirs: Theirs) -> Iterator[str]:
    """A sentence for each name or sum in which the process that both looked at is told differently."""
    process = process_of_node(profile)
    first = min(profile.processes, key=lambda one: one.start_ns).row  # torch.profiler sees no children
    ours = operators_of(profile, process == first)
    for name in sorted(ours.keys() | theirs.operators.keys()):
        (count, ns), (their_count, their_ns) = ours.get(name, (0, 0)), theirs.operators.get(name, (0, 0))
        if count != their_count:
            yield f"{name}: {count} calls, torch.profiler saw {their_count}"
        elif abs(ns - their_ns) > their_ns * 0.05 + count * PER_CALL_NS + ONCE_NS:
            yield f"{name}: {ns} ns in {count} calls, torch.profiler saw {their_ns} ns"
    rows = profile.table("metrics")
    threads = sum(thread.process == first for thread in profile.threads)
    allocated, freed = (
        int(rows["sum"][(rows["metric"] == int(kind)) & (process[rows["node"]] == first)].sum())
        for kind in (MetricKind.ALLOC_BYTES, MetricKind.FREE_BYTES)
    )
    if allocated != theirs.allocated:
        yield f"{allocated} bytes allocated, torch.profiler saw {theirs.allocated}"
    # It does not see what threads free that began before it, such as those of gloo; we do.
    if not theirs.freed <= freed <= allocated or (threads == 1 and freed != theirs.freed):
        yield f"{freed} bytes freed of {allocated}, torch.profiler saw {theirs.freed}"


def operators_of(profile: Profile, nodes: np.ndarray) -> dict[str, tuple[int, int]]:
    """By name: calls and nanoseconds of the operators among the nodes."""
    tree = profile.tree
    call = tree.exclusive("call_time")
    found: dict[str, tuple[int, int]] = {}
    for row in np.flatnonzero(nodes & (tree.kinds == int(FrameKind.OPERATOR)) & (call.count > 0)).tolist():
        name = tree.node(row).name
        count, ns = found.get(name, (0, 0))
        found[name] = (count + int(call.count[row]), ns + int(call.sum[row]))
    return found
