"""What every rule asks of a profile: its loop, sums by the user's line, what is below which phase, source.

Everything is whole columns, computed once and shared by all rules; objects are made only for what is reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property

import numpy as np

from leadline._dataclass import dataclass, replace
from leadline.analysis import analysis_of
from leadline.analysis.busy import busy_share
from leadline.analysis.columns import Mask, Rows, distinct, group_sums, nearest, preorder, subtree_sums
from leadline.analysis.compilations import OfCompilations
from leadline.analysis.contained import CannotTell as CannotTell
from leadline.analysis.contained import Contained
from leadline.analysis.loop import BY_SAMPLES, Loop, find_loop, widened
from leadline.analysis.occasional import Around
from leadline.analysis.origin import Origin, origin
from leadline.analysis.ranks import is_folded_profile
from leadline.analysis.scopes import frames_in_files
from leadline.analysis.sourcecode import Block, Sources
from leadline.analysis.turn import rest_of_turn
from leadline.profiles import Profile
from leadline.profiles.meta import is_imported, source_hashes
from leadline.schema import FrameKind, MetricKind
from leadline.units import counted

_ENOUGH_STEPS, _ENOUGH_IMPORTED = 5, 1  # the steps of a trace were chosen by who recorded it, after a warm-up as a rule
MOST_GROUPS = 500
"""No rule reports more than a few; a tree of a million nodes may have as many lines."""


@dataclass(frozen=True)
class Group:
    """Nodes of one user's line. `row`: the one with most of the value; `rows`: all; `value`: their sum."""

    row: int
    rows: Rows
    value: int


def sources_of(profile: Profile) -> Sources:
    """The files that the program's lines stand in, as far as they are still what ran."""
    return Sources(
        _cwd(profile), max((one.end_ns for one in profile.processes), default=0), source_hashes(profile.meta)
    )


def case_of(profile: Profile) -> Case:
    """The last examination of a profile, or its first one: verdict, findings and report ask the same questions."""
    kept: Case | None = vars(profile).get("_case")
    return new_case(profile) if kept is None else kept


def new_case(profile: Profile) -> Case:
    """Examine a profile again: its sources may have changed."""
    made = vars(profile)["_case"] = Case(profile)
    return made


def _cwd(profile: Profile) -> str:
    program = profile.meta.get("program")
    cwd = program.get("cwd") if isinstance(program, dict) else ""
    return cwd if isinstance(cwd, str) else ""


