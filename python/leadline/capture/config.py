"""What the user asked for, as frozen dataclasses, and how it travels to child processes through the environment.

Promise: an `Options` that exists is valid; every wrong value is a ProfileError with one sentence.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from leadline._dataclass import asdict, dataclass
from leadline.capture.accelerator import HEAD, describe, names
from leadline.capture.errors import ProfileError

OUTPUT_VARIABLE = "LEADLINE"
"""Environment: the file to write. Its presence makes a Python process measure itself."""
SESSION_VARIABLE = "LEADLINE_SESSION"
"""Environment: the part directory of the session that runs; set by whoever owns the session."""
OPTIONS_VARIABLE = "LEADLINE_OPTIONS"
"""Environment: `Options` as a JSON object; absent means the defaults."""
KERNEL_VARIABLE = "LEADLINE_KERNEL"
"""Environment: the file to write `1` to when a trace window opens; set by a supervisor that records the kernel."""
VARIABLES = (OUTPUT_VARIABLE, SESSION_VARIABLE, OPTIONS_VARIABLE, KERNEL_VARIABLE)

USUAL_SAMPLE_HZ = 29.0
"""Samples per second that `leadline run` takes without being asked: Python's time is known, for under 0.5 % of it."""
CPU_SAMPLE_HZ = 99.0
"""Samples per second where none are named: close to 100, and in step with no clock."""
USUAL_WAIT_HZ = 11.0
"""How often `leadline run` looks at waiting threads without being asked: a look at a thread costs 20 to 60 µs."""
WAIT_HZ = 20.0
"""How often waiting threads are looked at where no rate is named."""
HIGHEST_WAIT_HZ = 1000.0
USUAL_BUDGET = 1.0
"""Percent of wall time that `leadline run` lets measuring cost, without being asked, in runs longer than LONG_RUN_S."""
LONG_RUN_S = 600.0
LOWEST_HZ = 0.1
HIGHEST_HZ = 10_000.0

SUFFIX = ".leadline"
PART_SUFFIX = ".leadline.part"

KERNEL_LEVELS = ("sched", "syscalls", "io", "faults")
"""What of the kernel can be recorded; each has all of those before it."""

INSTRUCTION_MODES = ("continuous", "serialised")
INSTRUCTION_BUDGET = 2.0
"""Percent of the time that sampling instructions may cost where nothing is said."""

GPU_METRICS = ("occupancy", "dram", "tensor", "l2", "issue", "shared", "global")
"""What hardware counters of kernels can say, what most people ask for first."""
REPLAYED_METRICS = ("global",)
"""Those that no device counts while kernels run as they do, so that they have to be run again."""

_UNREADABLE_WINDOW = "Cannot read the trace window {!r}; write steps=N or seconds=S, and maybe ,wait=N."


@dataclass(frozen=True)
class TraceWindow:
    """When single events are kept: so many training steps, or so many seconds, after a wait."""

    steps: int | None = None
    """Number of training steps kept; None when the window is given in seconds."""
    seconds: float | None = None
    """Length of the window in seconds; None when it is given in steps."""
    wait: float = 1
    """Steps (or seconds) passed over first. One by default: the first step allocates and compiles like no other."""

    def __post_init__(self) -> None:
        if (self.steps is None) == (self.seconds is None):
            raise ProfileError("A trace window needs either steps=N or seconds=S.")
        length = self.steps if self.steps is not None else self.seconds
        if length is None or not length > 0:
            raise ProfileError(f"A trace window must be longer than zero, not {length}.")
        if not self.wait >= 0:
            raise ProfileError(f"A trace window cannot wait for {self.wait}; give 0 or more.")
        if self.steps is not None and self.wait != int(self.wait):
            raise ProfileError(f"A trace window in steps waits for whole steps, not {self.wait}.")

    @classmethod
    def parse(cls, text: str) -> TraceWindow:
        """From `steps=N` or `seconds=S`, optionally followed by `,wait=N`; raises ProfileError."""
        fields: dict[str, float | int] = {}
        for item in text.split(","):
            name, equals, value = item.strip().partition("=")
            if not equals or name not in ("steps", "seconds", "wait") or name in fields:
                raise ProfileError(_UNREADABLE_WINDOW.format(text))
            try:
                fields[name] = int(value) if name == "steps" else float(value)
            except ValueError:
                raise ProfileError(f"Cannot read the number {value!r} in the trace window {text!r}.") from None
        return cls(**fields)  # type: ignore[arg-type]  # the names were checked above

    def __str__(self) -> str:
        length = f"{self.steps} steps" if self.steps is not None else f"{self.seconds:g} s"
        return f"{length} after {self.wait:g}"


