"""What a process says of itself in its side file `<pid>-<start_ns>-<machine>.json`: who, what, by which clock."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

from leadline._dataclass import dataclass
from leadline.capture.current import CURRENT
from leadline.capture.identity import ProcessIdentity, boot_id
from leadline.capture.job import launch_facts
from leadline.capture.records import ProcessRecord

_LAUNCHERS = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", ""),  # Open MPI
    ("PMI_RANK", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", ""),  # MPICH, Intel MPI
    ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NUM_NODES"),  # srun
)
"""Variables of a task: its rank, its rank on its machine, and numbers of tasks and of machines that these are on."""
_CLOCK_TRIES = 16


@dataclass(frozen=True)
class MeasuredProcess:
    """One measuring of one process: exec and a second session begin another one in the same process."""

    identity: ProcessIdentity
    parent: ProcessIdentity | None
    """None where the parent has ended, or counts in another namespace."""
    parent_pid: int
    started_at_ns: int
    """CLOCK_REALTIME when measuring began."""
    started_monotonic_ns: int
    """CLOCK_MONOTONIC at the same moment."""

    @classmethod
    def here(cls) -> MeasuredProcess:
        """The calling process, now."""
        parent_pid = os.getppid()
        parent = ProcessIdentity.of(parent_pid)
        return cls(ProcessIdentity.here(), parent, parent_pid, time.time_ns(), time.monotonic_ns())

    @property
    def stem(self) -> str:
        """The name of the process's files in the part directory."""
        one = self.identity
        return f"{one.pid}-{self.started_at_ns}-{one.machine}.{one.namespace}"


def first_record(process: MeasuredProcess, session_id: str) -> ProcessRecord:
    """The side file at the start: everything but what only the end can tell."""
    ranks = ranks_of_launcher()
    return ProcessRecord(
        session=session_id,
        identity=str(process.identity),
        parent_identity=str(process.parent or ""),
        boot_id=boot_id(),
        hostname=os.uname().nodename,
        pid=process.identity.pid,
        parent_pid=process.parent_pid,
        rank=ranks[0],
        local_rank=ranks[1],
        started_at_ns=process.started_at_ns,
        program=describe_program(),
        clock=relate_clocks(),
        launch=launch_facts(),
        attached=CURRENT.from_outside,
    )


def native_info(record: ProcessRecord) -> dict[str, Any]:
    """The same, as far as the segment's table of processes needs it (`Native.set_process_info`)."""
    return {
        "rank": record.rank,
        "local_rank": record.local_rank,
        "name": " ".join(sys.orig_argv).encode("utf-8", "backslashreplace").decode(),
        "start_ns": record.started_at_ns,
    }


def take_rank(record: ProcessRecord, rank: int, world_size: int) -> bool:
    """The rank that the program itself knows, of `world_size` (0: not said); whether that is news. What a launcher has
    put into the environment counts more."""
    if record.rank >= 0 or rank < 0:
        return False
    record.rank = rank
    if world_size > 0:
        record.launch = {"world_size": world_size, **record.launch}
    return True


def describe_program() -> dict[str, Any]:
    """Command line, interpreter and working directory of this process."""
    try:
        folder = str(Path.cwd())
    except OSError:
        folder = ""  # deleted under the program's feet
    return {
        "argv": list(sys.orig_argv),
        "python": ".".join(map(str, sys.version_info[:3])),
        "implementation": sys.implementation.name,
        "executable": sys.executable,
        "cwd": folder,
    }


def relate_clocks() -> dict[str, int]:
    """CLOCK_MONOTONIC and CLOCK_REALTIME of one moment.

    One reading of the second clock is bracketed by two of the first; the tightest of a few brackets counts, and half
    its width is the uncertainty.
    """
    brackets = []
    for _ in range(_CLOCK_TRIES):
        before = time.monotonic_ns()
        realtime_ns = time.time_ns()
        after = time.monotonic_ns()
        brackets.append((after - before, (before + after) // 2, realtime_ns))
    width, monotonic_ns, realtime_ns = min(brackets)
    return {"monotonic_ns": monotonic_ns, "realtime_ns": realtime_ns, "uncertainty_ns": (width + 1) // 2}


def ranks_of_launcher() -> tuple[int, int]:
    """Rank and local rank as the launcher told them, -1 where none did.

    One task on each machine (`srun --ntasks-per-node=1 torchrun`) is most likely another launcher, whose own ranks
    count, so that task's number is no rank.
    """
    if (rank := environment_number("RANK")) >= 0:
        return rank, environment_number("LOCAL_RANK")
    for name, local, tasks, machines in _LAUNCHERS:
        if environment_number(tasks, 0) > environment_number(machines, 1) and (rank := environment_number(name)) >= 0:
            return rank, environment_number(local)
    return -1, -1


def environment_number(name: str, default: int = -1) -> int:
    """A number that a launcher has put into the environment (`torchrun` sets RANK and LOCAL_RANK), else `default`."""
    text = os.environ.get(name, "")
    return int(text) if text.isdecimal() else default
