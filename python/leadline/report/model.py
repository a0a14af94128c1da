"""The report as plain data: `build.build_report` makes one, every format draws the same one.

Times are nanoseconds (`_ns`), sizes bytes (`_bytes`). Nothing here is ever NaN; what was not measured is an empty
tuple or None.
"""

from __future__ import annotations

from leadline._dataclass import dataclass, field
from leadline.analysis.findings import Findings
from leadline.analysis.rows import Distribution, KernelRow, ModuleRow, OperatorRow, PhaseRow
from leadline.engines import Engine
from leadline.report.device_model import Busy, Device, Gpu
from leadline.report.ranks import Ranks, Spread
from leadline.report.start_model import Start
from leadline.report.steps import ShownSteps
from leadline.report.waits import WaitLine
from leadline.report.whole_tables import WholeTables
from leadline.verdict.model import Verdict

__all__ = [
    "Busy",
    "Device",
    "Distribution",
    "Gpu",
    "KernelRow",
    "ModuleRow",
    "OperatorRow",
    "PhaseRow",
]  # shown as they are derived


@dataclass(frozen=True)
class ReportOptions:
    """What the user asked of the report."""

    sort: str | None = None
    """Metric that orders paths and operators; None takes GPU time where there is some, else time."""
    top: int = 10
    """Rows per table."""
    focus: str | None = None
    """Regular expression; only call paths with a frame whose name or `file:line` it finds are counted."""
    hide_library_frames: bool = False
    """Leave Python frames of the standard library and of installed packages out of the paths shown."""
    frames: bool = True
    """Give every hot path its frames; the page draws paths from a tree of its own and needs none."""
    verdict: bool = False
    """Say first why the step is slow; takes the analyzer's time."""
    merge_layers: bool = False
    """Modules that differ only in layer numbers are one row of the module table."""
    whole_tables: bool = False  # those that a page sorts and filters, with nearly all their rows


@dataclass(frozen=True)
class FrameLine:
    """One frame of a path. `line` is 0 where unknown; `short` is the file as shown; `module` the class of an
    nn.Module frame.
    """

    kind: str
    name: str
    file: str
    line: int
    short: str = ""
    module: str = ""


@dataclass(frozen=True)
class Place:
    """The user's line a path is booked on. `short` is the file as shown; `function` is empty for the file's top
    level.
    """

    file: str
    short: str
    line: int
    function: str


@dataclass(frozen=True)
class HotPath:
    """Call paths of one user line, phase, (numbered layers merged) module and outermost operator, as one entry.

    `values`: metric name to exclusive sum over the entry. `frames`: the path with the largest part, root side first, of
    a very deep one its process, thread and innermost frames.
    `paths`: how many distinct paths were merged. `calls`: calls of the outermost operator.
    """

    place: Place | None
    module: str
    module_class: str
    modules: int
    phase: str
    operator: str
    calls: int
    paths: int
    values: dict[str, int]
    frames: tuple[FrameLine, ...]
    node: int
    inner: str = ""
    """The innermost function below the user's line, of a path that ends in Python or native code; may be empty."""
    ranks: Spread | None = None
    """Of folded ranks: how far they are apart at the node, with all below it."""
    callers: int = 1
    """Lines that call the function of the user's line; `frames` shows one of them."""


@dataclass(frozen=True)
class FunctionTime:
    """CPU time of one function by samples. `short` is the file as shown, `line` the one with most of its own time."""

    kind: str
    name: str
    file: str
    short: str
    line: int
    self_ns: int
    total_ns: int
    samples: int


@dataclass(frozen=True)
class CounterLine:
    """A user's line on which much of a counter was counted."""

    place: Place
    count: int


@dataclass(frozen=True)
class Counter:
    """A counter by its name in perf; `metric` is what `--sort` takes. `per_cpu_second`: None without CPU samples."""

    name: str
    metric: str
    total: int
    per_cpu_second: float | None
    lines: tuple[CounterLine, ...]


@dataclass(frozen=True)
class WaitingLine:
    """A user's line on which a thread waited; `state` is one of `leadline.analysis.waiting.STATES`."""

    state: str
    place: Place
    ns: int


@dataclass(frozen=True)
class ThreadWaiting:
    """What one thread waited for, by samples. `states_ns` has the states that occurred; with `ran_ns`, its CPU time,
    they make up the wall time as far as the thread was looked at."""

    process: str
    thread: str
    main: bool
    wall_ns: int
    ran_ns: int
    states_ns: dict[str, int]
    lines: tuple[WaitingLine, ...]


@dataclass(frozen=True)
class SplitPlace:
    """A user's line on which much of one part of a thread's time was spent."""

    part: str
    place: Place
    time_ns: int


@dataclass(frozen=True)
class TimeSplit:
    """How one thread spent its time; the nine parts add up to `wall_ns`. `estimated`: names of the parts that are not
    measured. See `leadline.analysis.timesplit` for what each part is.
    """

    process: str
    thread: str
    main: bool
    wall_ns: int
    operators_ns: int
    python_ns: int
    data_ns: int
    communication_ns: int
    compile_ns: int
    device_wait_ns: int
    no_work_ns: int
    other_wait_ns: int
    idle_ns: int
    device_wait_running_ns: int | None = None
    """Of `device_wait_ns`, how long the thread took a core (it spun); None where that was not measured."""
    estimated: tuple[str, ...] = ()
    places: tuple[SplitPlace, ...] = ()


