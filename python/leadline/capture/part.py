"""The folder `NAME.leadline.part/` from the writing side: made by a session's owner, joined by its other processes.

Promise: what would stop the file from being written, and can be known before the program starts, is said by `create`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leadline._package import PART_FORMAT, SEGMENT_SUFFIX, SESSION_FILE, PackageError, read_part, write_json
from leadline.capture.config import PART_SUFFIX, SUFFIX, Options
from leadline.capture.errors import ProfileError

_LEAST_FREE_BYTES = 4 << 20
"""Room that must be free at the start. Profiles of long programs stay below 1 MB; segments need the same again."""


@dataclass(frozen=True)
class PartDirectory:
    """Where a session's processes leave their segments, and the file that becomes of them."""

    directory: Path
    output: Path

    @classmethod
    def create(cls, output: Path, argv: Sequence[str], options: Options, supervisor_pid: int | None) -> PartDirectory:
        """Check `output` and make its part directory; raises ProfileError. `move_aside` comes first."""
        output = absolute(output)
        check_output(output)
        part = cls(part_path(output), output)
        try:
            part.directory.mkdir()
            try:
                part._write_session(argv, options, supervisor_pid)
            except OSError:
                part.remove()
                raise
        except OSError as error:
            raise ProfileError(f"Cannot write to {output.parent}: {error.strerror}; choose another file.") from None
        return part

    @classmethod
    def join(cls, directory: Path, output: Path) -> PartDirectory | None:
        """The part directory of a running session, or None when that session has ended and removed it."""
        return cls(directory, output) if directory.is_dir() else None

    @property
    def exists(self) -> bool:
        """False once the owner has finished the file: whoever is still running has nobody to report to."""
        return self.directory.is_dir()

    def segment(self, stem: str) -> Path:
        """Where the process `stem` writes its segment."""
        return self.directory / f"{stem}{SEGMENT_SUFFIX}"

    def window(self, pid: int) -> Path:
        """Where a process shows its children when its trace window is open."""
        return self.directory / f"{pid}.window"

    def write_record(self, stem: str, record: dict[str, Any]) -> None:
        """Replace the side file of a process; raises OSError."""
        write_json(self.directory / f"{stem}.json", record)

    def claim(self, what: str) -> bool:
        """True for exactly one caller in the session, whatever its process."""
        try:
            os.close(os.open(self.directory / f"{what}.claimed", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        except OSError:
            return False
        return True

    def end_session(self, exit_status: dict[str, Any] | None) -> None:
        """Note in `session.json` when the program ended and how; raises OSError or PackageError."""
        session = read_part(self.directory).session
        write_json(self.directory / SESSION_FILE, {**session, "ended_at_ns": time.time_ns(), "exit": exit_status})

    def remove(self) -> None:
        """Delete the directory. A process that still writes its segment may make this fail; what stays is harmless."""
        import shutil

        shutil.rmtree(self.directory, ignore_errors=True)

    def _write_session(self, argv: Sequence[str], options: Options, supervisor_pid: int | None) -> None:
        session = {
            "format": PART_FORMAT,
            "output": str(self.output),
            "argv": list(argv),
            "started_at_ns": time.time_ns(),
            "asked": options.asked(),
            "supervisor_pid": supervisor_pid,
            "owner": process_identity(os.getpid()),
        }
        write_json(self.directory / SESSION_FILE, session)


def part_path(output: Path) -> Path:
    """The part directory that belongs to an output file."""
    return output.with_name(f"{output.name}.part")


def default_output(argv: Sequence[str]) -> Path:
    """`<script>.leadline` in the working directory, from a command line whose first word is the script or command."""
    stem = Path(argv[0]).stem if argv else ""
    return Path(f"{stem if stem not in ('', '-', '-c', '-m') else 'python'}{SUFFIX}")


def absolute(output: Path) -> Path:
    """`output` from the root, so that a program may change its folder; raises ProfileError."""
    try:
        str(output).encode()
        return output.absolute()
    except UnicodeEncodeError:
        raise ProfileError(f"Cannot write {str(output)!r}: the name is not UTF-8; choose another file.") from None
    except OSError:
        raise ProfileError(f"Cannot write {output}: the working directory is gone; give the whole path.") from None


def check_output(output: Path) -> None:
    """Raise ProfileError when `output` (a whole path) could not be written, as far as that can be known now."""
    try:
        _check_output(output)
    except OSError as error:
        raise ProfileError(f"Cannot write {output}: {error.strerror}; choose another file.") from None


def _check_output(output: Path) -> None:
    folder = output.parent
    if output.is_dir():
        raise ProfileError(f"Cannot write {output}: it is a folder; give a file name.")
    if not folder.is_dir():
        raise ProfileError(f"Cannot write {output}: the folder {folder} does not exist; make it first.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ProfileError(f"Cannot write {output}: no permission to write in {folder}; choose another file.")
    if output.exists() and not _may_replace(output):
        raise ProfileError(f"Will not replace {output}: it is not a profile; choose another file.")
    free_bytes = free_space_bytes(folder)
    if free_bytes < _LEAST_FREE_BYTES:
        raise ProfileError(
            f"Cannot write {output}: {free_bytes >> 10} KiB are free, {_LEAST_FREE_BYTES >> 20} MiB are needed; "
            "make room, or choose another file."
        )


def free_space_bytes(folder: Path) -> int:
    """What an ordinary user may still write there."""
    system = os.statvfs(folder)
    return system.f_bavail * system.f_frsize


def move_aside(output: Path) -> Path | None:
    """Make the name free when an earlier, unfinished session left its part directory; returns where that is now.

    Raises ProfileError when that session still runs: two sessions cannot write one file.
    """
    output = absolute(output)
    directory = part_path(output)
    if not directory.is_dir():
        return None
    try:
        session = read_part(directory).session
    except PackageError:
        session = {}
    owner = session.get("owner")
    if isinstance(owner, str) and _is_alive(owner):
        raise ProfileError(f"Another measurement is writing {output}; choose another file.")
    base = output.name.removesuffix(SUFFIX)
    for number in range(1, 10_000):
        free = directory.with_name(f"{base}-{number}{PART_SUFFIX}")
        if not free.exists():
            try:
                directory.rename(free)
            except OSError as error:
                raise ProfileError(f"Cannot move the unfinished {directory} aside: {error.strerror}.") from None
            return free
    raise ProfileError(f"There are 10,000 unfinished measurements beside {output}; delete some.")


def process_identity(pid: int) -> str:
    """`pid-starttime`: names a process even when its number is used again. `pid-gone` where there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return f"{pid}-gone"
    return f"{pid}-{stat.rpartition(')')[2].split()[19]}"  # field 22 of proc(5), counted behind the name


def _is_alive(identity: str) -> bool:
    pid = identity.partition("-")[0]
    return pid.isdecimal() and not identity.endswith("-gone") and identity == process_identity(int(pid))


def _may_replace(output: Path) -> bool:
    if not output.is_file():
        return False
    with output.open("rb") as stream:
        return stream.read(2) in (b"", b"PK")
