"""`leadline view --live`: the page of a run that goes on. It shows the run as it is when it is loaded, and asks now and
then whether there is more.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterable
from pathlib import Path

from leadline._package import SEGMENT_SUFFIX
from leadline.profiles import Profile, ProfileFileError, open_profile
from leadline.profiles.recover import recover_part
from leadline.report.html import render_server_page
from leadline.report.view import View

_PART = ".part"

Stamp = frozenset[tuple[str, int, int]]


def segments_of(directory: Path) -> Iterable[Path]:
    return directory.rglob(f"*{SEGMENT_SUFFIX}")


def stamp_of(files: Iterable[Path]) -> Stamp:
    """Of what was written last: segments are replaced as a whole."""
    found = set()
    for file in files:
        with contextlib.suppress(OSError):
            status = file.stat()
            found.add((str(file), status.st_ino, status.st_mtime_ns))
    return frozenset(found)


class LiveView(View):
    """The view of one part directory. Raises ProfileFileError where nothing has been written yet."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._ended = directory.with_name(directory.name.removesuffix(_PART))
        self._looking = threading.Lock()
        self._stamp = self._stamp_now()
        self._looks = 1
        super().__init__([(str(self._ended), self._look())])

    def answer(self, path: str, query: dict[str, list[str]]) -> tuple[str, bytes] | None:
        """As `View.answer`; the page itself, and `now`, begin a new look where something has been written since. `now`
        says the number of the look that everything else is about, and whether it is the last."""
        if path in ("", "now"):
            self._look_again()
        if path == "":
            return "text/html; charset=utf-8", render_server_page([str(self._ended)], live=True).encode()
        if path == "now":
            told = {"look": self._looks, "ended": self._has_ended()}
            return "application/json", json.dumps(told).encode()
        return super().answer(path, query)

    def _look_again(self) -> None:
        with self._looking:
            stamp = self._stamp_now()
            if stamp == self._stamp:
                return
            with contextlib.suppress(ProfileFileError):  # its file is being made: what was seen last stays
                self.replace(0, self._look())
                self._stamp = stamp
                self._looks += 1

    def _bytes(self, index: int) -> bytes:
        return self.packed(index)

    def _has_ended(self) -> bool:
        return not self._directory.is_dir() and self._ended.is_file()

    def _stamp_now(self) -> Stamp:
        return stamp_of([self._ended] if self._has_ended() else segments_of(self._directory))

    def _look(self) -> Profile:
        if self._has_ended():
            return open_profile(self._ended)
        return recover_part(self._directory).profile
