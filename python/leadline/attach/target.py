"""Another process: whether it may be read, its memory, and where its Python interpreter lies.

Every refusal is an AttachError with one sentence: what, why, what to do.
"""

from __future__ import annotations

import os
import re
import struct
import sys
from pathlib import Path

from leadline._dataclass import dataclass
from leadline.attach.symbol import symbol_address

_PYTHON = re.compile(r"(?:lib)?python(\d)\.?(\d+)?[^/]*$")


class AttachError(Exception):
    """The process cannot be looked into; the message is one sentence."""


@dataclass(frozen=True)
class Mapping:
    """A piece of a file in memory: from `begin` to `end`, from `offset` of the file on."""

    begin: int
    end: int
    offset: int
    path: str


class Target:
    """A process by its number. Raises AttachError where it is not there, may not be read, or is no Python program."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._folder = Path(f"/proc/{pid}")
        if not self._folder.is_dir():
            raise AttachError(f"There is no process {pid}; `pgrep -af python` lists running programs.")
        try:
            self._memory = os.open(self._folder / "mem", os.O_RDONLY | os.O_CLOEXEC)
            self.mappings = self._read_mappings()
        except OSError as error:
            raise AttachError(self.refusal(error)) from error
        self.command = self.text("cmdline").replace("\0", " ").strip()

    def close(self) -> None:
        """Let go of its memory."""
        os.close(self._memory)

    def read(self, address: int, size: int) -> bytes:
        """Bytes of its memory. Raises AttachError where there are none, or when it has ended."""
        try:
            found = os.pread(self._memory, size, address)
        except (OSError, OverflowError) as error:
            raise AttachError(f"The memory of process {self.pid} at {address:#x} cannot be read: {error}.") from error
        if len(found) != size:
            raise AttachError(f"The memory of process {self.pid} ends at {address + len(found):#x}.")
        return found

    def read_some(self, address: int, most: int) -> bytes:
        """Bytes of its memory from an address on, up to the end of what is there."""
        try:
            return os.pread(self._memory, most, address)
        except (OSError, OverflowError) as error:
            raise AttachError(f"The memory of process {self.pid} at {address:#x} cannot be read: {error}.") from error

    def word(self, address: int) -> int:
        """A pointer in its memory."""
        return int(struct.unpack("<Q", self.read(address, 8))[0])

    def text_of_thread(self, tid: int, name: str) -> str:
        """A file of `/proc/PID/task/TID`; empty where it is gone or may not be read."""
        return self.text(f"task/{tid}/{name}")

    def threads(self) -> list[int]:
        """Numbers of its threads; the first one is the main thread."""
        try:
            found = [int(entry.name) for entry in (self._folder / "task").iterdir()]
            return sorted(found, key=lambda tid: (tid != self.pid, tid))
        except OSError:
            return []

    def file(self, path: str) -> Path:
        """A file as this process sees it, which may be in another container."""
        return self._folder / "root" / path.lstrip("/")

    def file_at(self, address: int) -> str:
        """The file that this address is mapped from, as the process names it; the nearest before it, as variables that
        begin with zeros are in no file. Empty where there is none."""
        before = [one for one in self.mappings if one.begin <= address and one.path.startswith("/")]
        return max(before, key=lambda one: one.begin).path if before else ""

    def runtime(self) -> int:
        """Address of its interpreter's `_PyRuntime`."""
        seen: set[str] = set()
        for mapping in self.mappings:
            if mapping.path in seen or mapping.offset != 0 or not _PYTHON.search(mapping.path):
                continue
            seen.add(mapping.path)
            address = symbol_address(self.file(mapping.path), "_PyRuntime", mapping.begin)
            if address:
                self._same_version(mapping.path)
                return address
        what = self.command or "no command line"
        raise AttachError(
            f"Process {self.pid} ({what}) runs no Python interpreter; `pgrep -af python` lists those that do."
        )

    def _same_version(self, path: str) -> None:
        found = _PYTHON.search(path)
        if found is None or found[2] is None:
            return
        own = f"{sys.version_info[0]}.{sys.version_info[1]}"
        if f"{found[1]}.{found[2]}" != own:
            raise AttachError(
                f"Process {self.pid} runs Python {found[1]}.{found[2]} and this is Python {own}; "
                "use the leadline of its Python."
            )

    def _read_mappings(self) -> list[Mapping]:
        found = []
        for line in (self._folder / "maps").read_text(encoding="utf-8", errors="replace").splitlines():
            fields = line.split(maxsplit=5)
            if len(fields) == 6 and fields[5].startswith("/"):
                begin, end = (int(part, 16) for part in fields[0].split("-"))
                found.append(Mapping(begin, end, int(fields[2], 16), fields[5].removesuffix(" (deleted)")))
        return found

    def text(self, name: str) -> str:
        """A file of `/proc/PID`; empty where it is gone or may not be read."""
        try:
            return (self._folder / name).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""

    def refusal(self, error: OSError) -> str:
        """The sentence for what the system has answered."""
        if not self._folder.is_dir():
            return f"Process {self.pid} has ended."
        try:
            owner = self._folder.stat().st_uid
        except OSError:
            return f"Process {self.pid} has ended."
        if owner != os.geteuid():
            return f"Process {self.pid} belongs to another user; run this command as that user, or as root."
        scope = Path("/proc/sys/kernel/yama/ptrace_scope")
        if isinstance(error, PermissionError) and scope.is_file() and scope.read_text().strip() != "0":
            return (
                f"This system lets processes inspect only their own children; inspect {self.pid} as root, or "
                "`sudo sysctl kernel.yama.ptrace_scope=0`."
            )
        if isinstance(error, PermissionError):
            return (
                f"Process {self.pid} cannot be inspected ({error.strerror}); give the container the capability "
                "SYS_PTRACE."
            )
        return f"Process {self.pid} cannot be inspected: {error}."
