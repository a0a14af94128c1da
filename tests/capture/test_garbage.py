"""Pauses of the garbage collector: booked once per line that caused a whole collection, and by generation else."""

from __future__ import annotations

import gc

import leadline


def pauses(profile):
    """(generation, lines of Python above, calls) of each node."""
    tree = profile.tree
    found = []
    for row in range(len(tree)):
        node = tree.node(row)
        if node.kind == "phase" and node.name == "garbage collection":
            above = [one.name for one in node.path() if one.kind == "python"]
            found.append((node.detail["generation"], above, node.exclusive("call_time").count))
    return found


def test_whole_collections_stand_at_the_line_that_caused_them(tmp_path):
    path = tmp_path / "p.leadline"
    with leadline.profile(path):
        collect_thrice()
    whole = [
        (above[-1], calls) for generation, above, calls in pauses(leadline.open(path)) if generation == 2 and above
    ]
    assert ("collect_thrice", 3) in whole
    assert not [one for one in gc.callbacks if "leadline" in type(getattr(one, "__self__", None)).__module__]


def collect_thrice():
    for _ in range(3):
        gc.collect()
