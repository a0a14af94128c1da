"""What the rules about the inside of kernels share: hot kernels with the samples of their instructions, by reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from leadline.analysis.case import CannotTell, Case, Group
from leadline.analysis.columns import Mask, Rows, nearest, subtree_sums
from leadline.profiles.tree import json_object
from leadline.schema import STALLS, FrameKind, stall_group

NO_LOSS = ("", "issued", "not_chosen")
"""Groups of samples in which the warp lost nothing: it was issued, or ready and another one was."""


@dataclass(frozen=True)
class SampledKernel:
    """Kernels of one name. `share`: of the device time; `counts`: samples by reason; `stalled`: that lost time."""

    group: Group
    share: float
    seen: int
    latency: int
    counts: Counter[str]

    @cached_property
    def stalled(self) -> int:
        return sum(count for reason, count in self.counts.items() if stall_group(reason) not in NO_LOSS)

    @cached_property
    def ranked(self) -> list[tuple[str, int]]:
        """Reasons that lost time, the most first."""
        lost = ((reason, count) for reason, count in self.counts.items() if stall_group(reason) not in NO_LOSS)
        return sorted(lost, key=lambda one: (-one[1], one[0]))

    def of(self, *reasons: str) -> float:
        """Share of the samples, 0 to 1."""
        return sum(self.counts[reason] for reason in reasons) / max(self.seen, 1)


class SampledKernels:
    """All of one profile; raises CannotTell where no instructions were sampled."""

    def __init__(self, case: Case) -> None:
        self.case = case
        tree = case.tree
        self.samples = tree.exclusive("instruction_samples").sum
        if not self.samples.any():
            raise CannotTell("no instructions of kernels were sampled")
        self.latency = tree.exclusive("latency_samples").sum
        frames = np.flatnonzero(tree.frames["kind"] == int(FrameKind.INSTRUCTION))
        self._reason = [""] * len(tree.frames["kind"])
        for frame in frames.tolist():
            self._reason[frame] = str(json_object(tree.text("detail", frame)).get("stall", ""))
        self._kernels: Mask = (tree.kinds == int(FrameKind.KERNEL)) & case.loop.inside & (case.gpu_time > 0)
        self._owner = nearest(tree.shape, self._kernels)

    def hot(self, share: float, samples: float) -> Iterator[SampledKernel]:
        """Those with at least that share of the device time and so many samples, the hottest first."""
        case, tree = self.case, self.case.tree
        all_of, latency_of = subtree_sums(tree.shape, self.samples), subtree_sums(tree.shape, self.latency)
        names = tree.frames["name"][tree.frame_of].astype(np.int64)
        for group in case.grouped(self._kernels, case.gpu_time, names):
            part = group.value / max(case.cost_of_all, 1)
            if part < share:
                return
            seen = int(all_of[group.rows].sum())
            if seen < samples:
                continue
            counts: Counter[str] = Counter()
            for row in self.below(group).tolist():
                counts[self.reason(row)] += int(self.samples[row])
            yield SampledKernel(group, part, seen, int(latency_of[group.rows].sum()), counts)

    def below(self, group: Group) -> Rows:
        """Nodes of sampled instructions below these kernels."""
        return np.flatnonzero(np.isin(self._owner, group.rows) & (self.samples > 0))

    def reason(self, row: int) -> str:
        """Why the instruction at a node waited; empty where it did not."""
        return self._reason[int(self.case.tree.frame_of[row])]

    def hottest(self, group: Group, *reasons: str) -> list[tuple[str, int]]:
        """Places of instructions that waited for one of these (any, where none is given), and their samples."""
        places: Counter[str] = Counter()
        for row in self.below(group).tolist():
            reason = self.reason(row)
            if reason in reasons or (not reasons and stall_group(reason) not in NO_LOSS):
                places[self.place(row)] += int(self.samples[row])
        return places.most_common(3)

    def lines(self, group: Group, *reasons: str) -> list[tuple[str, int]]:
        """`k.cu:41` and samples there, of instructions that waited for one of these; none where lines are unknown."""
        tree = self.case.tree
        found: Counter[str] = Counter()
        for row in self.below(group).tolist():
            frame = int(tree.frame_of[row])
            file, line = tree.text("file", frame), int(tree.frames["line"][frame])
            if file and line and self.reason(row) in reasons:
                found[f"{file.rpartition('/')[2]}:{line}"] += int(self.samples[row])
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
