"""What a `Case` knows of code that was compiled more often than the program needs. Part of a `Case`."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property

import numpy as np

from leadline.analysis.columns import Mask, Rows, nearest
from leadline.analysis.loop import Loop
from leadline.analysis.occasional import Around, around
from leadline.analysis.ofsource import OfSource
from leadline.schema import FrameKind


class OfCompilations(OfSource):
    """See `Case`."""

    _known_around: tuple[Loop, Around] | None = None

    @abstractmethod
    def named(self, kind: FrameKind, name: str) -> Mask: ...

    @abstractmethod
    def first_of(self, wanted: Mask) -> Mask: ...

    @cached_property
    def compiled_again_ns(self) -> int:
        return int(self.compiled_again(self.loop).sum())

    def compiled_again(self, loop: Loop) -> Rows:
        """Per node, over all steps: compiling in the loop's thread behind each place's longest, which is its first; one
        more is for the last batch, which is smaller. Of places before or behind the loop, and where each of several
        operations on one line is compiled once, none."""
        outer = self.first_of(self.named(FrameKind.PHASE, "compile"))
        thread = self.analysis.scopes.thread
        calls = self.tree.exclusive("call_time")
        outer &= (thread == thread[loop.anchors[0]]) & (calls.count > 2)
        if outer.any():
            outer &= ~self.around(loop).elsewhere
        found: Rows = np.where(outer, calls.sum - calls.max, 0)
        for row in np.flatnonzero(outer).tolist():
            if self.compiled_needlessly(row, loop) <= 0:
                found[row] = 0
        return found

    def beside_scopes_ns(self, loop: Loop) -> float:
        """Of a step: compiling again, saving and pauses of the collector, which have calls and no time of their own. Of
        a step that no clock measured they are a part, in findings and verdict alike."""
        calls = self.tree.exclusive("call_time").sum
        own = np.where(loop.inside, np.maximum(self.tree.exclusive("time").sum, 0), 0)
        kept = self.named(FrameKind.PHASE, "saving") | self.named(FrameKind.PHASE, "garbage collection")
        first = self.first_of(kept & loop.inside)
        inside = float(own[nearest(self.tree.shape, first) >= 0].sum())
        return (float(self.compiled_again(loop).sum()) + max(float(calls[first].sum()) - inside, 0.0)) / loop.steps

    def compiled_needlessly(self, row: int, loop: Loop) -> int:
        """How often what is compiled at this node was compiled without need. A function of the program's needs one. An
        operation of JAX that runs by itself needs one for each of its calls in a step, as a line has many of them (one
        for each parameter); where it runs in few steps, or before the loop, it is set-up."""
        calls = self.tree.exclusive("call_time").count
        number = int(calls[row])
        detail = self.tree.node(row).detail
        if detail.get("of") != "jax":
            return number - 1
        if self.around(loop).elsewhere[row]:
            return 0
        runs = sum(
            int(calls[other])
            for other in self.tree.shape.children(int(self.tree.parent[row])).tolist()
            if self.tree.node(other).name == f"jit({detail.get('function')})"
        )
        return 0 if 2 * runs < loop.steps else number - max(1, -(-runs // loop.steps))

    def around(self, loop: Loop) -> Around:
        """What is not on the lines of this loop; found once for the one that was asked for last."""
        known = self._known_around
        if known is None or known[0] is not loop:
            known = self._known_around = (loop, around(self.tree, loop, self.sources))
        return known[1]
