"""What the numbers in events stand for: names, objects, launches, places.

Numbers count up from 0 and are never given twice. Reading is safe from any thread while one source adds.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Int64 = NDArray[np.int64]
_OURS = "PythonDispatchMode"
"""What torch calls the time in which a dispatch mode looks at an operator; the last frame of a place taken there."""


class GrowingColumn:
    """An int64 column that grows; indexed as an array is."""

    def __init__(self, fill: int = 0) -> None:
        self._fill = fill
        self._values = np.full(1024, fill, np.int64)

    def __getitem__(self, rows: Any) -> Any:
        """The values of one or many rows; `fill` for rows that nobody has set."""
        if np.ndim(rows) == 0:
            return self._values[int(rows)] if int(rows) < len(self._values) else self._fill
        rows = np.asarray(rows)
        if len(rows) and int(rows.max()) >= len(self._values):
            self._grow(int(rows.max()))
        return self._values[rows]

    def set(self, rows: int | Int64, values: Any) -> None:
        """Set one or many rows."""
        last = int(np.max(rows)) if np.ndim(rows) == 0 or len(np.atleast_1d(rows)) else -1
        if last >= len(self._values):
            self._grow(last)
        self._values[rows] = values

    def _grow(self, row: int) -> None:
        grown = np.full(max(2 * len(self._values), row + 1), self._fill, np.int64)
        grown[: len(self._values)] = self._values
        self._values = grown


class Names:
    """Text by number."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._texts: list[str] = []
        self._lock = threading.Lock()

    def number(self, text: str) -> int:
        """The number of a text, a new one where it is new."""
        known = self._numbers.get(text)
        if known is None:
            with self._lock:
                known = self._numbers.get(text)
                if known is None:
                    known = len(self._texts)
                    self._texts.append(text)
                    self._numbers[text] = known
        return known

    def texts(self) -> list[str]:
        """All of them, by number."""
        return list(self._texts)

    def __getitem__(self, number: int) -> str:
        return self._texts[int(number)] if 0 <= int(number) < len(self._texts) else "?"


class Objects:
    """Storages of tensors. `bytes`, `device`, `place` (where it was first seen) by number; `label` for people."""

    def __init__(self) -> None:
        self.bytes = GrowingColumn()
        self.device = GrowingColumn(-1)
        self.place = GrowingColumn()
        self.born = GrowingColumn()
        self._labels: list[tuple[str, str]] = []

    def __len__(self) -> int:
        return len(self._labels)

    def add(self, nbytes: int, device: int, place: int, category: str, shape: str, launch: int = -1) -> int:
        """A new object; its number."""
        number = len(self._labels)
        self.bytes.set(number, nbytes)
        self.device.set(number, device)
        self.place.set(number, place)
        self.born.set(number, launch)
        self._labels.append((category, shape))
        return number

    def category(self, number: int) -> str:
        """parameter, input, gradient or result."""
        return self._labels[int(number)][0] if 0 <= int(number) < len(self._labels) else "?"

    def shape(self, number: int) -> str:
        """Type and shape of the tensor through which it was first seen, such as float32[8, 128]."""
        return self._labels[int(number)][1] if 0 <= int(number) < len(self._labels) else "?"

    def label(self, number: int) -> str:
        """Category, type and shape."""
        return f"{self.category(number)} {self.shape(number)}"


class Launches:
    """`kernel` (a name's number) and `place` of every launch."""

    def __init__(self) -> None:
        self.kernel = GrowingColumn(-1)
        self.place = GrowingColumn()
        self.time = GrowingColumn()
        self.count = 0

    def add(self, launch: Int64, kernel: Int64, place: Int64, time: Int64) -> None:
        """What the rows of the event `launch` say."""
        if len(launch):
            self.kernel.set(launch, kernel)
            self.place.set(launch, place)
            self.time.set(launch, time)
            self.count = max(self.count, int(launch.max()) + 1)


@dataclass(frozen=True)
class PathFrame:
    """A frame of a call path. `kind`: as in docs/schema.md."""

    kind: str
    name: str
    file: str
    line: int

    def __str__(self) -> str:
        if self.kind == "python":
            return f"{self.name} ({self.file.rpartition('/')[2]}:{self.line})"
        return self.name


class Places:
    """Call paths by their number, read once and kept."""

    def __init__(
        self, read: Callable[[int], Sequence[tuple[str, str, str, int]]], is_library: Callable[[str], bool]
    ) -> None:
        self._read = read
        self.is_library = is_library
        self._known: dict[int, tuple[PathFrame, ...]] = {}
        self.sources: dict[int, str] = {}
        """file:line by place where a backend knows better than the frames: what a compiled kernel was made from."""

    def path(self, place: int) -> tuple[PathFrame, ...]:
        """From the thread's first frame to the innermost; empty where unknown."""
        place = int(place)
        known = self._known.get(place)
        if known is None:
            frames = self._read(place % 2**64) if place else ()
            known = tuple(PathFrame(*frame) for frame in frames if frame[0] not in ("root", "process", "thread"))
            known = known[: next((at for at, one in enumerate(known) if one.name == _OURS), len(known))]
            self._known[place] = known
        return known

    def learn(self, place: int, frames: Sequence[tuple[str, str, str, int]], line: str) -> None:
        """What a recording says of a place."""
        self._known[place] = tuple(PathFrame(*frame) for frame in frames)
        self.sources[place] = line

    def line(self, place: int) -> str:
        """file:line of the innermost frame of the program's own code, or empty."""
        known = self.sources.get(int(place))
        if known:
            return known
        for frame in reversed(self.path(place)):
            if frame.kind == "python" and not self.is_library(frame.file):
                return f"{frame.file.rpartition('/')[2]}:{frame.line}"
        return ""

    def module(self, place: int) -> str:
        """The innermost module's name (`model.layers.3.attention`), or empty."""
        return next((frame.name for frame in reversed(self.path(place)) if frame.kind == "module"), "")

    def operator(self, place: int) -> str:
        """The innermost operator, or empty."""
        return next((frame.name for frame in reversed(self.path(place)) if frame.kind == "operator"), "")

    def phase(self, place: int) -> str:
        """The innermost phase (forward, backward, optimizer), or empty."""
        return next((frame.name for frame in reversed(self.path(place)) if frame.kind == "phase"), "")

    def short(self, place: int) -> str:
        """Line, module and operator in one line of text."""
        parts = (self.line(place), self.module(place), self.operator(place))
        return " → ".join(part for part in parts if part) or "unknown"
