"""The marks of a session that rolls its files: which segments a file has to begin at.

`leadline.capture.rolling` makes them. The last mark whose file exists is where the next file begins; where only older
ones are left, it is the newest of those, since a mark is removed only when a later one has its file. Whoever writes
that file holds a lock on the mark's `file` until it is there or will never be.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from pathlib import Path
from typing import Any

from leadline._package import MARK_FILE, MARK_MADE, MARKS, PackageError, ProcessPart, read_part, session_folder
from leadline.profiles.errors import ProfileFileError

_PATIENCE_S = 120.0
"""A file takes seconds; longer, and its maker stands."""
_LOOK_S = 0.05


def settled_mark(directory: Path) -> Path | None:
    """As `last_mark`, once nobody writes a file any more: it would hold the time after an earlier mark as well. Raises
    ProfileFileError when that takes too long."""
    until = time.monotonic() + _PATIENCE_S
    while (made := next((path for path in _marks(directory).values() if _is_being_made(path)), None)) is not None:
        if time.monotonic() >= until:
            raise ProfileFileError(f"A file of {directory} is still being written (by the mark {made}); try again.")
        _rest()
    return last_mark(directory)


def _rest() -> None:
    time.sleep(_LOOK_S)


def last_mark(directory: Path, below: int | None = None) -> Path | None:
    """The mark at which the next file begins; None where no file was made. `below`: of those before that number."""
    found = _marks(directory)
    made = [number for number, path in found.items() if (below is None or number < below) and _has_file(path)]
    return found[max(made)] if made else None


def segments_at(mark: Path | None) -> dict[str, ProcessPart]:
    """What every process had written at a mark, by its stem."""
    if mark is None:
        return {}
    try:
        return {process.stem: process for process in read_part(mark).processes}
    except PackageError:
        return {}


def file_of(mark: Path) -> Path:
    """The file that a mark ends in. Raises OSError, and ValueError where the mark says none."""
    return Path(str(_told(mark)["file"]))


def going_on(folder: Path) -> frozenset[str]:
    """Stems of the processes that ran when a mark was made; none for what is no mark."""
    try:
        return frozenset(map(str, _told(folder)["going_on"]))
    except (OSError, ValueError):
        return frozenset()


def _marks(directory: Path) -> dict[int, Path]:
    """By their numbers; none where no file was begun."""
    try:
        folder = session_folder(directory) / MARKS
        return {int(path.name): path for path in folder.iterdir() if path.name.isdecimal()}
    except OSError:
        return {}


def _is_being_made(mark: Path) -> bool:
    """Whether the process that writes the file of a mark lives; False where there are no locks."""
    try:
        descriptor = os.open(mark / MARK_FILE, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False


def _told(mark: Path) -> dict[str, Any]:
    told = json.loads((mark / MARK_FILE).read_bytes())
    if not isinstance(told, dict) or not {"file", "going_on"} <= set(told) or not isinstance(told["going_on"], list):
        raise ValueError(f"{mark / MARK_FILE} is damaged")
    return told


def _has_file(mark: Path) -> bool:
    """Whoever was killed between writing the file and saying so has left the file; one that was said may be gone."""
    try:
        return (mark / MARK_MADE).exists() or file_of(mark).exists()
    except (OSError, ValueError):
        return False