@dataclass(frozen=True)
class Options:
    """What to measure. The defaults measure everything that costs little."""

    shapes: bool = False
    """Record shapes and types of operator inputs: one call path for each distinct input, so a larger tree."""
    memory: bool = True
    """Record tensor memory on the call paths that allocate it, with the paths that hold it at the peak."""
    modules: bool = True
    """Name the nn.Module that runs (`model.layers.3.attention`) in call paths."""
    follow: bool = True
    """Measure child processes too, into the same file."""
    nvtx: str = ""
    """NVTX domains of libraries to show as well, such as `NCCL,cuDNN`, or `all`; those of the program always show. A
    minus leaves a domain alone: `-TSL`, that of XLA, which otherwise names the operations of compiled programs."""
    trace: TraceWindow | None = None
    """Record single events during this window, for timelines; None records only the calling context tree."""
    kernel: str = ""
    """Events of the Linux kernel during the trace window: `sched`, `syscalls`, `io` or `faults`; each level includes
    those before it; empty for none. Only `leadline run` records them."""
    trace_max_events: int = 1_000_000
    """Maximum number of events in the trace windows of a process; more are counted as `events_dropped`."""
    flush_interval_s: float = 5.0
    """Seconds between writes to disk; a killed process loses at most so much."""
    max_nodes: int = 1_000_000
    """Maximum number of call paths of a thread; more count for their callers, and as `nodes_dropped`."""
    quiet: bool = False
    """Print nothing but errors."""
    cpu_sample: float = 0.0
    """CPU samples per second of CPU time, of every thread with its Python frames; 0 takes none."""
    cpu_sample_unasked: bool = False
    """CPU samples and waits are recorded by default, not on request: reports have no section for them."""
    wait: float = 0.0
    """Samples per second of what waiting threads wait for, and where; 0 takes none. CPU samples are taken too, at the
    usual rate if none is given."""
    tools: tuple[str, ...] = ()
    """Event tools to run, by name or file (see docs/how-to/tools.md)."""
    tool_options: tuple[str, ...] = ()
    """Their options, as TOOL.NAME=VALUE."""
    backend: str = "auto"
    """Source of the events for tools."""
    launch_range: str = ""
    """Launches A:B that tools examine, counted from 0; empty for all."""
    layer: str = ""
    """Regular expression for the modules whose launches tools examine."""
    phase: str = ""
    """The phase whose launches tools examine: forward, backward, optimizer."""
    kernel_name: str = ""
    """Regular expression for the kernels that tools examine."""
    every: int = 1
    """Tools examine one launch in so many."""
    instructions: str = ""
    """Samples of the instructions of GPU kernels. `continuous`: kernels of one name share the samples of a window;
    `serialised`: each launch has its own samples, and kernels do not overlap; empty: none. `budget` limits their cost,
    to 2 percent if it is 0."""
    no_code: bool = False
    """With `instructions`: store no machine code of kernels; samples are then offsets, without source lines."""
    gpu_metrics: tuple[str, ...] = ()
    """Hardware counters of kernels to read (`GPU_METRICS`). `budget` limits their cost, as above."""
    replay: bool = False
    """With `gpu_metrics`: run single kernels again until all counters are read (`REPLAYED_METRICS` need it). These
    kernels run one after the other, and the launching thread waits."""
    budget: float = 0.0
    """Maximum overhead in percent of wall time; data sources pause while it is exceeded. 0: no limit."""
    budget_after_s: float = 0.0
    """Seconds of measuring after which `budget` applies. More than 0 is a default, not a request."""
    duty: float = 0.0
    """Percent of the steps to measure, in random blocks; in the others only hooks and memory stay on. The file says how
    much longer measured steps took. 0: every step is measured."""
    counters: tuple[str, ...] = ()
    """Counters to read with CPU samples, by the names that perf gives them (`page-faults`, `cycles`)."""
    accelerators: tuple[str, ...] = ()
    """Accelerators to measure: TOML files that describe them, or the result of `leadline.capture.accelerator`."""
    native: str = ""
    """`yes`: record native frames (C, C++) in CPU samples, at the usual rate if none is given; `all`: also those of the
    interpreter."""

    hang_after_s: float = 60.0
    """When ranks of torch.distributed have waited for each other for so many seconds, a file says which rank is missing
    (docs/dump.md); earlier if torch would give up before. 0: never."""
    endpoint: str = ""
    """File for the address and token of an HTTP endpoint on the loopback address (see docs/live.md); empty for none."""

    def __post_init__(self) -> None:
        if not 0 < self.flush_interval_s < float("inf"):
            raise ProfileError(f"The flush interval must be longer than zero seconds, not {self.flush_interval_s}.")
        for name in ("max_nodes", "trace_max_events"):
            if getattr(self, name) >= 1 << 62:
                raise ProfileError(f"{name} is too large; give a number below 2^62.")
        if not 0 <= self.hang_after_s < float("inf"):
            raise ProfileError(f"The hang limit must be 0 (never) or more seconds, not {self.hang_after_s}.")
        if self.max_nodes < 1000:
            raise ProfileError(f"max_nodes must be 1000 or more, not {self.max_nodes}.")
        if self.kernel and self.kernel not in KERNEL_LEVELS:
            raise ProfileError(f"There is no kernel level {self.kernel!r}; the levels are {', '.join(KERNEL_LEVELS)}.")
        if self.kernel and self.trace is None:
            raise ProfileError("--os-trace records while a trace window is open; add --trace steps=5.")
        if self.instructions not in ("", *INSTRUCTION_MODES):
            raise ProfileError(f"Instructions are sampled {' or '.join(INSTRUCTION_MODES)}, not {self.instructions!r}.")
        for name in self.gpu_metrics:
            if name not in GPU_METRICS:
                raise ProfileError(f"There is no GPU metric {name!r}; there are {', '.join(GPU_METRICS)}, and all.")
            if name in REPLAYED_METRICS and not self.replay:
                raise ProfileError(f"The GPU metric {name!r} needs kernels to run several times; add --replay.")
        if self.replay and not self.gpu_metrics:
            raise ProfileError("--replay reads counters; name them with --gpu-metrics, such as all.")
        if self.gpu_metrics and self.instructions:
            raise ProfileError(
                "--instructions and --gpu-metrics use the same part of the device; measure them in two runs."
            )
        if self.native not in ("", "yes", "all"):
            raise ProfileError(f"Native frames are taken with `yes` or `all`, not {self.native!r}.")
        if self.cpu_sample != 0 and not LOWEST_HZ <= self.cpu_sample <= HIGHEST_HZ:
            raise ProfileError(
                f"The CPU sampling rate cannot be {self.cpu_sample:g} a second; choose {LOWEST_HZ:g} to {HIGHEST_HZ:g}."
            )
        if not 0 <= self.budget <= 100:
            raise ProfileError(f"The budget must be a share from 0% to 100%, not {self.budget:g}.")
        if not 0 <= self.budget_after_s < float("inf"):
            raise ProfileError(f"A budget applies after 0 or more seconds, not {self.budget_after_s}.")
        if not 0 <= self.duty < 100:
            raise ProfileError(f"A duty is a share of the steps above 0 and below 100 percent, not {self.duty:g}.")
        if self.duty and self.trace is not None:
            raise ProfileError("A trace window keeps steps in a row and --duty leaves steps out; choose one.")
        if self.wait != 0 and not LOWEST_HZ <= self.wait <= HIGHEST_WAIT_HZ:
            raise ProfileError(
                f"Waiting threads cannot be sampled {self.wait:g} times a second; choose {LOWEST_HZ:g} to "
                f"{HIGHEST_WAIT_HZ:g}."
            )
        if self.trace_max_events < 1:
            raise ProfileError(f"trace_max_events is at least 1, not {self.trace_max_events}.")

    @property
    def sample_hz(self) -> float:
        """CPU samples per second; 0 for none."""
        return self.cpu_sample or (CPU_SAMPLE_HZ if self.native or self.counters or self.wait else 0.0)

    @property
    def instruction_budget(self) -> float:
        """Percent of the time that sampling instructions, or reading counters of the GPU, may cost."""
        return INSTRUCTION_BUDGET if self.budget_after_s else self.budget or INSTRUCTION_BUDGET

    @classmethod
    def of(cls, values: Mapping[str, object]) -> Options:
        """From names and values, as a caller or a JSON object gives them; raises ProfileError for wrong ones.

        `trace` may be a TraceWindow, its text (`steps=5`) or the object that `asked` makes.
        """
        defaults = {name: getattr(cls, name) for name in cls.__annotations__}  # every option has one
        checked: dict[str, object] = {}
        for name, value in values.items():
            if name not in defaults:
                raise ProfileError(f"There is no option {name!r}; the options are {', '.join(defaults)}.")
            if name == "trace":
                checked[name] = _trace(value)
            elif name == "accelerators":
                checked[name] = tuple(one if one.startswith(HEAD) else describe(one) for one in _texts(name, value))
            elif isinstance(defaults[name], tuple):
                checked[name] = _texts(name, value)
            else:
                checked[name] = _same_type(name, value, defaults[name])
        return cls(**checked)  # type: ignore[arg-type]  # names and types were checked above

    @classmethod
    def from_json(cls, text: str) -> Options:
        """From the value of LEADLINE_OPTIONS; raises ProfileError."""
        try:
            values = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ProfileError(f"Cannot read {OPTIONS_VARIABLE}: it is not JSON ({error}).") from None
        if not isinstance(values, dict):
            raise ProfileError(f'Cannot read {OPTIONS_VARIABLE}: it must be an object such as {{"shapes": true}}.')
        return cls.of(values)

    def asked(self) -> dict[str, object]:
        """As plain values, for `session.json`, `meta.json` and LEADLINE_OPTIONS."""
        return asdict(self)

    def to_json(self) -> str:
        """As one line of JSON that `from_json` reads back."""
        return json.dumps(self.asked())

    def mode(self) -> str:
        """What is measured, in a few words for the banner."""
        parts = ["calling context tree"]
        if self.trace is not None:
            parts.append(f"trace of {self.trace}")
        if self.kernel:
            parts.append(f"kernel ({self.kernel})")
        if self.shapes:
            parts.append("shapes")
        if self.memory:
            parts.append("memory")
        if self.sample_hz:
            parts.append(f"CPU samples at {self.sample_hz:g} Hz{' with native frames' if self.native else ''}")
        if self.wait:
            parts.append(f"waiting at {self.wait:g} Hz")
        if self.instructions:
            parts.append(f"instructions of kernels ({self.instructions}, {self.instruction_budget:g} % of the time)")
        if self.accelerators:
            parts.append(f"accelerator {', '.join(names(self.accelerators))}")
        if self.gpu_metrics:
            way = "replaying kernels, " if self.replay else ""
            parts.append(f"GPU metrics {', '.join(self.gpu_metrics)} ({way}{self.instruction_budget:g} % of the time)")
        if self.counters:
            parts.append(f"counters {', '.join(self.counters)}")
        if self.duty:
            parts.append(f"{self.duty:g} % of the steps")
        if self.budget:
            after = f" after {self.budget_after_s / 60:g} min" if self.budget_after_s else ""
            parts.append(f"overhead limit {self.budget:g} %{after}")
        if self.tools:
            parts.append(f"tools {', '.join(self.tools)}")
        parts.append("children followed" if self.follow else "first process only")
        return ", ".join(parts)


def _trace(value: object) -> TraceWindow | None:
    if value is None or isinstance(value, TraceWindow):
        return value
    if isinstance(value, str):
        return TraceWindow.parse(value)
    if isinstance(value, Mapping) and set(value) <= {"steps", "seconds", "wait"}:
        if not all(one is None or isinstance(one, int | float) for one in value.values()):
            raise ProfileError(_UNREADABLE_WINDOW.format(value))
        return TraceWindow(**value)
    raise ProfileError(_UNREADABLE_WINDOW.format(value))


def _texts(name: str, value: object) -> tuple[str, ...]:
    if isinstance(value, list | tuple) and all(isinstance(one, str) for one in value):
        return tuple(value)
    raise ProfileError(f"The option {name} must be a list of texts, not {value!r}.")


def _same_type(name: str, value: object, default: object) -> object:
    """`value` when it has the type of the option's default; an integer will do for a float."""
    if isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) is not type(default):
        raise ProfileError(f"The option {name} must be a {type(default).__name__}, not {value!r}.")
    return value
