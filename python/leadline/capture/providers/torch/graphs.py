"""The graphs of backward passes while the trace window is open, with the buckets that gradients are sent in.

A loop walks the same graph in every step, so a shape is kept once and a pass is numbers in arrays: objects that stay
would make Python's garbage collector run, which costs the program more than the walk.
"""

from __future__ import annotations

import contextlib
import time
import weakref
from array import array
from collections.abc import Iterable
from typing import Any, NamedTuple

MOST_NODES = 50_000
_NO_NUMBER = 2**62  # accumulations have the largest number that there is


class _Shape(NamedTuple):
    """Names of the nodes in the order of the walk and their numbers, edges as pairs of numbers, and of nodes that
    accumulate gradients their place in the walk, bucket and reducer."""

    names: tuple[str, ...]
    numbers: tuple[int, ...]
    edges: tuple[int, ...]
    buckets: tuple[tuple[int, int, int], ...]


class Graphs:
    """Backward passes that were walked; nodes beyond `MOST_NODES` are counted in `left_out`."""

    def __init__(self) -> None:
        self.reducers = Reducers()
        self.forget()

    def forget(self) -> None:
        """Nothing was walked yet."""
        self._shapes: dict[_Shape, int] = {}
        self._passes = array("q")  # of each: when it was walked, and its shape
        self._sequences = array("q")  # of all nodes, one pass after the other
        self.left_out = 0

    def walk(self, roots: Iterable[Any]) -> None:
        """Keep the graph behind these tensors. Uses private names of torch, and raises where they are missing."""
        waiting = list(dict.fromkeys(root.grad_fn for root in roots if getattr(root, "grad_fn", None) is not None))
        number_of = {one: number for number, one in enumerate(waiting)}
        names: list[str] = []
        numbers: list[int] = []
        edges: list[int] = []
        in_buckets: list[tuple[int, int, int]] = []
        sequences = array("q")
        buckets = self.reducers.buckets()
        room = MOST_NODES - len(self._sequences)
        while waiting and len(names) < room:
            one = waiting.pop()
            own = number_of[one]
            sequence = one._sequence_nr()
            if buckets and (variable := getattr(one, "variable", None)) is not None:
                in_buckets.append((len(names), *buckets.get(id(variable), (-1, 0))))
            numbers.append(own)
            names.append(one.name())
            sequences.append(sequence if sequence < _NO_NUMBER else -1)
            for following, _ in one.next_functions:
                if following is None:
                    continue
                number = number_of.get(following)
                if number is None:
                    number = number_of[following] = len(number_of)
                    waiting.append(following)
                edges += (own, number)
        self.left_out += len(waiting)
        shape = _Shape(tuple(names), tuple(numbers), tuple(edges), tuple(in_buckets))
        self._passes.extend((time.monotonic_ns(), self._shapes.setdefault(shape, len(self._shapes))))
        self._sequences.extend(sequences)

    def facts(self) -> list[dict[str, Any]]:
        """For the process's record: `nodes` are number, name, autograd number, and maybe bucket and reducer."""
        shapes = list(self._shapes)
        found, at = [], 0
        for begin_ns, row in zip(self._passes[::2], self._passes[1::2], strict=True):
            shape = shapes[row]
            sequences = self._sequences[at : at + len(shape.names)]
            at += len(shape.names)
            nodes: list[list[Any]] = [list(node) for node in zip(shape.numbers, shape.names, sequences, strict=True)]
            for place, bucket, reducer in shape.buckets:
                nodes[place] += [bucket, reducer]
            found.append({"begin_ns": begin_ns, "nodes": nodes, "edges": list(shape.edges)})
        return found


class Reducers:
    """The buckets that instances of DistributedDataParallel send their gradients in."""

    def __init__(self) -> None:
        self._known: list[tuple[weakref.ref[Any], dict[int, tuple[int, int]]]] = []

    def follow(self, parallel: Any) -> None:
        """One was made."""
        self._known.append((weakref.ref(parallel), {}))

    def buckets(self) -> dict[int, tuple[int, int]]:
        """By the id of a parameter its bucket and the number of its reducer; without those of reducers that have not
        settled on buckets."""
        if not self._known:
            return {}
        found: dict[int, tuple[int, int]] = {}
        for number, (reference, mine) in enumerate(self._known):
            parallel = reference()
            if parallel is None:
                mine.clear()
                continue
            if not mine:
                mine.update(_settled(parallel, number))
            found |= mine
        return found


def _settled(parallel: Any, number: int) -> dict[int, tuple[int, int]]:
    with contextlib.suppress(Exception):  # private names of torch
        listed = parallel._get_ddp_logging_data()["rebuilt_per_bucket_param_indices"]
        parameters = parallel._module_parameters
        return {
            id(parameters[int(place)]): (bucket, number)
            for bucket, places in enumerate(listed.split(","))
            for place in places.split()
        }
    return {}
