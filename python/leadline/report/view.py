"""What `leadline view` shows: the page, the bytes of the profiles, what the analyzer says, and the source files that a
profile names. It only reads, and hands out no other file than those.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import stat
import threading
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leadline import __version__
from leadline.profiles import Profile
from leadline.report.build import build_report
from leadline.report.comparison import comparison_object
from leadline.report.embedded import packed
from leadline.report.html import findings_of, page_findings, page_report, render_server_page
from leadline.report.model import ReportOptions
from leadline.report.page_sources import PageSources

if TYPE_CHECKING:
    from leadline.compare.align import Aligned

_TOP = 200

Mark = tuple[int, int, int]
"""Inode, time of the last change and size of a file."""


class View:
    """What is shown: profiles that are open, by the names to show for them; answers are made once, when asked.

    A file is handed out as it is only while nothing has taken its place since `opened` began to read it. A page that is
    loaded again shows what was opened.
    """

    def __init__(self, profiles: Sequence[tuple[str, Profile]], marks: Sequence[Mark | None] = ()) -> None:
        self._names = [name for name, _ in profiles]
        self._profiles = [profile for _, profile in profiles]
        self._marks = marks or [None] * len(profiles)
        self._made: dict[str, bytes] = {}
        self._lock = threading.Lock()
        self._reading = threading.Lock()
        self._sources: PageSources | None = None
        self._predictors: dict[int, Any] = {}
        self._aligned: Aligned | None = None

    @classmethod
    def opened(cls, names: Sequence[str], read: Callable[[str], Profile]) -> View:
        """Of files, traces, folders and addresses. Raises what `read` does."""
        marks = [_mark(name) for name in names]  # before they are read
        return cls([(name, read(name)) for name in names], marks)

    def answer(self, path: str, query: dict[str, list[str]]) -> tuple[str, bytes] | None:
        """(content type, body); None where there is no such thing."""
        kind, _, rest = path.partition("/")
        if path == "":
            return "text/html; charset=utf-8", render_server_page(self._names).encode()
        if kind == "source":
            return "application/json", json.dumps({"text": self._source(query.get("file", [""])[0])}).encode()
        if path in ("comparison", "compared-tree"):
            return "application/json", self._once(path, lambda: self._compared(path))
        place = int(rest) if rest.isascii() and rest.isdigit() and len(rest) < 6 else -1
        index = place if place < len(self._profiles) else -1
        if index < 0 or kind not in ("profile", "report", "findings", "predicted", "changes"):
            return None
        if kind == "predicted":
            name = query.get("name", [""])[0]
            return "application/json", self._once(f"{path} {name}", lambda: self._predicted(index, name))
        if kind == "changes":
            return "application/json", self._once(path, lambda: self._changes(index))
        if kind == "profile":
            return "application/octet-stream", self._once(path, lambda: self._bytes(index))
        make = self._report if kind == "report" else self._findings
        return "application/json", self._once(path, lambda: json.dumps(make(index), allow_nan=False).encode())

    def _once(self, key: str, make: Any) -> bytes:
        # a profile is handed out while Python still thinks about it
        with self._reading if key.startswith("profile/") else self._lock:
            if key not in self._made:
                self._made[key] = make()
            return self._made[key]

    def _bytes(self, index: int) -> bytes:
        """The file itself while it is the one that was opened; else, and of traces and folders, what was opened."""
        if self._marks[index] is not None:
            with contextlib.suppress(OSError), Path(self._names[index]).open("rb") as file:
                before = _mark_of(os.fstat(file.fileno()))
                data = file.read()
                unchanged = before == _mark_of(os.fstat(file.fileno())) == self._marks[index]
                if unchanged and zipfile.is_zipfile(io.BytesIO(data)):
                    return data
        return self.packed(index)

    def packed(self, index: int) -> bytes:
        """A profile as it is in memory, as a file."""
        profile = self._profiles[index]
        return packed(profile.tables, profile.meta)

    def replace(self, index: int, profile: Profile) -> None:
        """Show another one in its place; answers are made anew."""
        with self._lock, self._reading:
            self._profiles = [profile if at == index else one for at, one in enumerate(self._profiles)]
            self._made.clear()
            self._sources = None
            self._predictors.clear()
            self._aligned = None

    def _report(self, index: int) -> dict[str, Any]:
        options = ReportOptions(top=_TOP, frames=False, verdict=True, whole_tables=True)
        return page_report(build_report(self._profiles[index], options, self._names[index]))

    def _findings(self, index: int) -> dict[str, Any] | None:
        found = findings_of(self._profiles[index])
        return None if found is None else page_findings(found)

    def _predicted(self, index: int, name: str) -> bytes:
        return json.dumps(self._predictor(index).answer(name)).encode()

    def _changes(self, index: int) -> bytes:
        return json.dumps(self._predictor(index).changes(self._names[index]), allow_nan=False).encode()

    def _predictor(self, index: int) -> Any:
        from leadline.report.predicted import Predictor  # the simulator, where somebody asks for it

        return self._predictors.setdefault(index, Predictor(self._profiles[index]))

    def _compared(self, part: str) -> bytes:
        """What `leadline diff` says of the two profiles, and both on one tree; null where there are not two."""
        if len(self._profiles) < 2:
            return b"null"
        from leadline.compare import compare  # where somebody asks for it
        from leadline.compare.align import align
        from leadline.report.compared_tree import compared_tree

        before, after = self._profiles[:2]
        if self._aligned is None:
            self._aligned = align([before, after], [False, True])
        if part == "comparison":
            found = comparison_object(compare([before], [after], self._aligned))
        else:
            found = compared_tree(self._aligned, before, after)
        return json.dumps(found, allow_nan=False).encode()

    def data(self) -> bytes:
        """All that the page asks for but bytes and sources, as one JSON: what an editor hands to it."""

        def said(path: str) -> Any:
            found = self.answer(path, {})
            return None if found is None else json.loads(found[1])

        several = range(len(self._profiles))
        return json.dumps(
            {
                "version": __version__,
                "names": self._names,
                "reports": [said(f"report/{index}") for index in several],
                "findings": [said(f"findings/{index}") for index in several],
                "comparison": said("comparison"),
                "comparedTree": said("compared-tree"),
            },
            separators=(",", ":"),
            allow_nan=False,
        ).encode()

    def _source(self, file: str) -> str | None:
        with self._lock:
            if self._sources is None:
                self._sources = PageSources(self._profiles[0])  # a second one is only compared with
            return self._sources.text(file)


def _mark(name: str) -> Mark | None:
    """What tells a file from the one that replaces it; None for a folder or an address."""
    try:
        return _mark_of(Path(name).stat())
    except OSError:
        return None


def _mark_of(found: os.stat_result) -> Mark | None:
    return (found.st_ino, found.st_mtime_ns, found.st_size) if stat.S_ISREG(found.st_mode) else None
