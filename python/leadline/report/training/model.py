"""The summary of a training run. Times are nanoseconds, sizes bytes."""

from __future__ import annotations

from leadline._dataclass import dataclass
from leadline.analysis.efficiency import Efficiency
from leadline.analysis.memorysnapshot import Allocator
from leadline.analysis.overlap import WallSplit


@dataclass(frozen=True)
class Steps:
    """Wall time of the steps that the loop told of, between their begin and end. `measured`: those in the call tree,
    all of them but where a budget left some out."""

    count: int
    measured: int
    first: int | None
    last: int | None
    recorded: tuple[int, ...]
    mean_ns: float
    median_ns: float
    p95_ns: float
    min_ns: int
    max_ns: int
    std_ns: float
    between_ns: int
    """Between steps: evaluation, checkpoints, whatever the loop does there."""


@dataclass(frozen=True)
class Share:
    """Time of one class of work, summed over streams and threads; `exposed_ns` is wall time."""

    name: str
    time_ns: int
    calls: int


@dataclass(frozen=True)
class Hot:
    """A kernel or operator with the user's line and the module that it ran for."""

    name: str
    kind: str
    time_ns: int
    calls: int
    place: str
    module: str


@dataclass(frozen=True)
class Holder:
    """Who held memory at the peak of a device, in bytes; `line` is the user's, `operator` the outermost below it."""

    device: str
    place: str
    module: str
    operator: str
    held: int
    in_snapshot: int
    """Live bytes that torch's own snapshot has for this line; 0 where there is no snapshot."""


@dataclass(frozen=True)
class Change:
    """A figure of this summary and of the one before it in the folder."""

    name: str
    before: float
    now: float


@dataclass(frozen=True)
class TrainingSummary:
    """Everything that summary.md shows."""

    program: str
    profile: str
    host: str
    rank: int
    world_size: int
    missing_ranks: tuple[int, ...]
    """Began and were not seen to end when the summary was made."""
    absent_ranks: tuple[int, ...]
    """Were to be measured and have left nothing in the folder."""
    hardware: tuple[str, ...]
    schedule: str
    started_at_ns: int
    steps: Steps
    metric: str
    """`gpu_time` where there is device work, else `time`: of operators on the CPU."""
    walls: tuple[tuple[str, WallSplit], ...]
    """Device (or process) and how the recorded steps' wall time splits there."""
    shares: tuple[Share, ...]
    hot: tuple[Hot, ...]
    efficiency: Efficiency | None
    """None where shapes were not measured."""
    peaks: tuple[tuple[str, int], ...]
    holders: tuple[Holder, ...]
    allocators: tuple[Allocator, ...]
    """Of torch's snapshot, where one was taken."""
    out_of_memory: str
    """What the error said; empty where memory sufficed."""
    data_ns: int
    losses: tuple[str, ...]
    findings: tuple[str, ...] = ()
    """What `leadline analyze` finds first, in a line each."""
    changes: tuple[Change, ...] = ()
