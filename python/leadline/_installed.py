"""Entry points of installed packages, for a look at their files where no package has any.

`importlib.metadata` takes 25 ms and reads every package to say that none brings a rule, which most environments are.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import importlib.metadata

_FOLDERS = (".dist-info", ".egg-info")
_FILE = "entry_points.txt"


def entry_points(group: str) -> tuple[importlib.metadata.EntryPoint, ...]:
    """Those of a group, of every package that Python finds."""
    if not _may_have(group.encode()):
        return ()
    import importlib.metadata

    return tuple(importlib.metadata.entry_points(group=group))


def _may_have(group: bytes) -> bool:
    """False where no file of entry points names the group; True also where packages are found in another way."""
    for finder in sys.meta_path:
        if hasattr(finder, "find_distributions") and getattr(finder, "__name__", "") != "PathFinder":
            return True
    return any(_in_folder(folder or ".", group) for folder in sys.path)


def _in_folder(folder: str, group: bytes) -> bool:
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries]
    except NotADirectoryError:
        return True  # an archive
    except OSError:
        return False
    for name in names:
        if name.endswith(".egg"):
            return True
        if name.endswith(_FOLDERS):
            try:
                with open(os.path.join(folder, name, _FILE), "rb") as file:  # noqa: PTH118, PTH123  # of hundreds
                    if group in file.read():
                        return True
            except OSError:
                continue
    return False
