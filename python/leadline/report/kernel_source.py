"""Heat on the source of kernels: where samples of their instructions fell, line by line, and why they waited there.

A line counts what was sampled of it and of what was inlined into it; one inlined into itself counts once.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import TypeVar

import numpy as np

from leadline._dataclass import dataclass
from leadline.analysis.case import sources_of
from leadline.analysis.columns import nearest
from leadline.analysis.sourcecode import Sources
from leadline.profiles import Profile, Tree
from leadline.profiles.tree import json_object
from leadline.report.build import BadPatternError
from leadline.schema import STALLS, FrameKind, stall_group

_K = TypeVar("_K")
_KERNELS = (int(FrameKind.KERNEL), int(FrameKind.COLLECTIVE))


@dataclass(frozen=True)
class Reason:
    """Why instructions waited. `group` is one of schema.STALL_GROUPS, `name` the vendor's word."""

    name: str
    group: str
    samples: int


@dataclass(frozen=True)
class LineHeat:
    """One line of source. `samples` with what was inlined there, `own` without; `text` is empty where the file is not
    there, or no longer what ran."""

    file: str
    line: int
    function: str
    text: str
    samples: int
    own: int
    reasons: tuple[Reason, ...]


@dataclass(frozen=True)
class InstructionHeat:
    """One instruction. `text` as the vendor's disassembler writes it, or its offset."""

    offset: int
    text: str
    file: str
    line: int
    samples: int
    reasons: tuple[Reason, ...]


@dataclass(frozen=True)
class KernelHeat:
    """All launches of kernels of one name. `issued`: samples of instructions that did not wait."""

    name: str
    gpu_ns: int
    samples: int
    latency: int
    issued: int
    reasons: tuple[Reason, ...]
    lines: tuple[LineHeat, ...]
    instructions: tuple[InstructionHeat, ...]


def kernel_heat(profile: Profile, pattern: str | None = None) -> list[KernelHeat]:
    """Kernels whose instructions were sampled, the most samples first; `pattern`: a regular expression for their names.
    Raises BadPatternError."""
    try:
        wanted = re.compile(pattern) if pattern else None
    except re.error as error:
        raise BadPatternError(f"--focus {pattern!r} is not a regular expression ({error}).") from None
    tree = profile.tree
    samples = tree.exclusive("instruction_samples").sum
    latency = tree.exclusive("latency_samples").sum
    gpu_time = tree.exclusive("gpu_time").sum
    is_kernel = np.isin(tree.kinds, _KERNELS)
    owner = nearest(tree.shape, is_kernel)
    sources = sources_of(profile)
    grouped: dict[str, list[int]] = {}
    for row in np.flatnonzero((samples > 0) & (owner >= 0) & (tree.kinds == int(FrameKind.INSTRUCTION))).tolist():
        name = tree.text("name", int(tree.frame_of[owner[row]]))
        if wanted is None or wanted.search(name):
            grouped.setdefault(name, []).append(row)
    time_of: Counter[str] = Counter()
    for row in np.flatnonzero(is_kernel).tolist():
        time_of[tree.text("name", int(tree.frame_of[row]))] += int(gpu_time[row])
    made = []
    for name, rows in grouped.items():
        lines: dict[tuple[str, int], _Heat] = {}
        instructions: dict[tuple[int, str], _Heat] = {}
        whole = _Heat()
        for row in rows:
            count, frame = int(samples[row]), int(tree.frame_of[row])
            stall = str(json_object(tree.text("detail", frame)).get("stall", ""))
            whole.add(stall, count)
            offset = int(tree.frames["address"][frame])
            instructions.setdefault((offset, tree.text("name", frame)), _Heat(frame=frame)).add(stall, count)
            for depth, (place, at) in enumerate(_lines_above(profile, row, int(owner[row]))):
                lines.setdefault(place, _Heat(frame=at)).add(stall, count, own=depth == 0)
        made.append(
            KernelHeat(
                name,
                time_of[name],
                whole.samples,
                int(latency[rows].sum()),
                whole.issued,
                whole.reasons(),
                tuple(_line_heat(tree, sources, place, heat) for place, heat in _hottest(lines)),
                tuple(_instruction_heat(tree, place, heat) for place, heat in _hottest(instructions)),
            )
        )
    return sorted(made, key=lambda one: (-one.samples, one.name))


class _Heat:
    def __init__(self, frame: int = 0) -> None:
        self.frame = frame
        self.samples = self.own = 0
        self.counted: Counter[str] = Counter()

    def add(self, stall: str, count: int, *, own: bool = True) -> None:
        self.samples += count
        self.own += count if own else 0
        self.counted[stall] += count

    @property
    def issued(self) -> int:
        """Without a reason where reasons are known at all: samples that tell the place alone say nothing of it."""
        return self.counted["selected"] + (self.counted[""] if any(self.counted.keys() - {""}) else 0)

    def reasons(self) -> tuple[Reason, ...]:
        ranked = sorted(self.counted.items(), key=lambda one: (-one[1], one[0]))
        return tuple(Reason(name, stall_group(name), count) for name, count in ranked if name)


def _line_heat(tree: Tree, sources: Sources, place: tuple[str, int], heat: _Heat) -> LineHeat:
    file, line = place
    text = _text(sources, file, line)
    return LineHeat(file, line, tree.text("name", heat.frame), text, heat.samples, heat.own, heat.reasons())


def _instruction_heat(tree: Tree, place: tuple[int, str], heat: _Heat) -> InstructionHeat:
    offset, text = place
    file, line = tree.text("file", heat.frame), int(tree.frames["line"][heat.frame])
    return InstructionHeat(offset, text, file, line, heat.samples, heat.reasons())


def _hottest(heats: dict[_K, _Heat]) -> list[tuple[_K, _Heat]]:
    return sorted(heats.items(), key=lambda one: (-one[1].samples, str(one[0])))


def _lines_above(profile: Profile, row: int, kernel: int) -> Iterable[tuple[tuple[str, int], int]]:
    """((file, line), frame) that an instruction was inlined through, the innermost first, each once."""
    tree = profile.tree
    parent = tree.shape.parent
    seen = set()
    at = int(parent[row])
    while at not in (kernel, -1):
        frame = int(tree.frame_of[at])
        place = (tree.text("file", frame), int(tree.frames["line"][frame]))
        if place not in seen:
            seen.add(place)
            yield place, frame
        at = int(parent[at])


def _text(sources: Sources, file: str, line: int) -> str:
    source = sources.of(file)
    return source.text(line) if source else ""


def reason_words(reason: Reason) -> str:
    """`waits for data from global or local memory, or from a texture (long_scoreboard)`."""
    known = STALLS.get(reason.name)
    return f"{known.doc} ({reason.name})" if known else f"waits for {reason.name.replace('_', ' ')}"
