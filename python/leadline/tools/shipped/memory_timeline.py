"""Tensor memory over time: how much, for what, and what stood at the peak (Figures 14 and 15 of the PASTA paper)."""

from __future__ import annotations

from typing import Any

import numpy as np

from leadline.tools.batch import Batch
from leadline.tools.out import Out
from leadline.tools.tool import Tool, option

_UNKNOWN = np.iinfo(np.int64).min


class MemoryTimeline(Tool):
    """Tensor memory over time by device and by layer or phase, and what was alive at the peak."""

    tool_name = "memory_timeline"
    events = {"memory": ["time", "address", "bytes", "device", "device_type", "place"]}
    points = option(int, "400", "points of each curve")
    series = option(int, "8", "layers shown as curves of their own")
    by = option(str, "layer", "what memory is told apart by: layer, phase, operator or line")

    def start(self) -> None:
        self.live: dict[tuple[int, int, int], tuple[int, int, int]] = {}
        self.events_seen: list[tuple[int, int, int, int]] = []
        self.owners: dict[str, int] = {}
        self.texts: list[str] = []
        self.of_place: dict[int, int] = {}
        self.unknown_frees = 0

    def memory(self, b: Batch) -> None:
        names = ("time", "address", "bytes", "device", "device_type", "place")
        columns = (np.asarray(b[name]).tolist() for name in names)
        for time, address, size, device, kind, place in zip(*columns, strict=True):
            key = (kind, device, address)
            if size >= 0:
                owner = self._owner(place)
                self.live[key] = (size, owner, place)
                self.events_seen.append((time, size, owner, device))
            else:
                known = self.live.pop(key, None)
                if known is None:
                    self.unknown_frees += 1
                    continue
                self.events_seen.append((time, -known[0], known[1], device))

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
        if not self.events_seen:
            out.text("memory", "No tensor memory was allocated.")
            return
        rows = np.array(sorted(self.events_seen), np.int64)
        for device in np.unique(rows[:, 3]).tolist():
            self._device(out, rows[rows[:, 3] == device], "the CPU" if device < 0 else f"device {device}")
        if self.unknown_frees:
            out.text(
                "frees",
                f"{self.unknown_frees:,} frees of memory from before the tool began are left out.",
            )

    def _device(self, out: Out, rows: Any, label: str) -> None:
        total = np.cumsum(rows[:, 1])
        peak = int(total.argmax())
        owners = len(self.texts)
        at_peak = np.bincount(rows[: peak + 1, 2], rows[: peak + 1, 1], owners)
        largest = [int(one) for one in np.argsort(-at_peak)[: self.series] if at_peak[one] > 0]
        edges = np.linspace(0, len(rows) - 1, min(self.points, len(rows))).astype(np.int64)
        curves = {"all": np.maximum.reduceat(total, edges)}
        for owner in largest:
            own = np.cumsum(np.where(rows[:, 2] == owner, rows[:, 1], 0))
            curves[self.texts[owner]] = np.maximum.reduceat(own, edges)
        begin = int(rows[0, 0])
        out.curve(
            f"tensor memory on {label}",
            [float(time - begin) for time in rows[edges, 0].tolist()],
            {name: [float(value) for value in values.tolist()] for name, values in curves.items()},
        )
        whole = max(1, int(total[peak]))
        out.table(
            f"alive at the peak on {label}: {_size(int(total[peak]))} after {(int(rows[peak, 0]) - begin) / 1e9:.3f} s",
            [
                {self.by: self.texts[owner], "alive": at_peak[owner], "share": 100 * at_peak[owner] / whole}
                for owner in np.argsort(-at_peak).tolist()
                if at_peak[owner] > 0
            ],
            units={"alive": "bytes", "share": "%"},
        )
        counts = {"allocations": int((rows[:, 1] > 0).sum()), "frees": int((rows[:, 1] < 0).sum())}
        out.text("events", f"{counts['allocations']:,} allocations and {counts['frees']:,} frees on {label}.")


def _size(value: int) -> str:
    for scale, unit in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value} B"
