"""Which launches are measured: numbers, layers, phases, names, every Nth. What is not chosen costs next to nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from leadline.tools.errors import ToolError
from leadline.tools.registry import Places


@dataclass(frozen=True)
class Ranges:
    """As asked for; the defaults choose everything."""

    first: int = 0
    end: int | None = None
    """Launches first..end-1, counted from 0 in each process."""
    layer: str = ""
    """Regular expression found in the innermost module's name."""
    phase: str = ""
    """Name of the phase: forward, backward, optimizer."""
    kernel: str = ""
    """Regular expression found in the kernel's name."""
    every: int = 1
    """One of so many of those that the other conditions choose."""

    @classmethod
    def of(cls, launch_range: str = "", layer: str = "", phase: str = "", kernel: str = "", every: int = 1) -> Ranges:
        """From the options of the command line; raises ToolError."""
        first, end = 0, None
        if launch_range:
            begin, colon, last = launch_range.partition(":")
            try:
                first, end = int(begin or 0), (int(last) if last else None)
            except ValueError:
                colon = ""
            if not colon or first < 0 or (end is not None and end <= first):
                raise ToolError(f"Cannot read the launch range {launch_range!r}; write A:B, such as 100:200.")
        for what, pattern in (("layer", layer), ("kernel-name", kernel)):
            try:
                re.compile(pattern)
            except re.error as error:
                raise ToolError(f"Cannot read the pattern {pattern!r} of --{what}: {error}.") from None
        if every < 1:
            raise ToolError(f"--launch-every needs 1 or more, not {every}.")
        return cls(first, end, layer, phase, kernel, every)

    @property
    def everything(self) -> bool:
        """Whether nothing is left out."""
        return self == Ranges()

    def __str__(self) -> str:
        said = []
        if self.first or self.end is not None:
            said.append(f"launches {self.first:,} to {'the last' if self.end is None else f'{self.end - 1:,}'}")
        said += [
            f"{what} {value}"
            for what, value in (("layer", self.layer), ("phase", self.phase), ("kernel", self.kernel))
            if value
        ]
        if self.every > 1:
            said.append(f"one of {self.every}")
        return ", ".join(said)


def from_environment(environment: Mapping[str, str]) -> str:
    """The launch range that the names of the PASTA paper give: START_GRID_ID and END_GRID_ID (both inclusive)."""
    first, last = environment.get("START_GRID_ID", ""), environment.get("END_GRID_ID", "")
    if not (first or last):
        return ""
    try:
        return f"{int(first or 0)}:{int(last) + 1 if last else ''}"
    except ValueError:
        raise ToolError(f"START_GRID_ID and END_GRID_ID must be numbers, not {first!r} and {last!r}.") from None


class Selector:
    """Answers for one launch after another. `numbers`: how many launches were asked about so far."""

    def __init__(self, ranges: Ranges, places: Places) -> None:
        self._ranges = ranges
        self._places = places
        self._layer = re.compile(ranges.layer) if ranges.layer else None
        self._kernel = re.compile(ranges.kernel) if ranges.kernel else None
        self._by_place: dict[int, bool] = {}
        self._by_kernel: dict[str, bool] = {}
        self._matched = 0
        self.skipped = 0

    def chooses(self, launch: int, kernel: str, place: int) -> bool:
        """Whether this launch is measured."""
        if self._ranges.everything:
            return True
        chosen = self._matches(launch, kernel, place)
        if chosen and self._ranges.every > 1:
            chosen = self._matched % self._ranges.every == 0
            self._matched += 1
        self.skipped += not chosen
        return chosen

    def would_choose(self, launch: int, kernel: str, place: int) -> bool:
        """What `chooses` would answer, with nothing counted."""
        return self._ranges.everything or (
            self._matches(launch, kernel, place) and self._matched % self._ranges.every == 0
        )

    def _matches(self, launch: int, kernel: str, place: int) -> bool:
        ranges = self._ranges
        chosen = launch >= ranges.first and (ranges.end is None or launch < ranges.end)
        if chosen and self._kernel is not None:
            chosen = self._by_kernel[kernel] if kernel in self._by_kernel else self._ask_kernel(kernel)
        if chosen and (self._layer is not None or ranges.phase):
            chosen = self._by_place[place] if place in self._by_place else self._ask_place(place)
        return chosen

    def _ask_kernel(self, kernel: str) -> bool:
        assert self._kernel is not None
        answer = self._kernel.search(kernel) is not None
        self._by_kernel[kernel] = answer
        return answer

    def _ask_place(self, place: int) -> bool:
        answer = self._layer is None or self._layer.search(self._places.module(place)) is not None
        if self._ranges.phase:
            answer = answer and self._places.phase(place) == self._ranges.phase
        self._by_place[place] = answer
        return answer
