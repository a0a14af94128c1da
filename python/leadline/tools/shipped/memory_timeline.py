"""Tensor memory over time: how much, for what, and what stood at the peak (Figures 14 and 15 of the PASTA paper)."""

from __future__ import annotations

from typing import Any

import numpy as np

from leadline.tools.batch import Batch
from leadline.tools.out import Out
from leadline.tools.sizes import size_text
from leadline.tools.spread import Spread
from leadline.tools.tool import Tool, option


class MemoryTimeline(Tool):
    """Tensor memory over time by device and by layer or phase, and what was alive at the peak."""

    tool_name = "memory_timeline"
    events = {"memory": ["time", "address", "bytes", "device", "device_type", "place"]}
    points = option(int, "400", "points of each curve at most")
    series = option(int, "8", "layers shown as their own curves")
    by = option(str, "layer", "what memory is grouped by: layer, phase, operator or line")

    def start(self) -> None:
        self.live: dict[tuple[int, int, int], tuple[int, int]] = {}
        self.devices: dict[int, _Device] = {}
        self.owners: dict[str, int] = {}
        self.texts: list[str] = []
        self.of_place: dict[int, int] = {}
        self.unknown_frees = 0

    def memory(self, b: Batch) -> None:
        names = ("time", "address", "bytes", "device", "device_type", "place")
        order = np.argsort(np.asarray(b["time"]), kind="stable")
        columns = (np.asarray(b[name])[order].tolist() for name in names)
        for time, address, size, device, kind, place in zip(*columns, strict=True):
            key = (kind, device, address)
            if size >= 0:
                change = size
                owner = self._owner(place)
                self.live[key] = (size, owner)
            else:
                known = self.live.pop(key, None)
                if known is None:
                    self.unknown_frees += 1
                    continue
                change, owner = -known[0], known[1]
            seen = self.devices.get(device)
            if seen is None:
                seen = self.devices[device] = _Device(self.points)
            seen.add(time, change, owner)

    def _owner(self, place: int) -> int:
        number = self.of_place.get(place)
        if number is None:
            places = self.places
            read = {"phase": places.phase, "operator": places.operator, "line": places.line}
            text = read.get(self.by, places.module)(place)
            if self.by == "layer" and places.phase(place):
                text = f"{text or 'outside any layer'} ({places.phase(place)})"
            text = text or f"outside any {self.by}"
            number = self.owners.setdefault(text, len(self.owners))
            if number == len(self.texts):
                self.texts.append(text)
            self.of_place[place] = number
        return number

    def finish(self, out: Out) -> None:
        if not self.devices:
            out.text("memory", "No tensor memory was allocated.")
            return
        for device in sorted(self.devices):
            self._tell(out, self.devices[device], "the CPU" if device < 0 else f"device {device}")
        if self.unknown_frees:
            out.text(
                "frees",
                f"{self.unknown_frees:,} frees of memory from before the tool began are left out.",
            )

    def _tell(self, out: Out, device: _Device, label: str) -> None:
        at_peak = device.at_peak(len(self.texts))
        peak = max(1, device.peak)
        largest = [int(one) for one in np.argsort(-at_peak)[: self.series] if at_peak[one] > 0]
        values = device.curves.cells([0, *(1 + one for one in largest)])
        names = ["all", *(self.texts[one] for one in largest)]
        out.curve(
            f"tensor memory on {label}",
            [float(time - device.times[0]) for time in device.times],
            {name: curve.tolist() for name, curve in zip(names, values, strict=True)},
        )
        after = (device.peak_time - device.times[0]) / 1e9
        out.table(
            f"alive at the peak on {label}: {size_text(device.peak)} after {after:.3f} s",
            [
                {
                    self.by: self.texts[owner],
                    "alive": at_peak[owner],
                    "share": 100 * at_peak[owner] / peak,
                }
                for owner in np.argsort(-at_peak).tolist()
                if at_peak[owner] > 0
            ],
            units={"alive": "bytes", "share": "%"},
        )
        out.text("events", f"{device.allocations:,} allocations and {device.frees:,} frees on {label}.")


class _Device:
    """Levels of one device as they go up and down: memory grows with owners, never with events."""

    def __init__(self, points: int) -> None:
        self.curves = Spread(points, np.maximum)
        """Of all (row 0) and of each owner, by events."""
        self.times: list[int] = []
        """Of the first event of each cell."""
        self.peak = self.peak_time = 0
        self.allocations = self.frees = 0
        self._levels = np.zeros(64, np.int64)
        self._events = 0
        self._begun = (-1, 0)  # the cell under way, and its width
        self._at_peak: np.ndarray[Any, Any] | None = self._levels
        """None: the levels of now."""

    def add(self, time: int, change: int, owner: int) -> None:
        """An allocation of an owner, or a release where `change` is negative."""
        levels = self._levels
        if owner + 1 >= len(levels):
            levels = self._levels = np.concatenate([levels, np.zeros(max(owner, len(levels)), np.int64)])
            self._begun = (-1, self._begun[1])  # room for more owners
        if change < 0 and self._at_peak is None:
            self._at_peak = levels.copy()
        levels[0] += change
        levels[owner + 1] += change
        self.allocations += change > 0
        self.frees += change < 0
        total = int(levels[0])
        if total > self.peak:
            self.peak, self.peak_time, self._at_peak = total, time, None
        self._enter(time, owner)

    def _enter(self, time: int, owner: int) -> None:
        position, self._events = self._events, self._events + 1
        curves = self.curves
        cell = position // curves.width
        if (cell, curves.width) != self._begun:  # what does not change in this cell has its level as well
            curves.column(position, self._levels)
            if curves.width != self._begun[1]:
                self.times = self.times[:: curves.width // max(1, self._begun[1])]
                cell = position // curves.width
            if cell == len(self.times):
                self.times.append(time)
            self._begun = (cell, curves.width)
        else:
            curves.lift(0, position, self._levels[0])
            curves.lift(owner + 1, position, self._levels[owner + 1])

    def at_peak(self, owners: int) -> np.ndarray[Any, Any]:
        """Bytes of each owner when the total was greatest."""
        held = self._levels if self._at_peak is None else self._at_peak
        return np.pad(held[1 : owners + 1], (0, max(0, owners - len(held) + 1)))