class Case(OfCompilations, Contained):
    """One profile under examination."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.analysis = analysis_of(profile)
        self.tree = profile.tree
        self.cwd = _cwd(profile)
        self.sources = sources_of(profile)
        self._phases: dict[str, Mask] = {}
        self._names: dict[str, Mask] = {}
        self._inclusive: dict[str, Rows] = {}

    # ---------------------------------------------------------------- the loop

    @cached_property
    def _found_loop(self) -> Loop | None:
        found = find_loop(self.profile, self.analysis.scopes)
        if found is None:
            return None
        found = self._timed_by_samples(
            widened(self.tree, found, rest_of_turn(self.tree, found, self.analysis.scopes, self.sources))
        )
        outside = self.around(found).outside
        if not outside.any():
            return found
        time = np.where(outside, 0, found.time)
        work = float(time.sum()) / found.steps
        step = found.step_ns  # operators of slow first steps may add up to more than a clock's mean without them
        if not found.measured_by:
            step = work + self.beside_scopes_ns(found)
        elif found.measured_by == BY_SAMPLES:
            step = max(step, work)
        return replace(found, inside=found.inside & ~outside, time=time, work_ns=work, step_ns=step)

    @property
    def rare_work(self) -> Mask:
        """Nodes of the loop that are called too rarely to be part of every step: evaluation, checkpoints."""
        return self._around.rare

    @property
    def rare_lines(self) -> Mask:
        """Nodes of lines of the loop's function that only some steps run, with all they call."""
        return self._around.lines

    @property
    def validation(self) -> Mask:
        """Nodes at which a framework begins to validate in the midst of its loop."""
        return self._around.validating

    @property
    def _around(self) -> Around:
        none = np.zeros(len(self.tree), np.bool_)
        found = self.known_loop
        return Around(none, none, none, none, none) if found is None else self.around(found)

    @property
    def known_loop(self) -> Loop | None:
        """The loop, or None where nothing repeats."""
        return self._found_loop

    @property
    def loop(self) -> Loop:
        """The loop; raises CannotTell where there is none, or one of too few steps to tell a habit from an accident."""
        if (found := self._found_loop) is None:
            raise CannotTell("no training step or repeated call was found")
        enough = _ENOUGH_IMPORTED if is_imported(self.profile.meta) else _ENOUGH_STEPS
        if found.steps < enough:
            raise CannotTell(f"only {counted(found.steps, 'step')} measured; {enough} are needed")
        if found.step_ns <= 0:
            raise CannotTell("no time was measured inside the steps")
        return found

    @cached_property
    def ranks(self) -> int:
        """Ranks that the loop's process stands for: those folded into it; 1 where each has its own."""
        found = self._found_loop
        if found is None or not is_folded_profile(self.profile):
            return 1
        node = int(self.analysis.scopes.process[found.anchors[0]])
        rows = {one.row for one in self.profile.processes if one.node.row == node}
        folded = self.profile.tables["ranks"]["process"].tolist()
        return max(1, sum(process in rows for process in folded))

    @cached_property
    def total_ns(self) -> int:
        """Time of all steps."""
        return int(self.loop.step_ns * self.loop.steps)

    def share(self, ns: float) -> float:
        """`ns` over all steps as a share of them, 0 to 1."""
        return min(1.0, max(0.0, ns / self.total_ns)) if self.total_ns > 0 else 0.0

    @cached_property
    def time(self) -> Rows:
        """Exclusive time per node over all steps, first calls left out."""
        return self.loop.time

    @cached_property
    def inclusive_time(self) -> Rows:
        """The same with everything below, backward work included."""
        return subtree_sums(self.tree.shape, self.time)

    @cached_property
    def has_device(self) -> bool:
        return bool(self.tree.exclusive("gpu_time").count.any())

    @cached_property
    def device_idle_ns(self) -> float:
        """Time of a step in which no device did anything: by the trace window where there is one, else what of the step
        the busiest one was not seen to work; the whole step without a device."""
        step = self.loop.step_ns
        if not self.has_device:
            return step
        if (busy := busy_share(self.profile)) >= 0:
            return step * (1 - busy)
        metrics = self.profile.tables["metrics"]
        mine = (metrics["metric"] == int(MetricKind.GPU_TIME)) & self.loop.inside[metrics["node"].astype(np.int64)]
        device = metrics["device"][mine].astype(np.int64)
        spent = np.bincount(np.maximum(device, 0), weights=metrics["sum"][mine]) if mine.any() else np.zeros(1)
        return max(0.0, step - float(spent.max()) / self.loop.steps)

    def need_device(self) -> None:
        """Raises CannotTell for a profile without device work."""
        if not self.has_device:
            raise CannotTell("no work on an accelerator was measured")

    @cached_property
    def gpu_time(self) -> Rows:
        """Exclusive device time in the loop."""
        return np.where(self.loop.inside, self.tree.exclusive("gpu_time").sum, 0)

    @cached_property
    def cost_with_all_below(self) -> Rows:
        """What a change would save: device time where there is some, else time; per node with everything below."""
        return subtree_sums(self.tree.shape, self.gpu_time) if self.has_device else self.inclusive_time

    @cached_property
    def cost_of_all(self) -> int:
        """What shares of that cost are shares of."""
        return int(self.gpu_time.sum()) if self.has_device else self.total_ns

    @property
    def cost_name(self) -> str:
        return "the device time" if self.has_device else "the step"

    @cached_property
    def calls(self) -> Rows:
        """Calls of operators, regions and phases at every node of the loop."""
        return np.where(self.loop.inside, self.tree.exclusive("call_time").count, 0)

    # ---------------------------------------------------------------- columns

    def operators(self, *names: str) -> Mask:
        """Nodes of the loop that are operators of one of these names."""
        return self.named(FrameKind.OPERATOR, *names) & self.loop.inside

    def named(self, kind: FrameKind, *names: str) -> Mask:
        """Nodes of that kind and one of these names."""
        key = f"{int(kind)} {names}"
        if key not in self._names:
            frames = np.zeros(len(self.tree.frames["kind"]), np.bool_)
            for name in names:
                frames |= self.tree.frame_rows(kind, name)
            self._names[key] = frames[self.tree.frame_of]
        return self._names[key]

    def matching(self, kind: FrameKind, pattern: str) -> Mask:
        """Nodes of that kind whose name the pattern finds."""
        key = f"{int(kind)} ~ {pattern}"
        if key not in self._names:
            self._names[key] = self.tree.frame_rows(kind, pattern=re.compile(pattern))[self.tree.frame_of]
        return self._names[key]

    def below(self, wanted: Mask) -> Mask:
        """Nodes that stand at or below a wanted one."""
        found: Mask = nearest(self.tree.shape, wanted) >= 0
        return found

    def in_phase(self, name: str) -> Mask:
        """Nodes at or below a phase of that name."""
        if name not in self._phases:
            self._phases[name] = self.below(self.named(FrameKind.PHASE, name))
        return self._phases[name]

    def in_files(self, pattern: str) -> Mask:
        """Nodes at or below a Python frame whose file the pattern finds."""
        return self.below(frames_in_files(self.tree, pattern)[self.tree.frame_of])

    def by_line(self, mask: Mask, values: Rows) -> list[Group]:
        """Nodes of `mask` with a positive value grouped by the user's line, the largest sum first."""
        return self.grouped(mask & (self.user_line >= 0), values, self.user_line)

    def grouped(self, mask: Mask, values: Rows, key: Rows) -> list[Group]:
        """Nodes of `mask` with a positive value grouped by `key`, the largest sum first, at most MOST_GROUPS."""
        rows = np.flatnonzero(mask & (values > 0))
        if not len(rows):
            return []
        found, group = distinct(key[rows])
        sums = group_sums(group, values[rows], len(found))
        order = np.argsort(group, kind="stable")
        bounds = np.searchsorted(group[order], np.arange(len(found) + 1))
        made = []
        for place in np.argsort(-sums, kind="stable")[:MOST_GROUPS].tolist():
            here = rows[order[bounds[place] : bounds[place + 1]]]
            made.append(Group(int(here[np.argmax(values[here])]), here, int(sums[place])))
        return made

    def first_of(self, mask: Mask) -> Mask:
        """Nodes of `mask` that have none of `mask` above them: where each matter begins."""
        outer = nearest(self.tree.shape, mask)
        parent = np.maximum(self.tree.shape.parent, 0)
        found: Mask = mask & (outer[parent] < 0)
        found[:1] = mask[:1]
        return found

    def outermost(self, mask: Mask) -> Rows:
        """For every node the outermost node of `mask` on its path; -1 where there is none."""
        return nearest(self.tree.shape, self.first_of(mask))

    def inner_loop(self, row: int) -> tuple[str, Block] | None:
        """The innermost loop of the user's source around a node's path that is not the training loop: its file and
        where it is. A function between the two is passed through."""
        for at in reversed(self.tree.path_rows(row)):
            if self.tree.kinds[at] != int(FrameKind.PYTHON):
                continue
            node = self.tree.node(at)
            if origin(node.file) != Origin.USER or node.name.endswith("<lambda>"):
                continue  # a loop around the text of a lambda is not around its calls
            source = self.sources.of(node.file)
            loops = source.loops(node.line) if source else []
            for block in reversed(loops):
                if (node.file, block.first) not in self._step_loops:
                    return node.file, block
            if loops:
                return None
        return None

    @cached_property
    def _step_loops(self) -> set[tuple[str, int]]:
        """Loops around the lines that occur once per step."""
        found: set[tuple[str, int]] = set()
        for row in self.loop.anchors[:50].tolist():
            for at in self.tree.path_rows(row):
                if self.tree.kinds[at] == int(FrameKind.PYTHON):
                    node = self.tree.node(at)
                    source = self.sources.of(node.file) if origin(node.file) == Origin.USER else None
                    found |= {(node.file, block.first) for block in source.blocks(node.line)} if source else set()
        return found

    def is_step_loop(self, file: str, line: int) -> bool:
        """Whether the loop whose head is there is one that the steps go through."""
        return (file, line) in self._step_loops

    def below_row(self, row: int) -> Rows:
        """The rows of a node and all below it."""
        place, size = self._preorder
        begin = int(place[row])
        return self._in_preorder[begin : begin + int(size[row])]

    @cached_property
    def _preorder(self) -> tuple[Rows, Rows]:
        return preorder(self.tree.shape)

    @cached_property
    def _in_preorder(self) -> Rows:
        return np.argsort(self._preorder[0], kind="stable")

    def lines_between(self, file: str, first: int, last: int) -> Mask:
        """Nodes of the loop at or below these lines of a file."""
        columns = self.tree.frames
        rows = [row for row in np.unique(columns["file"]).tolist() if self.tree.tables.strings[row] == file]
        here = np.isin(columns["file"], rows) & (columns["kind"] == int(FrameKind.PYTHON))
        here &= (columns["line"] >= first) & (columns["line"] <= last)
        found: Mask = here[self.tree.frame_of] & self.loop.inside
        return self.below(found)

    # ---------------------------------------------------------------- Python between operators

    @cached_property
    def between_ns(self) -> float:
        """Time of all steps that is in no operator, phase or wait, nor in saving or a pause of the garbage collector:
        Python, and calling operators from it. 0 where the wall time of a step is not known."""
        if not self.loop.measured_by:
            return 0.0
        known = self.tree.exclusive("call_time").sum[self.pauses | self.saving].sum() + self.compiled_again_ns
        return max(0.0, (self.loop.step_ns - self.loop.work_ns) * self.loop.steps - int(known))

    @cached_property
    def beside_work_ns(self) -> float:
        """Time of all steps that no operator, phase or wait in them explains: what else happens between their marks.
        All of it where no clock told their length."""
        return max(0.0, self.total_ns - self.loop.work_ns * self.loop.steps) if self.loop.measured_by else self.total_ns

    @cached_property
    def saving(self) -> Mask:
        """Files that were written in the loop, with their pickling."""
        return self.named(FrameKind.PHASE, "saving") & self.loop.inside

    @cached_property
    def pauses(self) -> Mask:
        """Whole garbage collections in the loop; of smaller ones, and of those in imports, no line is known."""
        return self.named(FrameKind.PHASE, "garbage collection") & self.loop.inside & (self.user_line >= 0)

    @cached_property
    def called(self) -> Mask:
        """Of the loop's operators those that Python calls."""
        return self.called_by_python & (self.calls > 0)

    def python_ns(self, wanted: Mask) -> float:
        """The part of `between_ns` that goes to calling these operators, were each call to cost the same."""
        called = np.where(self.called, self.calls, 0)
        everything = int(called.sum())
        return self.between_ns * int(called[wanted].sum()) / everything if everything else 0.0

    def mask(self, rows: Iterable[int] | Rows) -> Mask:
        """These nodes and all below them."""
        chosen = np.zeros(len(self.tree), np.bool_)
        chosen[np.asarray(rows, np.int64)] = True
        return self.below(chosen)

    def per_step(self, count: float) -> float:
        return count / self.loop.steps
