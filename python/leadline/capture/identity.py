"""Which process is which: on this machine, in another container, on another machine, before and after a restart.

A process is named by the machine since it was started (boot id), the namespace that its number counts in, the number
and the time it began. `exec` keeps all four: another program, the same process. Standard library and /proc only.
"""

from __future__ import annotations

import binascii
import os
from collections.abc import Mapping
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import Any

from leadline._dataclass import dataclass

HOST_VARIABLE = "LEADLINE_HOST_ID"
"""Environment: any text that names this machine where its boot id does not, as on virtual machines that go on from one
snapshot. Every process of a machine must have the same."""
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_START_FIELD = 19  # field 22 of proc(5), counted behind the name
_DEAD_STATES = frozenset("ZXx")


class Life(Enum):
    """What can be known of a process from here."""

    ALIVE = "alive"
    GONE = "gone"
    UNKNOWN = "unknown"
    """It runs, or ran, on another machine or in another container."""


@dataclass(frozen=True)
class ProcessIdentity:
    """Names one process among all of all machines; `str` of it is a file name and a key."""

    machine: str
    """Short for the boot id. Processes of one machine share CLOCK_MONOTONIC."""
    namespace: int
    """Inode of the process namespace that `pid` counts in; 0 where unknown."""
    pid: int
    start_ticks: int
    """Clock ticks from the machine's start to the process's."""

    @classmethod
    def here(cls) -> ProcessIdentity:
        """The calling process."""
        return cls(machine(), _namespace(), os.getpid(), _start_ticks(os.getpid()) or 0)

    @classmethod
    def of(cls, pid: int) -> ProcessIdentity | None:
        """The process that has this number now, as numbers count here; None where there is none."""
        start_ticks = _start_ticks(pid) if pid > 0 else None
        return None if start_ticks is None else cls(machine(), _namespace(), pid, start_ticks)

    @classmethod
    def parse(cls, text: str) -> ProcessIdentity | None:
        """From `str(identity)`; None where it is none."""
        machine_, *numbers = text.split(".")
        if len(numbers) != 3 or not machine_ or not all(number.isdecimal() for number in numbers):
            return None
        return cls(machine_, *(int(number) for number in numbers))

    def __str__(self) -> str:
        return f"{self.machine}.{self.namespace}.{self.pid}.{self.start_ticks}"

    @classmethod
    def in_record(cls, record: Mapping[str, Any]) -> ProcessIdentity | None:
        """Of what a process says of itself in its side file; None where it does not say."""
        return cls.parse(str(record.get("identity", "")))

    def life(self) -> Life:
        """Whether it runs. A process that has ended and that nobody has waited for is gone."""
        if (self.machine, self.namespace) != (machine(), _namespace()):
            return Life.UNKNOWN
        return Life.ALIVE if _start_ticks(self.pid) == self.start_ticks else Life.GONE


def new_session_id() -> str:
    """A name that no other session has: 16 hexadecimal digits."""
    return os.urandom(8).hex()


def boot_id() -> str:
    """The machine since it was started, as HOST_VARIABLE or the kernel names it; its host name where neither does."""
    return os.environ.get(HOST_VARIABLE) or _kernel_boot_id()


def machine() -> str:
    """`boot_id` in 16 characters that fit into a file name: checksum and end, since `hashlib` would load OpenSSL."""
    text = boot_id()
    end = "".join(letter for letter in text if letter.isascii() and letter.isalnum())[-8:]
    return f"{binascii.crc32(text.encode('utf-8', 'surrogateescape')):08x}{end}"


@lru_cache(maxsize=1)
def _kernel_boot_id() -> str:
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return os.uname().nodename


def _namespace() -> int:
    try:
        return Path("/proc/self/ns/pid").stat().st_ino
    except OSError:
        return 0


def _start_ticks(pid: int) -> int | None:
    """When a process began; None for one that has ended, waited for or not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in _DEAD_STATES else int(fields[_START_FIELD])
