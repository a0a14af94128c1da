"""What a training loop asks for, from wherever teams keep it: TOML, a mapping, a dataclass, keywords, the environment.

Promise: a `TrainingConfig` that exists is valid; every wrong value is a ProfileError with one sentence, and an unknown
key names the nearest known one.
"""

from __future__ import annotations

import dataclasses
import difflib
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leadline.capture.errors import ProfileError

PREFIX = "LEADLINE_TRAINING_"
"""Environment: `LEADLINE_TRAINING_END_STEP=12` and so on; stronger than a file, weaker than keyword arguments."""

_WINDOWS = ("start_step", "end_step")
_CYCLES = ("wait", "warmup", "active", "repeat", "skip_first")
_RANKS = ("all", "first-of-node")
_ON_DEMAND = ("", "signal", "file", "http", "store")


@dataclass(frozen=True)
class TrainingConfig:
    """When single events are kept, on which ranks, and where files go. The calling context tree counts all the time.

    Either `start_step` and `end_step` (one window of absolute step numbers), or `wait`, `warmup`, `active`, `repeat`,
    `skip_first` as in `torch.profiler.schedule`, counted from step 0 of the run, not of the process.
    """

    enable: bool = False
    """Nothing is measured, and nothing costs anything, until this is true."""
    start_step: int | None = None
    """First step recorded (inclusive); 5 where no window is given at all."""
    end_step: int | None = None
    """Step before which recording ends (exclusive); 8 where no window is given at all."""
    trace_dir: str = "profiles"
    """Folder of the files; made where it does not exist."""
    wait: int = 0
    """Steps passed over at the beginning of each cycle."""
    warmup: int = 0
    """Steps passed over after those: nothing has to warm up here, the numbers stay those of torch's schedule."""
    active: int | None = None
    """Steps recorded in each cycle."""
    repeat: int = 0
    """Cycles; 0 for as long as the run lasts."""
    skip_first: int = 0
    """Steps passed over once, before the first cycle."""
    accumulation: int = 1
    """Micro-batches per step, where the loop gives `step` the numbers of micro-batches."""
    ranks: str = "all"
    """Ranks that measure: `all`, `first-of-node`, or numbers such as `0,8`."""
    memory: bool = True
    """Book tensor memory on the call paths that allocate it."""
    shapes: bool = False
    """Keep the shapes of operator inputs; needed for FLOPs."""
    memory_history: bool = False
    """Let torch's allocator of CUDA devices keep the stack of each allocation, for the snapshot at an out-of-memory."""
    stack: bool = True
    """Python frames in call paths. They cost too little to be left out: only true is possible."""
    cpu_sample: float = 0.0
    """CPU samples per second of CPU time, which say where Python takes the step between operators; 0 takes none."""
    native: bool = False
    """Native frames (C, C++) in CPU samples, which are taken at the usual rate where `cpu_sample` gives none."""
    flush_interval_s: float = 30.0
    """Seconds between segments: what a killed process loses at most. Each costs a thread of ours some milliseconds."""
    hang_after_s: float = 60.0
    """As `Options.hang_after_s`: ranks that have waited for each other for so long leave a file; 0: never."""
    roll_minutes: float = 0.0
    """Begin a new file after so many minutes, at the end of a step; 0 keeps the run in one file."""
    budget: float | None = None
    """Percent of wall time that measuring may cost: steps are left out where it costs more. 0 measures every step; by
    default that is so in a run with one file, and 0.8 where files are rolled."""
    max_files: int = 0
    """Most profiles of this rank kept in the folder, the oldest are removed; 0 keeps all."""
    max_events: int = 1_000_000
    """Most single events kept per process."""
    merge: bool = False
    """Rank 0 waits for the files of the other ranks at the end and merges them into one."""
    merge_timeout_s: float = 60.0
    """Seconds that rank 0 waits for them; who has not come by then is named as missing."""
    upload: str = ""
    """Where files go besides, as fsspec names it: `s3://bucket/run`, `gs://...`; empty for nowhere."""
    on_demand: str = ""
    """How a window is opened in a running job: `signal`, `file`, `http`, `store`, or empty for not at all."""
    on_demand_steps: int = 3
    """Steps that such a window lasts."""

    def __post_init__(self) -> None:
        given = self.start_step is not None or self.end_step is not None
        if given and self.active is not None:
            raise ProfileError("Give start_step and end_step, or wait, warmup and active, not both.")
        if not given and self.active is None:
            if cycle := [name for name in _CYCLES if getattr(self, name)]:
                raise ProfileError(f"{cycle[0]} needs active, the number of steps to record in each cycle.")
            object.__setattr__(self, "start_step", 5)
            object.__setattr__(self, "end_step", 8)
        elif given:
            self._check_window()
        self._check_numbers()
        if self.ranks not in _RANKS:
            numbers = [item.strip() for item in self.ranks.split(",")]
            if not all(item.isdigit() for item in numbers):
                raise ProfileError(
                    f"Cannot read ranks {self.ranks!r}; write all, first-of-node, or numbers such as 0,8."
                )
        if self.on_demand not in _ON_DEMAND:
            raise ProfileError(f"Cannot open windows by {self.on_demand!r}; write signal, file, http or store.")
        if not self.stack:
            raise ProfileError("stack = false is not possible: every measurement belongs to a call path.")
        if not self.trace_dir:
            raise ProfileError("trace_dir is empty; name a folder, such as profiles.")

    def _check_window(self) -> None:
        if cycle := [name for name in _CYCLES if getattr(self, name)]:
            raise ProfileError(f"{cycle[0]} belongs to wait, warmup and active, not to start_step and end_step.")
        if self.end_step is None:
            raise ProfileError(f"start_step = {self.start_step} needs end_step, the step before which recording ends.")
        if self.start_step is None:
            object.__setattr__(self, "start_step", 0)
        start, end = self.start_step or 0, self.end_step
        if start < 0:
            raise ProfileError(f"start_step cannot be {start}: steps are counted from 0.")
        if end <= start:
            raise ProfileError(
                f"end_step ({end}) must be greater than start_step ({start}): the window is from start_step up to, but "
                "not with, end_step."
            )

    def _check_numbers(self) -> None:
        for name in ("wait", "warmup", "repeat", "skip_first", "max_files"):
            if getattr(self, name) < 0:
                raise ProfileError(f"{name} cannot be {getattr(self, name)}; give 0 or more.")
        if not 0 < self.flush_interval_s < float("inf"):
            raise ProfileError(f"flush_interval_s cannot be {self.flush_interval_s}; give more than 0.")
        if self.budget is not None and not 0 <= self.budget <= 100:
            raise ProfileError(f"budget cannot be {self.budget}; give percent of wall time, 0 to 100.")
        for name in ("roll_minutes", "merge_timeout_s", "hang_after_s"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise ProfileError(f"{name} cannot be {getattr(self, name)}; give 0 or more.")
        for name in ("accumulation", "max_events", "on_demand_steps", "active"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise ProfileError(f"{name} cannot be {getattr(self, name)}; give 1 or more.")

    def rank_measures(self, rank: int, local_rank: int) -> bool:
        """Whether this rank is one of those that were asked for."""
        if self.ranks == "all":
            return True
        if self.ranks == "first-of-node":
            return local_rank <= 0
        return rank in {int(item) for item in self.ranks.split(",")}


def read_config(source: object = None, /, **keywords: Any) -> TrainingConfig:
    """The configuration in `source`, with the environment and then `keywords` over it; raises ProfileError.

    `source`: a TrainingConfig, a mapping, a dataclass or any object with such attributes (a section called `profiling`
    or `training` inside is taken), the path of a TOML file, or None for `[tool.leadline.training]` in the
    pyproject.toml of the working directory, where there is one.
    """
    values = {**_values(source), **_environment(os.environ), **keywords}
    return _checked(values)


def _values(source: object) -> dict[str, Any]:
    if source is None:
        path = Path("pyproject.toml")
        return _from_toml(path, required=False) if path.is_file() else {}
    if isinstance(source, str | os.PathLike):
        return _from_toml(Path(source), required=True)
    if isinstance(source, Mapping):
        return _section(dict(source))
    if isinstance(source, TrainingConfig):
        default = {field.name: field.default for field in dataclasses.fields(source)}
        chosen = {name: getattr(source, name) for name in default}
        return {name: value for name, value in chosen.items() if value != default[name]}
    if dataclasses.is_dataclass(source) and not isinstance(source, type):
        return _section({field.name: getattr(source, field.name) for field in dataclasses.fields(source)})
    if hasattr(source, "__dict__"):
        return _section({name: value for name, value in vars(source).items() if not name.startswith("_")})
    raise ProfileError(f"Cannot read a training configuration from {source!r}; give a mapping, a dataclass or a file.")


def _section(values: dict[str, Any]) -> dict[str, Any]:
    """The values themselves, or those of the section inside them that is about profiling."""
    known = {field.name for field in dataclasses.fields(TrainingConfig)}
    for name in ("profiling", "training"):
        inner = values.get(name)
        if inner is not None and not known & set(values):
            return _values(inner)
    return values


def _from_toml(path: Path, *, required: bool) -> dict[str, Any]:
    try:
        if sys.version_info >= (3, 11):
            import tomllib
        else:
            import tomli as tomllib
    except ImportError:
        if not required:
            return {}
        raise ProfileError(f"Python 3.10 reads {path} with tomli only; install it, or give a mapping.") from None
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        if not required:
            return {}
        reason = error.strerror if isinstance(error, OSError) else error
        raise ProfileError(f"Cannot read the training configuration {path}: {reason}.") from None
    found: Any = content
    for name in ("tool", "leadline", "training"):
        found = found.get(name) if isinstance(found, dict) else None
    if found is None:
        found = content.get("profiling")
    if found is None and required:
        raise ProfileError(f"{path} has no section [tool.leadline.training] and none called [profiling].")
    if not isinstance(found, dict | None):
        raise ProfileError(f"The profiling section of {path} must be a table.")
    return found or {}


def _environment(environment: Mapping[str, str]) -> dict[str, Any]:
    """Values of LEADLINE_TRAINING_*, as the types that their fields have."""
    fields = {field.name: field for field in dataclasses.fields(TrainingConfig)}
    values: dict[str, Any] = {}
    for variable, text in environment.items():
        if not variable.startswith(PREFIX):
            continue
        name = variable[len(PREFIX) :].lower()
        values[name] = _from_text(variable, text, fields[name]) if name in fields else text
    return values


def _from_text(variable: str, text: str, field: dataclasses.Field[Any]) -> object:
    kind = str(field.type)
    try:
        if kind == "bool":
            return {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}[text.lower()]
        if kind.startswith("int"):
            return int(text)
        return float(text) if kind.startswith("float") else text
    except (KeyError, ValueError):
        wanted = "true or false" if kind == "bool" else "a number"
        raise ProfileError(f"{variable} must be {wanted}, not {text!r}.") from None


def _checked(values: Mapping[str, Any]) -> TrainingConfig:
    fields = {field.name: field for field in dataclasses.fields(TrainingConfig)}
    checked: dict[str, Any] = {}
    for name, value in values.items():
        if name not in fields:
            near = difflib.get_close_matches(str(name), fields, 1, 0.4)
            advice = f"did you mean {near[0]}?" if near else f"the keys are {', '.join(fields)}."
            raise ProfileError(f"There is no key {name!r} in a training configuration; {advice}")
        checked[name] = _typed(name, value, str(fields[name].type))
    return TrainingConfig(**checked)


def _typed(name: str, value: object, kind: str) -> object:
    if name == "ranks" and not isinstance(value, str | bool):
        if isinstance(value, int):
            return str(value)
        if isinstance(value, list | tuple | set):
            return ",".join(str(item) for item in value)
    if name == "on_demand" and value in (None, False):
        return ""
    if name == "trace_dir" and isinstance(value, os.PathLike):
        return os.fspath(value)
    if value is None and "None" in kind:
        return None
    if kind.startswith("float") and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    wanted = {"bool": bool, "int": int, "str": str, "float": float}[kind.split(" ")[0]]
    if type(value) is not wanted:
        article = "a whole number" if wanted is int else "true or false" if wanted is bool else f"a {wanted.__name__}"
        raise ProfileError(f"{name} must be {article}, not {value!r}.")
    return value