@dataclass(frozen=True)
class Peak:
    """The moment a device's live tensor memory was largest, and who held it."""

    device: str
    peak_bytes: int
    holders: tuple[HotPath, ...]


@dataclass(frozen=True)
class Pool:
    """What an allocator held at the end, in bytes. `name`: empty for all of it; `largest_free_bytes`: the largest block
    that could be given away, None where nobody looked; `segments`: pieces of the device's memory, None: not counted."""

    name: str
    reserved_bytes: int
    in_use_bytes: int
    free_bytes: int
    largest_free_bytes: int | None
    segments: int | None


@dataclass(frozen=True)
class AllocatorPools:
    """An allocator of device memory: all of it first, then its pools."""

    device: str
    name: str
    pools: tuple[Pool, ...]


@dataclass(frozen=True)
class Memory:
    allocated_bytes: int
    freed_bytes: int
    allocations: int
    frees: int
    peaks: tuple[Peak, ...]
    allocators: tuple[AllocatorPools, ...] = ()


@dataclass(frozen=True)
class HeldBuffer:
    """Memory that an operation of a compiled program writes its result to; `place` is None where it was not seen."""

    bytes: int
    operation: str
    place: Place | None
    node: int | None
    """Row of the operation in the tree."""


@dataclass(frozen=True)
class CompiledProgram:
    """Memory of one run of a compiled program as its compiler has planned it. `buffers`: the largest of those that are
    alive when its temporary memory is fullest, or without `at_peak` the largest that there are."""

    name: str
    place: Place | None
    """Where it is called."""
    node: int
    """Its row in the tree, of the first place that calls it."""
    arguments_bytes: int
    results_bytes: int
    temporaries_bytes: int
    at_peak: bool
    buffers: tuple[HeldBuffer, ...]


@dataclass(frozen=True)
class LossRow:
    """Something that was not measured. `meaning` says what the kind is; `detail` is a sentence or empty."""

    kind: str
    count: int
    meaning: str
    detail: str
    process: str


@dataclass(frozen=True)
class Cost:
    """What measuring took: time in callbacks, and by how many `percent` the run is longer, None where the file does not
    say; `measured` by steps that were left out, else estimated."""

    callbacks_ns: int
    events: int
    held_bytes: int
    percent: float | None
    measured: bool


@dataclass(frozen=True)
class Meta:
    program: str
    started_at: str
    wall_ns: int
    paused_ns: int
    """Of `wall_ns`, how long measuring was paused; of several processes the longest."""
    host: str
    python: str
    frameworks: tuple[str, ...]
    estimates: tuple[str, ...]
    """What sources of events say of figures that they estimate rather than measure, a sentence each."""
    asked: str
    processes: int
    threads: int
    complete: bool
    file: str
    leadline: str


@dataclass(frozen=True)
class Total:
    """Sum of one metric over the whole profile."""

    unit: str
    sum: int
    count: int


@dataclass(frozen=True)
class Focus:
    """What `--focus` kept: the share of the sort metric, 0 to 1, and the paths it found."""

    pattern: str
    share: float
    nodes: int


@dataclass(frozen=True)
class Report:
    meta: Meta
    options: ReportOptions
    sort: str
    """What orders the operators (and the paths, unless it is count or call_time)."""
    path_metric: str
    """What orders the paths and their shares are shares of."""
    path_total: Total | None
    """What the shares of paths are shares of; None where nothing was measured."""
    imports_ns: int
    """CPU time of imports by samples, which are left out of the paths; 0 where they are not."""
    focus: Focus | None
    totals: dict[str, Total]
    splits: tuple[TimeSplit, ...]
    paths: tuple[HotPath, ...]
    paths_hidden: int
    functions: tuple[FunctionTime, ...]
    """By CPU samples; empty where none were taken."""
    functions_hidden: int
    operators: tuple[OperatorRow, ...]
    operators_hidden: int
    operator_calls: int
    """Of all operators, shown or not; `totals` counts calls of modules and functions too."""
    modules: tuple[ModuleRow, ...]
    modules_hidden: int
    phases: tuple[PhaseRow, ...]
    memory: Memory | None
    gpu: Gpu | None
    losses: tuple[LossRow, ...]
    cost: Cost
    programs: tuple[CompiledProgram, ...] = ()
    """Compiled programs with the most temporary memory."""
    counters: tuple[Counter, ...] = ()
    waiting: tuple[ThreadWaiting, ...] = ()
    """Where waiting threads were looked at."""
    waiting_hidden: int = 0
    """Threads that did nothing but wait."""
    next_commands: tuple[str, ...] = field(default=())
    waits: tuple[WaitLine, ...] = ()
    """What the loop's threads waited for, phase by phase, where the kernel was recorded."""
    findings: Findings | None = None
    """What `leadline analyze --save` left in the file."""
    ranks: Ranks | None = None
    """Of a profile of many ranks folded into one."""
    engine: Engine | None = None
    """What the engines of a server did, added up; None where none served."""
    start_up_ns: int = 0
    """What an engine took before it served, which is left out of the paths; 0 where it is not."""
    no_work_ns: int = 0
    """The same of its wait for requests."""
    verdict: Verdict | None = None
    """Why the step is slow, where it was asked for."""
    start: Start | None = None
    """What the first screen shows beside the verdict's sentence, where that was asked for."""
    steps: ShownSteps | None = None
    """None where nothing marks a step."""
    splits_hidden: tuple[int, int] = (0, 0)
    """Threads that are not in `splits`, and how long they ran, ns."""
    tables: WholeTables | None = None
