"""What capture writes into a part directory, as typed records; `to_json` gives the keys of docs/file-format.md."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from leadline._dataclass import asdict, dataclass, field

MOST_KILLED = 1000
"""Processes that one has ended, noted by number."""


class StartedBy(Enum):
    """Who began a session: whoever ends it makes the file."""

    SUPERVISOR = "supervisor"
    """`leadline run`; its program and all children only leave segments."""
    ENVIRONMENT = "environment"
    """LEADLINE=... without a supervisor. Processes of one job that start this way share a session."""
    PROGRAM = "program"
    """`leadline.start()` inside the program."""


@dataclass(frozen=True)
class SessionRecord:
    """`session.json`."""

    format: int
    id: str
    output: str
    argv: list[str]
    started_at_ns: int
    """CLOCK_REALTIME."""
    asked: Mapping[str, object]
    started_by: str
    job: str
    """What a scheduler or launcher says is one job (see `job.py`), or empty."""
    hostname: str
    flush_interval_s: float
    ended_at_ns: int | None = None
    """Set by whoever is about to make the file: nobody may join any more."""
    exit: dict[str, Any] | None = None
    observed: list[dict[str, Any]] = field(default_factory=list)
    """What the supervisor saw of the program's processes from outside (see observe.py)."""
    growth: list[dict[str, Any]] = field(default_factory=list)
    """Paths of the process that did most, in the early, middle and late part of the run (see snapshots.py)."""

    def to_json(self) -> dict[str, Any]:
        """For `write_json`."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> SessionRecord | None:
        """From a file, which anybody may have written: None where a field is missing or of another type."""
        known = {name: values[name] for name in cls.__annotations__ if name in values}
        texts = ("id", "output", "started_by", "job", "hostname")
        numbers = ("format", "started_at_ns", "flush_interval_s")
        good = (
            all(isinstance(known.get(name), str) for name in texts)
            and all(isinstance(known.get(name), int | float) for name in numbers)
            and isinstance(known.get("argv"), list)
            and isinstance(known.get("asked"), dict)
        )
        return cls(**known) if good else None


@dataclass
class ProcessRecord:
    """The side file of a process, and its entry in `meta.json`."""

    session: str
    """Id of the session."""
    identity: str
    """`str(ProcessIdentity)`: kept by exec, never given to another process."""
    parent_identity: str
    """The same of the process that started it, empty where unknown."""
    boot_id: str
    hostname: str
    pid: int
    parent_pid: int
    rank: int
    """-1 where unknown, as `local_rank`."""
    local_rank: int
    started_at_ns: int
    """CLOCK_REALTIME when measuring began; the `start_ns` of its row in the table `processes`."""
    program: dict[str, Any]
    clock: dict[str, int]
    complete: bool = False
    ended_at_ns: int | None = None
    wall_ns: int = 0
    paused_ns: int = 0
    """Of `wall_ns`, how long measuring was paused; left out where it never was."""
    available: dict[str, Any] = field(default_factory=dict)
    cost: dict[str, Any] = field(default_factory=dict)
    exit: dict[str, Any] | None = None
    python_frames: str = ""
    """"read", or why they are not."""
    not_written: str = ""
    """Why the last segment could not be written, or empty."""
    not_measured: str = ""
    """Why this process is not measured at all, or empty."""
    sources: dict[str, str] = field(default_factory=dict)
    """Source files of the program and their SHA-256; empty where the file is newer than the process."""
    launch: dict[str, str | int] = field(default_factory=dict)
    """What the launcher says of the job and of this rank's place in it (see `job.launch_facts`)."""
    dataflow: dict[str, Any] = field(default_factory=dict)
    """What depended on what in the trace window (see docs/timelines.md); empty without one."""
    labels: dict[str, str] = field(default_factory=dict)
    """What the program says of this process (`leadline.current().labels`)."""
    budget: dict[str, Any] = field(default_factory=dict)
    """What rested, when and for how long, so that measuring kept to its cost (see budget.py)."""
    duty: dict[str, Any] = field(default_factory=dict)
    """Which part of the steps was measured, and how much longer those took (see duty.py)."""
    first_step_begun: bool = False
    """Whether the beginning of the first step is known, so that as many steps were timed as ended."""
    attached: bool = False
    """Whether measuring was begun from outside, somewhere in the middle (`leadline attach`)."""
    tools: list[dict[str, Any]] = field(default_factory=list)
    """What event tools have found (docs/file-format.md)."""
    killed: list[int] = field(default_factory=list)
    """Numbers of processes that this one has sent SIGKILL, as servers do with their workers."""
    engines: list[dict[str, Any]] = field(default_factory=list)
    """Of each engine that serves in this process its steps, batches and requests (docs/file-format.md)."""
    forked_from: int | None = None
    """Number of the measured process that forked this one, None where it was started anew."""

    def to_json(self) -> dict[str, Any]:
        """For `write_json`; what has nothing to say is left out."""
        values = dict(vars(self))
        for name in (
            "paused_ns",
            "not_written",
            "not_measured",
            "sources",
            "launch",
            "dataflow",
            "budget",
            "duty",
            "labels",
            "forked_from",
            "attached",
            "first_step_begun",
            "tools",
            "engines",
            "killed",
        ):
            if not values[name]:
                del values[name]
        return values


@dataclass(frozen=True)
class Stats:
    """What the native side says of itself (`Native.stats` and `Native.stop`)."""

    cost: dict[str, Any]
    python_frames: bool
    python_frames_missing: str
    written: bool
    """Whether the last segment was written; true before the end."""
    write_status: str
    paused_ns: int
    losses: dict[str, Any]

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Stats:
        """From the native module's dictionary, of which more may be said in later versions."""
        return cls(
            cost=dict(values.get("cost") or {}),
            python_frames=bool(values.get("python_frames")),
            python_frames_missing=str(values.get("python_frames_missing") or ""),
            written=bool(values.get("written", True)),
            write_status=str(values.get("write_status") or ""),
            paused_ns=int(values.get("paused_ns") or 0),
            losses=dict(values.get("losses") or {}),
        )
