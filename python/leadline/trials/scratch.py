"""Where a run may write: every run finds the user's directory as it is now, and what it writes goes with the run.

An overlay where the kernel allows one, else a copy of the directory up to a limit, else (asked for) in place.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from leadline._dataclass import dataclass
from leadline.trials.model import ScratchFull, TrialError
from leadline.units import size

OVERLAY, COPY, IN_PLACE = "overlay", "copy", "in place"
MOST_BYTES = 2 << 30
MOST_FILES = 20_000
_LEAST_ROOM = 64 << 10
_LEFT_OUT = (".git", "__pycache__", ".venv", "node_modules", ".mypy_cache", ".ruff_cache", ".pytest_cache")
_ENTER = str(Path(__file__).with_name("enter.py"))


@dataclass(frozen=True)
class Place:
    """Of one run: `prefix` goes before the command; `folder`: where it starts; `records`: where its record is left."""

    prefix: tuple[str, ...]
    folder: str
    records: str
    original: str = ""
    """The directory that `folder` is a copy of; empty where it is no copy."""

    def words(self, argv: Sequence[str]) -> list[str]:
        """The command with paths into the copied directory led to the copy."""
        if not self.original:
            return [*self.prefix, *argv]
        inside = self.original + os.sep
        return [
            *self.prefix,
            *(self.folder + word[len(self.original) :] if word.startswith(inside) else word for word in argv),
        ]


class Scratch:
    """One per trial. `sentence`: what the user should know of it; empty where all is as it should be."""

    def __init__(self, *, in_place: bool = False, way: str = "") -> None:
        self.base = Path(tempfile.mkdtemp(prefix="leadline-try-"))
        self._way = IN_PLACE if in_place else way
        self._ways: dict[str, str] = {}
        self._count = 0
        self.sentences: list[str] = []

    def way(self, folder: str) -> str:
        """How runs in this directory are kept apart. Raises TrialError where they cannot be."""
        if self._way:
            return self._way
        if folder not in self._ways:
            self._ways[folder] = OVERLAY if self._overlay_works(folder) else COPY
            if self._ways[folder] == COPY:
                _check_size(folder)
                self.sentences.append(
                    "Each run works in a copy of the working directory, since this system allows no overlay; what it "
                    "writes by an absolute path outside of the copy is written."
                )
        return self._ways[folder]

    @contextlib.contextmanager
    def place(self, folder: str) -> Iterator[Place]:
        """A directory for one run, removed after it."""
        self._count += 1
        own = self.base / f"run-{self._count}"
        records = own / "records"
        try:
            records.mkdir(parents=True)
            way = self.way(folder)
            if way == OVERLAY:
                yield Place(self._prefix(folder, own), folder, str(records))
            elif way == COPY:
                copy = own / "copy"
                _copy(folder, copy)
                yield Place((), str(copy), str(records), folder)
            else:
                yield Place((), folder, str(records))
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise self._full() from None
            raise
        finally:
            _remove(own)

    def check_room(self) -> None:
        """Raises ScratchFull where no room is left: what ended the run that has just ended."""
        about = os.statvfs(self.base)
        if about.f_bavail * about.f_frsize < _LEAST_ROOM:
            raise self._full()

    def _full(self) -> ScratchFull:
        return ScratchFull(
            f"The disk of the scratch directory {self.base.parent} is full, so runs cannot write; free some of it, or "
            "set TMPDIR to a larger one."
        )

    def close(self) -> None:
        _remove(self.base)

    def _overlay_works(self, folder: str) -> bool:
        own = self.base / "probe"
        own.mkdir(exist_ok=True)
        try:
            words = [*self._prefix(folder, own), "true"]
            done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=20, check=False)
            return done.returncode == 0
        except (OSError, subprocess.TimeoutExpired):
            return False
        finally:
            _remove(own)

    def _prefix(self, folder: str, own: Path) -> tuple[str, ...]:
        upper, work = own / "upper", own / "work"
        upper.mkdir()
        work.mkdir()
        return (sys.executable, "-I", "-S", _ENTER, folder, str(upper), str(work))


def _check_size(folder: str) -> None:
    count = total = 0
    for where, folders, files in os.walk(folder):
        folders[:] = [one for one in folders if one not in _LEFT_OUT]
        for name in files:
            count += 1
            with contextlib.suppress(OSError):
                total += (Path(where) / name).lstat().st_size
            if count > MOST_FILES or total > MOST_BYTES:
                raise TrialError(
                    f"{folder} holds more than {MOST_FILES:,} files or {size(MOST_BYTES)}, too much for a copy for "
                    "each run, and this system allows no overlay; start it in a smaller directory, or add --in-place "
                    "to let the runs write where the program writes."
                )


def _copy(folder: str, to: Path) -> None:
    shutil.copytree(folder, to, symlinks=True, ignore=shutil.ignore_patterns(*_LEFT_OUT), ignore_dangling_symlinks=True)


def _remove(path: Path) -> None:
    """Overlays leave directories that nobody may enter."""

    def allow(function: object, name: str, _: object) -> None:
        with contextlib.suppress(OSError):
            one = Path(name)
            one.chmod(0o700)
            if one.is_dir():
                one.rmdir()
            else:
                one.unlink()

    shutil.rmtree(path, onerror=allow)
    shutil.rmtree(path, ignore_errors=True)
