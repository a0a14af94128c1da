"""What the rules about the inside of kernels share: hot kernels with the samples of their instructions, by reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cached_property

import numpy as np

from leadline._dataclass import dataclass
from leadline.analysis.case import CannotTell, Case, Group
from leadline.analysis.columns import Mask, Rows, nearest, subtree_sums
from leadline.profiles.tree import json_object
from leadline.schema import STALLS, FrameKind, stall_group

NO_LOSS = ("", "issued", "not_chosen")
"""Groups of samples in which the warp lost nothing: it was issued, or ready and another one was."""
_FOR_MATRIX_UNITS = ("warpgroup_arrive", "gmma")
"""Reasons of warps between matrix instructions that run by themselves: nothing is issued, and the unit works."""
_ASYNCHRONOUS = ("SYNCS", "WARPGROUP")
"""Instructions that wait for what runs by itself, copies and products: other warps would wait for the same."""
_NOT_AT_WORK = ("memory", "fetch", "synchronisation", "asleep")
"""A matrix instruction that waits for one of these has not begun."""


@dataclass(frozen=True)
class SampledKernel:
    """Kernels of one name. `share`: of the device time; `lost`: samples by reason in which the scheduler had nothing
    else to issue, or all where that was not recorded (`has_latency`: whether it was); `at_work`: samples of warps that
    wait for units that are at work, or whose matrix instructions are (where their text is known); `hideable`: of the
    lost ones those during which more warps would have had something to issue."""

    group: Group
    share: float
    seen: int
    lost: Counter[str]
    has_latency: bool
    at_work: int
    hideable: int

    @cached_property
    def stalled(self) -> int:
        return sum(count for _, count in self.ranked)

    @cached_property
    def ranked(self) -> list[tuple[str, int]]:
        """Reasons that lost time, the most first."""
        lost = ((reason, n) for reason, n in self.lost.items() if n and stall_group(reason) not in NO_LOSS)
        return sorted(lost, key=lambda one: (-one[1], one[0]))

    @property
    def busy(self) -> float:
        """Share of the samples that are `at_work`."""
        return self.at_work / max(self.seen, 1)

    @property
    def short_of_warps(self) -> float:
        """Share of the samples that are `hideable`."""
        return self.hideable / max(self.seen, 1)


def _for_units(reason: str) -> bool:
    return stall_group(reason) == "pipe" or reason in _FOR_MATRIX_UNITS


class SampledKernels:
    """All of one profile; raises CannotTell where no instructions were sampled."""

    def __init__(self, case: Case) -> None:
        self.case = case
        tree = case.tree
        self.samples = tree.exclusive("instruction_samples").sum
        if not self.samples.any():
            raise CannotTell("no instructions of kernels were sampled")
        latency = tree.exclusive("latency_samples").sum
        self.has_latency = bool(latency.any())
        self.lost = latency if self.has_latency else self.samples
        frames = np.flatnonzero(tree.frames["kind"] == int(FrameKind.INSTRUCTION))
        self._reason = [""] * len(tree.frames["kind"])
        for frame in frames.tolist():
            self._reason[frame] = str(json_object(tree.text("detail", frame)).get("stall", ""))
        self._kernels: Mask = (tree.kinds == int(FrameKind.KERNEL)) & case.loop.inside & (case.gpu_time > 0)
        self._owner = nearest(tree.shape, self._kernels)

    def hot(self, share: float, samples: float) -> Iterator[SampledKernel]:
        """Those with at least that share of the device time and so many samples, the hottest first."""
        case, tree = self.case, self.case.tree
        all_of = subtree_sums(tree.shape, self.samples)
        names = tree.frames["name"][tree.frame_of].astype(np.int64)
        for group in case.grouped(self._kernels, case.gpu_time, names):
            part = group.value / max(case.cost_of_all, 1)
            if part < share:
                return
            seen = int(all_of[group.rows].sum())
            if seen < samples:
                continue
            lost: Counter[str] = Counter()
            at_work = hideable = 0
            for row in self.below(group).tolist():
                reason, count = self.reason(row), int(self.samples[row])
                lost[reason] += int(self.lost[row])
                operation = self.operation(row)
                if _for_units(reason) or ("MMA" in operation and stall_group(reason) not in _NOT_AT_WORK):
                    at_work += count
                elif stall_group(reason) not in NO_LOSS and not operation.startswith(_ASYNCHRONOUS):
                    hideable += int(self.lost[row])
            yield SampledKernel(group, part, seen, lost, self.has_latency, at_work, hideable)

    def below(self, group: Group) -> Rows:
        """Nodes of sampled instructions below these kernels."""
        return np.flatnonzero(np.isin(self._owner, group.rows) & (self.samples > 0))

    def reason(self, row: int) -> str:
        """Why the instruction at a node waited; empty where it did not."""
        return self._reason[int(self.case.tree.frame_of[row])]

    def operation(self, row: int) -> str:
        """`LDG.E.128` of `@P0 LDG.E.128 R4, [R2]`; empty where only its offset is known."""
        tree = self.case.tree
        text = tree.text("name", int(tree.frame_of[row]))
        words = [word for word in text.split() if not word.startswith(("@", "{", "+0x"))]
        return words[0] if words else ""

    def function(self, row: int) -> tuple[str, str]:
        """The hash of its code and the name of the function that an instruction is of, as far as they are known."""
        detail = json_object(self.case.tree.text("detail", int(self.case.tree.frame_of[row])))
        return str(detail.get("code", "")), str(detail.get("function", ""))

    def offset(self, row: int) -> int:
        """Of an instruction in its function."""
        return int(self.case.tree.frames["address"][int(self.case.tree.frame_of[row])])

    def waiting(self, group: Group, *reasons: str) -> Rows:
        """Those of `below` that lost time for one of these reasons (any, where none is given)."""
        below = self.below(group)
        below = below[self.lost[below] > 0]
        named = [self.reason(row) for row in below.tolist()]
        return below[[one in reasons if reasons else stall_group(one) not in NO_LOSS for one in named]]

    def hottest(self, waiting: Rows) -> list[tuple[str, int]]:
        """Places of the instructions that lost the most, and these samples."""
        places: Counter[str] = Counter()
        for row in waiting.tolist():
            places[self.place(row)] += int(self.lost[row])
        return places.most_common(3)

    def lines(self, waiting: Rows) -> list[tuple[str, int]]:
        """`k.cu:41` and the samples that were lost there; none where lines are unknown."""
        tree = self.case.tree
        found: Counter[str] = Counter()
        for row in waiting.tolist():
            frame = int(tree.frame_of[row])
            file, line = tree.text("file", frame), int(tree.frames["line"][frame])
            if file and line:
                found[f"{file.rpartition('/')[2]}:{line}"] += int(self.lost[row])
        return found.most_common(3)

    def place(self, row: int) -> str:
        """`kernel.cu:12 LDG.E`, or the address in the kernel where lines are unknown."""
        tree = self.case.tree
        frame = int(tree.frame_of[row])
        file, line = tree.text("file", frame), int(tree.frames["line"][frame])
        text, address = tree.text("name", frame), int(tree.frames["address"][frame])
        where = f"{file.rpartition('/')[2]}:{line}" if file and line else f"at {address:#x}"
        return where if text.startswith("+0x") else f"{where} {text}"


def in_words(reason: str) -> str:
    """`waits for data from global or local memory, or from a texture`."""
    return STALLS[reason].doc if reason in STALLS else f"waits for {reason.replace('_', ' ')}"
