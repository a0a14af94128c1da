"""Which files are meant: a folder, a pattern, a name. What killed ranks left behind is found too."""

from __future__ import annotations

import glob
from collections.abc import Iterable
from pathlib import Path

from leadline._dataclass import dataclass
from leadline.profiles.errors import ProfileFileError
from leadline.profiles.remote import is_address, list_address

SUFFIX, PART_SUFFIX = ".leadline", ".leadline.part"


@dataclass(frozen=True)
class Listed:
    """Files in the order of their names, without any twice; `nothing`: what was asked for and is not there."""

    files: tuple[str, ...]
    nothing: tuple[str, ...]


def list_files(asked: Iterable[str], output: str | None = None) -> Listed:
    """All files that `asked` names: of a folder every profile in it and below. `output` is not among them: it is
    what the last merge made. A part directory whose profile was made is left out, an empty file that stands for one
    that was not made too."""
    found: dict[str, None] = {}
    nothing = []
    for one in asked:
        if is_address(one):
            try:
                there = list_address(one)
            except ProfileFileError as error:
                nothing.append(str(error))
                continue
            nothing += [] if there else [f"{one} names no profile; give the folder or the files that the ranks wrote."]
            found.update(dict.fromkeys(there))
            continue
        path = Path(one)
        if path.is_dir() and not one.rstrip("/").endswith(PART_SUFFIX):
            here = [*path.rglob(f"*{SUFFIX}"), *path.rglob(f"*{PART_SUFFIX}")]
        elif path.exists():
            here = [path]
        else:
            here = [Path(name) for name in glob.glob(one, recursive=True)]  # noqa: PTH207 - patterns may be absolute
        if not here:
            nothing.append(f"{one} names no profile; give the folder or the files that the ranks wrote.")
        found.update((str(name), None) for name in sorted(here))
    made = Path(output).resolve() if output else None
    names = [name for name in found if is_address(name) or Path(name).resolve() != made]
    parts = {name for name in names if name.endswith(PART_SUFFIX)}
    kept = [name for name in names if not _stands_for(name, parts)]
    return Listed(tuple(sorted(kept)), tuple(nothing))


def _stands_for(name: str, parts: set[str]) -> bool:
    """Whether an empty file holds the place of a profile that never came, of which the parts are here."""
    return f"{name}.part" in parts and Path(name).stat().st_size == 0
