"""The start page as plain data. Times are nanoseconds of one step (of the run, where nothing repeats: `of` says which),
shares are of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leadline._dataclass import dataclass
from leadline.report.rank_bars import RankBar

if TYPE_CHECKING:
    from leadline.report.model import Place


@dataclass(frozen=True)
class BarPart:
    """`key` names the colour; `group`: "work", "wait", "idle" or "unexplained"; `node`: where it is largest,
    -1 where no node of the tree stands for it; `lines`: where it is, in words."""

    key: str
    label: str
    ns: int
    share: float
    group: str
    known: str
    node: int = -1
    lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class Bar:
    """One row of *One step*; the parts add up to the step. `scaled`: parts overlapped and were scaled to it."""

    name: str
    parts: tuple[BarPart, ...]
    scaled: bool = False


@dataclass(frozen=True)
class Line:
    """A line of the program (or, without lines, a module or operator) and what it takes of one step. `other_ns`:
    neither forward nor backward, named by `phase`."""

    place: Place | None
    name: str
    what: str
    phase: str
    forward_ns: int
    backward_ns: int
    other_ns: int
    ns: int
    share: float
    node: int


@dataclass(frozen=True)
class Kernel:
    """Device work of one step by kernel: `words` says what it computes, `name` is the raw one."""

    name: str
    words: str
    ns: int
    share: float
    calls: float
    node: int


@dataclass(frozen=True)
class Help:
    """One thing that would help. `change`: `about 38 ms of 174 ms (30 to 40 ms)`; `known`: measured, simulated,
    estimated, at most, or uncertain (`command` measures it); `command`: tries or shows it; `evidence` and `remedy` are
    the finding's."""

    do: str
    place: Place | None
    gain_ns: int
    low_ns: int
    high_ns: int
    known: str
    change: str
    rule: str
    scenario: str
    command: str
    remedy: str
    evidence: tuple[str, ...]
    nodes: tuple[int, ...]


@dataclass(frozen=True)
class Start:
    """What the first screen shows beside the verdict's sentence."""

    of: str
    wall_ns: int
    steps: int
    title: str
    min_ns: int
    max_ns: int
    walls_ns: tuple[int, ...]
    text: str
    node: int
    bars: tuple[Bar, ...]
    ranks: tuple[RankBar, ...]
    help: tuple[Help, ...]
    where: tuple[Line, ...]
    where_of: str
    no_lines: str
    kernels: tuple[Kernel, ...]
    device: str
    rules_silent: int
