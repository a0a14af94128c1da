"""What a `Case` knows by CPU samples, where there are any. Part of a `Case`."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property

import numpy as np

from leadline._dataclass import replace
from leadline.analysis import Analysis
from leadline.analysis.columns import Mask, Rows, nearest
from leadline.analysis.contention import DISPATCH_NS, Contention, contention
from leadline.analysis.functions import METRIC, ending, imports
from leadline.analysis.gains import Gains
from leadline.analysis.loop import BY_SAMPLES, Loop
from leadline.analysis.sampled import SampledFunction, sampled_functions
from leadline.profiles import Tree
from leadline.schema import FrameKind

_ENOUGH_SAMPLES = 20
_ALL = 500
"""Functions: more than take time in any program."""


class OfSamples(Gains):
    """See `Case`."""

    tree: Tree
    analysis: Analysis

    @abstractmethod
    def in_phase(self, name: str) -> Mask: ...

    @abstractmethod
    def below(self, wanted: Mask) -> Mask: ...

    @abstractmethod
    def compiled_again(self, loop: Loop) -> Rows: ...

    @abstractmethod
    def beside_scopes_ns(self, loop: Loop) -> float: ...

    @cached_property
    @abstractmethod
    def time(self) -> Rows: ...

    @cached_property
    def importing(self) -> Mask:
        """Nodes at or below the interpreter's import system."""
        return imports(self.tree)

    @cached_property
    def beside_steps(self) -> Mask:
        """Nodes of what runs once and belongs to no step: imports, and what ends the program."""
        return self.importing | ending(self.tree)

    @cached_property
    def on_own_thread(self) -> Mask:
        """Nodes of the loop on the thread that runs it."""
        thread = self.analysis.scopes.thread
        found: Mask = self.loop.inside & (thread == thread[self.loop.anchors[0]])
        return found

    @cached_property
    def contention(self) -> Contention:
        """How much of its time the loop's thread had a core."""
        node = int(self.analysis.scopes.thread[self.loop.anchors[0]])
        thread = next((one for one in self.analysis.profile.threads if one.node.row == node), None)
        return contention(self.analysis.profile, thread, self.loop.of.main)

    def ran_ns(self, wanted: Mask, *, calling: bool = True) -> float:
        """Of all steps, how long these nodes had a core, as the account of a step counts it: what they waited for one
        is a part of its own there. `calling`: with what calling the operators takes."""
        operators = wanted & (self.tree.kinds == int(FrameKind.OPERATOR))
        time = self.time[operators].astype(np.float64)
        if not calling:
            time -= np.minimum(self.tree.exclusive("call_time").count[operators] * DISPATCH_NS, time)
        others = float(self.time[wanted & ~operators].sum())
        return float(time.sum()) * self.contention.operators_ran + others * self.contention.python_ran

    @cached_property
    def inner_python(self) -> Rows:
        """Per node the innermost Python frame at or above it, whoever wrote it; -1 for none."""
        return nearest(self.tree.shape, self.tree.kinds == int(FrameKind.PYTHON))

    def _timed_by_samples(self, found: Loop) -> Loop:
        """The loop with the CPU time of its thread as the length of a step, where no clock has told that, and with what
        compiling again adds to it."""
        if found.measured_by:
            return found
        beside = self.beside_scopes_ns(found)
        thread = self.analysis.scopes.thread
        mine = found.inside & (thread == thread[found.anchors[0]]) & ~self.beside_steps
        ran = float(self.tree.exclusive(METRIC).sum[mine].sum()) / found.steps
        if ran <= found.work_ns:
            return replace(found, step_ns=found.step_ns + beside)
        return replace(
            found, step_ns=ran + float(self.compiled_again(found).sum()) / found.steps, measured_by=BY_SAMPLES
        )

    @cached_property
    def samples(self) -> Rows:
        """CPU time by samples per node of the loop, in operators and outside, without what its modules were imported in
        (once, mostly within the first step); zeros where none were taken."""
        return np.where(self.loop.inside & ~self.beside_steps, self.tree.exclusive(METRIC).sum, 0)

    @cached_property
    def sampled_ns(self) -> int:
        """CPU time of all steps by samples, in every process; 0 where none were taken."""
        return int(self.samples.sum())

    @cached_property
    def time_and_samples(self) -> Rows:
        """The time of scopes, and where there are samples, CPU time by them between operators: in Python that regions
        and phases hold, or nothing does."""
        if not self.sampled_ns:
            return self.time
        between = (self.analysis.scopes.inner < 0) & ~self.in_phase("data loading") & ~self.in_phase("compile")
        return np.where(between, self.samples, self.time)

    @cached_property
    def calling_share(self) -> float:
        """Of `between_ns` what is left without the functions that samples see at work of their own; 1 with too few."""
        outside = self.loop.inside & (self.analysis.scopes.inner < 0) & ~self.in_phase("data loading")
        seen = float(self.samples[outside].sum())
        if not seen or int(self.tree.exclusive(METRIC).count[outside].sum()) < _ENOUGH_SAMPLES:
            return 1.0
        return max(1 - sum(one.ns for one in self.sampled(outside, most=_ALL)) / seen, 0.0)

    def sampled(self, where: Mask, most: int = 3) -> list[SampledFunction]:
        """The functions of the program that took most CPU time outside operators in these nodes of the profile."""
        return sampled_functions(
            self.tree, self.analysis.scopes, where & ~self.beside_steps, self.outer_operators, most
        )

    @cached_property
    def outer_operators(self) -> Mask:
        """Operators that no other operator calls."""
        outer: Mask = (self.analysis.scopes.outer == np.arange(len(self.tree))) & (
            self.tree.kinds == int(FrameKind.OPERATOR)
        )
        return outer

    @cached_property
    def called_by_python(self) -> Mask:
        """Operators that Python calls where its time is not measured otherwise: not from autograd's engine or inside
        of a compiled program, nor inside a phase or region, whose own time holds the Python in it."""
        timed = (self.tree.kinds == int(FrameKind.PHASE)) | (self.tree.kinds == int(FrameKind.REGION))
        timed &= self.tree.exclusive("time").count > 0
        outer: Mask = self.analysis.scopes.outer == np.arange(len(self.tree))
        return outer & ~self.below(timed) & ~self.in_phase("backward") & ~self.in_pool

    @cached_property
    def in_pool(self) -> Mask:
        """Operations that XLA runs on threads of its own: no Python calls them."""
        frames = self.tree.frame_rows(FrameKind.PHASE, "on another thread")
        ours = [row for row in np.flatnonzero(frames).tolist() if '"XLA"' in self.tree.text("detail", row)]
        return self.below(np.isin(self.tree.frame_of, ours))
