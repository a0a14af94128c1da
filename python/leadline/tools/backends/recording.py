"""Events of a run in a file: what `--tool record` writes and the backend `replay` reads.

One NumPy archive: `EVENT.COLUMN` arrays of int64 in the order of the events, and `meta`, JSON as bytes: names by
number, objects (bytes, device, category, shape, place), and call paths by place.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from leadline._output import replacing
from leadline.tools.batch import Batch
from leadline.tools.errors import ToolError
from leadline.tools.events import EVENTS
from leadline.tools.registry import Launches, Names, Objects, Places

VERSION = 1


def write_recording(
    file: Path,
    batches: Mapping[str, list[Batch]],
    names: Names,
    objects: Objects,
    places: Places,
    recorded: Collection[str] = (),
) -> None:
    """Write it whole or not at all; raises OSError. `recorded`: events that were looked for, if they came or not."""
    arrays: dict[str, Any] = {}
    seen: set[int] = set()
    for event, of_event in batches.items():
        for column in of_event[0].columns():
            arrays[f"{event}.{column}"] = np.concatenate([batch.columns()[column] for batch in of_event])
        seen.update(np.unique(arrays.get(f"{event}.place", np.empty(0, np.int64))).tolist())
    things = []
    for number in range(len(objects)):
        place = int(objects.place[number])
        seen.add(place)
        size, device = int(objects.bytes[number]), int(objects.device[number])
        things.append([size, device, objects.category(number), objects.shape(number), place])
    paths = {
        str(place): {
            "path": [[one.kind, one.name, one.file, one.line] for one in places.path(place)],
            "line": places.line(place),
        }
        for place in seen
        if place
    }
    events = sorted({*recorded, *batches})
    meta = {"version": VERSION, "events": events, "names": names.texts(), "objects": things, "places": paths}
    arrays["meta"] = np.frombuffer(json.dumps(meta).encode(), np.uint8)
    with replacing(file) as stream:
        np.savez(stream, **arrays)


class Recording:
    """Events by column, and what their numbers stand for."""

    def __init__(self, meta: Mapping[str, Any], columns: dict[str, dict[str, Any]]) -> None:
        """Raises KeyError, TypeError or ValueError for what makes no sense."""
        self.names: list[str] = [str(name) for name in meta["names"]]
        self.objects: list[tuple[int, int, str, str, int]] = [
            (int(a), int(b), str(c), str(d), int(e)) for a, b, c, d, e in meta["objects"]
        ]
        self.places = {
            int(place): ([(str(k), str(n), str(f), int(at)) for k, n, f, at in told["path"]], str(told["line"]))
            for place, told in meta["places"].items()
        }
        self.columns = columns
        self.events = {str(event) for event in meta.get("events", ())} | set(columns)
        """Looked for when it was made; of some there may be no rows."""
        for event, of_event in columns.items():
            if event not in EVENTS:
                raise ValueError(f"there is no event {event}")
            if len({values.shape for values in of_event.values()}) != 1 or next(iter(of_event.values())).ndim != 1:
                raise ValueError(f"the columns of {event} differ in length")
            for column in EVENTS[event].columns:
                if column.ref == "launch" and column.name in of_event:
                    values = of_event[column.name]
                    if len(values) and (values.min() < 0 or values.max() >= 1 << 40):
                        raise ValueError(f"{event} has numbers of launches that are none")

    @classmethod
    def of_file(cls, file: str) -> Recording:
        """What `write_recording` has written; raises ToolError."""
        try:
            with np.load(file, allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
            meta = json.loads(arrays.pop("meta").tobytes())
            if int(meta["version"]) > VERSION:
                raise ToolError(f"{file} was recorded by a newer Leadline; read it with that one.")
            columns: dict[str, dict[str, Any]] = {}
            for name, values in arrays.items():
                event, _, column = name.partition(".")
                columns.setdefault(event, {})[column] = values.astype(np.int64)
            return cls(meta, columns)
        except FileNotFoundError:
            raise ToolError(f"There is no file {file}; record one with --tool record.") from None
        except ToolError:
            raise
        except Exception as error:  # the readers of archives and arrays raise whatever a damaged file makes them meet
            raise ToolError(f"{file} is no recording of events ({error}); record one with --tool record.") from None

    def fill(self, names: Names, objects: Objects, places: Places) -> tuple[dict[int, int], dict[int, int]]:
        """Put what it knows into the registries of a run; the numbers that its names and objects have there."""
        name_of = {number: names.number(text) for number, text in enumerate(self.names)}
        thing_of = {}
        for number, (size, device, category, shape, place) in enumerate(self.objects):
            thing_of[number] = objects.add(size, device, place, category, shape)
        for place, told in self.places.items():
            places.learn(place, *told)
        return name_of, thing_of


def launches_of(columns: Mapping[str, Any], launches: Launches) -> None:
    """What the rows of the event `launch` say."""
    need = ("launch", "kernel", "place", "time")
    if all(name in columns for name in need):
        launches.add(*(columns[name] for name in need))
