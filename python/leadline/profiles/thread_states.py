"""Where the threads of a process stood when it wrote its last segment, in words."""

from __future__ import annotations

from pathlib import Path

from leadline.profiles.errors import ProfileFileError
from leadline.profiles.profile import Profile
from leadline.profiles.reader import open_segment
from leadline.profiles.tree import Node

_INSIDE = ("operator", "region", "phase", "api", "collective")


def open_places(segment: Path) -> dict[int, str]:
    """By number of the thread in the kernel, what it was inside of: `c10d::allreduce_ · layers.3 · train.py:41`; empty
    where the segment cannot be read."""
    try:
        tables = open_segment(segment)
    except ProfileFileError:
        return {}
    profile = Profile(tables, {"processes": []})
    tids = tables["threads"]["tid"].tolist()
    pairs = zip(tables["open_places"]["thread"].tolist(), tables["open_places"]["node"].tolist(), strict=True)
    return {tids[thread]: place_text(profile.tree.node(node)) for thread, node in pairs}


def place_text(node: Node) -> str:
    """The innermost operator or region, its module and its line."""
    path = node.path()
    inside = next((one.name for one in reversed(path) if str(one.kind) in _INSIDE), node.name)
    module = next((one.name for one in reversed(path) if str(one.kind) == "module"), "")
    line = next((one for one in reversed(path) if str(one.kind) == "python"), None)
    where = f"{line.file.rpartition('/')[2]}:{line.line}" if line is not None else ""
    return " · ".join(part for part in (inside, module, where) if part)
