"""Torch's snapshot of a device's allocator (`torch.cuda.memory._snapshot`, pickled), joined with a profile's paths.

The format is that of torch 2.4 to 2.13 (torch/cuda/memory.py): segments of blocks with `state`, `size`,
`requested_size` and `frames`, the innermost first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from leadline._dataclass import dataclass
from leadline.analysis.origin import Origin, origin
from leadline.profiles import Tree
from leadline.schema import FrameKind
from leadline.trace.snapshot_file import DAMAGE, LIVE, SnapshotFile


class SnapshotError(ValueError):
    """The file is no snapshot; the message says why."""


@dataclass(frozen=True)
class LiveMemory:
    """Live blocks of one device that one line has allocated. `row`: the node of the profile that the stack reaches
    deepest, -1 for none. `file` is empty where blocks have no stack: they were made before the history began."""

    device: int
    file: str
    line: int
    function: str
    size: int
    blocks: int
    row: int


@dataclass(frozen=True)
class Allocator:
    """One device, in bytes. `reserved` is what torch holds of it, `live` what tensors need of that, `rounding` what
    blocks are larger than was asked; `largest_free`: the largest block that could be given away now."""

    device: int
    reserved: int
    live: int
    rounding: int
    largest_free: int


@dataclass(frozen=True)
class Snapshot:
    """What a snapshot shows, the largest first."""

    allocators: tuple[Allocator, ...]
    live: tuple[LiveMemory, ...]


def read_snapshot(path: Path, tree: Tree | None = None) -> Snapshot:
    """Read and join. Raises SnapshotError and OSError."""
    try:
        with path.open("rb") as stream:
            segments = SnapshotFile(stream).segments
    except DAMAGE as error:
        raise SnapshotError(f"{path} is no snapshot of torch's allocator: {error}.") from None
    try:
        return _joined(segments, _Places(tree) if tree is not None else None)
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise SnapshotError(f"{path} is no snapshot of torch's allocator: {error!r}.") from None


def _joined(segments: Sequence[Mapping[str, Any]], places: _Places | None) -> Snapshot:
    devices: dict[int, list[int]] = {}
    lines: dict[tuple[int, str, int, str, int], list[int]] = {}
    for segment in segments:
        device = int(segment.get("device", 0))
        sums = devices.setdefault(device, [0, 0, 0, 0])
        sums[0] += int(segment["total_size"])
        for block in segment["blocks"]:
            size, state = int(block["size"]), str(block["state"])
            if state not in LIVE:
                sums[3] = max(sums[3], size)
                continue
            sums[1] += size
            sums[2] += size - int(block.get("requested_size", size))
            frames = _frames(block)
            file, line, function = _user_line(frames)
            row = places.deepest(frames) if places is not None else -1
            group = lines.setdefault((device, file, line, function, row), [0, 0])
            group[0] += size
            group[1] += 1
    live = [LiveMemory(*key[:4], size, blocks, key[4]) for key, (size, blocks) in lines.items()]
    return Snapshot(
        tuple(Allocator(device, *sums) for device, sums in sorted(devices.items())),
        tuple(sorted(live, key=lambda found: -found.size)),
    )


def _frames(block: Mapping[str, Any]) -> list[tuple[str, int, str]]:
    """Python frames, the innermost first; older releases keep them in the block's history."""
    frames = block.get("frames") or next((one.get("frames") for one in block.get("history") or []), None) or []
    found = ((str(frame["filename"]), int(frame["line"]), str(frame["name"])) for frame in frames)
    return [frame for frame in found if frame[0].endswith(".py") or frame[0].startswith("<")]


def _user_line(frames: Sequence[tuple[str, int, str]]) -> tuple[str, int, str]:
    """As in `Scopes`: the innermost frame of the user's own code, else of an installed package, else any."""
    for wanted in (Origin.USER, Origin.PACKAGE):
        for frame in frames:
            if origin(frame[0]) == wanted:
                return frame
    return frames[0] if frames else ("", 0, "")


class _Places:
    """Finds the node whose Python frames follow a stack furthest."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        python = np.flatnonzero(tree.kinds == int(FrameKind.PYTHON))
        strings = tree.tables.strings
        self._children: dict[tuple[int, str, int], int] = {}
        above = self._python_above(python)
        for row in python.tolist():
            frame = int(tree.frame_of[row])
            file, line = strings[int(tree.frames["file"][frame])], int(tree.frames["line"][frame])
            self._children.setdefault((above[row], file, line), row)

    def _python_above(self, python: Any) -> dict[int, int]:
        """For each Python node the nearest Python node above it, -1 for none."""
        is_python = self._tree.kinds == int(FrameKind.PYTHON)
        parent = self._tree.shape.parent.tolist()
        nearest = [-1]
        for up in parent[1:]:  # parents come before their children
            nearest.append(up if is_python[up] else nearest[up])
        return {row: nearest[row] for row in python.tolist()}

    def deepest(self, frames: Sequence[tuple[str, int, str]]) -> int:
        """`frames` with the innermost first. A stack may begin above the profile's first frame, in a launcher."""
        outermost_first = list(reversed(frames))
        for skipped in range(len(outermost_first)):
            at = -1
            for file, line, _ in outermost_first[skipped:]:
                below = self._children.get((at, file, line), -1)
                if below < 0:
                    break
                at = below
            if at >= 0:
                return at
        return -1
