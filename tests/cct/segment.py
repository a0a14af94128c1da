"""Reads a segment with nothing but zipfile and NumPy, so that it also shows that numpy.load opens every column."""

from __future__ import annotations

import io
import math
import zipfile
from dataclasses import dataclass
from pathlib import Path as FilePath

import numpy as np
from tests.cct.reference import Event, Frame, Key, Path, Values

Columns = dict[str, np.ndarray]


@dataclass(frozen=True)
class Segment:
    """Tables by name; every table is its columns by name."""

    tables: dict[str, Columns]

    @classmethod
    def read(cls, path: FilePath) -> Segment:
        tables: dict[str, Columns] = {}
        with zipfile.ZipFile(path) as archive:
            assert archive.testzip() is None
            for name in archive.namelist():
                table, column, suffix = name.split(".")
                assert suffix == "npy"
                data = archive.read(name)
                assert data.index(b"\n") % 64 == 63, f"the data of {name} is not aligned"
                tables.setdefault(table, {})[column] = np.load(io.BytesIO(data), allow_pickle=False)
        return cls(tables)

    def string(self, row: int) -> str:
        strings = self.tables["strings"]
        begin, end = strings["offsets"][row : row + 2]
        return bytes(strings["bytes"][int(begin) : int(end)]).decode()

    def paths(self) -> list[Path]:
        """The whole call path of every node."""
        frames, nodes = self.tables["frames"], self.tables["nodes"]
        keys = [
            Frame(
                int(frames["kind"][row]),
                self.string(frames["name"][row]),
                self.string(frames["file"][row]),
                int(frames["line"][row]),
                int(frames["first_line"][row]),
                self.string(frames["module"][row]),
                int(frames["address"][row]),
                self.string(frames["detail"][row]),
            )
            for row in range(len(frames["kind"]))
        ]
        assert len(set(keys)) == len(keys), "a frame is in the table twice"
        paths: list[Path] = []
        for node, (parent, frame) in enumerate(zip(nodes["parent"], nodes["frame"], strict=True)):
            assert -1 <= parent < node
            paths.append((*(paths[parent] if parent >= 0 else ()), keys[frame]))
        return paths

    def metrics(self) -> dict[Path, dict[Key, Values]]:
        table, paths = self.tables["metrics"], self.paths()
        found: dict[Path, dict[Key, Values]] = {}
        for row in range(len(table["node"])):
            count, total = int(table["count"][row]), int(table["sum"][row])
            variance = float(table["sum_squares"][row]) / count - (total / count) ** 2
            values = Values(count, total, int(table["min"][row]), int(table["max"][row]), math.sqrt(max(0.0, variance)))
            key = Key(int(table["metric"][row]), int(table["device"][row]), int(table["stream"][row]))
            at_path = found.setdefault(paths[table["node"][row]], {})
            assert key not in at_path, "a node has two rows for one metric, device and stream"
            at_path[key] = values
        return found

    def events(self) -> list[Event]:
        table, paths = self.tables["events"], self.paths()
        assert list(table["start_ns"]) == sorted(table["start_ns"])
        return [
            Event(paths[node], int(start), int(duration), int(kind), int(thread), int(size))
            for node, start, duration, kind, thread, size in zip(
                table["node"],
                table["start_ns"],
                table["duration_ns"],
                table["kind"],
                table["thread"],
                table["bytes"],
                strict=True,
            )
        ]
