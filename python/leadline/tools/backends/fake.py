"""Events drawn by hand, one JSON object a line: for trying a tool on what no device here gives.

    {"object": "weights", "bytes": 4096, "category": "parameter", "shape": "float32[1024]"}
    {"event": "launch", "kernel": "gemm", "place": "train.py:10"}
    {"event": "shared_access", "launch": 0, "instruction": "gemm.cu:12", "conflicts": 31, "count": 1}

What is the number of something may be written as its text. Columns that are left out are 0; launches count up.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from leadline.tools.backends import Wants
from leadline.tools.backends.recording import Recording
from leadline.tools.backends.replay import EVENTS, ReplayBackend, probe
from leadline.tools.errors import ToolError
from leadline.tools.events import EVENTS as ALL
from leadline.tools.registry import Names
from leadline.tools.tool import Context

TRAITS = ("events drawn in a file", "no program runs")
DOC = "events drawn by hand in a file of JSON lines, to try a tool on"
NOTHING = "the file has none of them"


class FakeBackend(ReplayBackend):
    """Hands over what is drawn."""

    name = "fake"
    traits = TRAITS

    def _read(self, file: str) -> Recording:
        return drawn(file)


def drawn(file: str) -> Recording:
    """The events of a file; raises ToolError with the line that cannot be read."""
    try:
        lines = Path(file).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ToolError(f"{file} cannot be read: {error}.") from None
    sheet = _Sheet()
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            sheet.add(json.loads(line))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ToolError(f"{file}:{number} cannot be read: {error}.") from None
    return sheet.recording()


class _Sheet:
    def __init__(self) -> None:
        self.names = Names()
        self.objects: dict[str, list[Any]] = {}
        self.places: dict[str, int] = {}
        self.rows: dict[str, list[dict[str, int]]] = {}

    def add(self, drawn: dict[str, Any]) -> None:
        """One line; raises ValueError, KeyError or TypeError."""
        if "event" not in drawn:
            self._object(str(drawn["object"]), drawn)
            return
        event = str(drawn["event"])
        if event not in ALL:
            raise ValueError(f"there is no event {event!r}; there are {', '.join(ALL)}")
        given = {name: value for name, value in drawn.items() if name != "event"}
        row = {column.name: 0 for column in ALL[event].columns}
        if event == "launch":
            row["launch"] = len(self.rows.get("launch", ()))
            row["device"] = -1
        for name, value in given.items():
            column = ALL[event].column(name)
            if column is None:
                raise ValueError(f"{event} has no column {name!r}; it has {', '.join(row)}")
            row[name] = self._number(column.ref, value) if isinstance(value, str) else int(value)
        self.rows.setdefault(event, []).append(row)

    def _number(self, ref: str, text: str) -> int:
        if ref == "name":
            return self.names.number(text)
        if ref == "place":
            return self.places.setdefault(text, len(self.places) + 1)
        if ref == "object":
            if text not in self.objects:
                self._object(text, {})
            return list(self.objects).index(text)
        raise ValueError(f"{text!r} is not a number")

    def _object(self, name: str, drawn: dict[str, Any]) -> None:
        category, shape = str(drawn.get("category", "input")), str(drawn.get("shape", name))
        self.objects[name] = [int(drawn.get("bytes", 0)), -1, category, shape, 0]

    def recording(self) -> Recording:
        """All of it."""
        columns = {
            event: {name: np.array([row[name] for row in rows], np.int64) for name in rows[0]}
            for event, rows in self.rows.items()
        }
        places = {}
        for text, place in self.places.items():
            file, _, line = text.rpartition(":")
            at = int(line) if line.isdecimal() else 0
            places[place] = {"path": [["python", "drawn", file or text, at]], "line": text}
        return Recording(
            {"names": self.names.texts(), "objects": list(self.objects.values()), "places": places}, columns
        )


def create(native: Any, context: Context, wants: Wants) -> FakeBackend:
    """See `leadline.tools.backends`; raises ToolError for a line that cannot be read."""
    return FakeBackend(native, context, wants)


__all__ = ["DOC", "EVENTS", "TRAITS", "FakeBackend", "create", "drawn", "probe"]
