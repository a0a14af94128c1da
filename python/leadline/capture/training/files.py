"""Names of the files of a training run: they never collide, and the oldest go where only so many are wanted.

A name is HOST_rankR_START.leadline, START being the second (UTC) in which measuring began; a second start in one second
takes a number behind it.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import time
from collections.abc import Sequence
from pathlib import Path

from leadline.capture.config import PART_SUFFIX, SUFFIX
from leadline.capture.errors import ProfileError

_UNSAFE = re.compile(r"[^A-Za-z0-9.-]+")
MERGED = "merged"


def prepare_folder(folder: Path) -> Path:
    """The folder, made where it did not exist, as a whole path; raises ProfileError when it cannot be written."""
    try:
        folder = folder.expanduser().absolute()
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ProfileError(f"Cannot write profiles to {folder}: {reason}; choose another trace_dir.") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ProfileError(f"Cannot write profiles to {folder}: no permission; choose another trace_dir.")
    return folder


def stem_of_rank(rank: int, host: str = "") -> str:
    """HOST_rankR: how all names of a rank on a machine begin."""
    return f"{_stem(host)}_rank{rank}"


def _stem(host: str = "") -> str:
    return _UNSAFE.sub("-", host or socket.gethostname()) or "host"


def claim_name(folder: Path, rank: int, seconds: float | None = None) -> Path:
    """A name that no other process has or will be given; raises ProfileError.

    The empty file that stands for the claim is replaced by the profile.
    """
    started = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(time.time() if seconds is None else seconds))
    base = f"{stem_of_rank(rank)}_{started}"
    for number in range(1000):
        path = folder / (f"{base}-{number}{SUFFIX}" if number else f"{base}{SUFFIX}")
        try:
            path.open("x").close()
        except FileExistsError:
            continue
        except OSError as error:
            raise ProfileError(f"Cannot write {path}: {error.strerror}; choose another trace_dir.") from None
        return path
    raise ProfileError(f"There are a thousand profiles called {base} in {folder}; remove some.")


def remove_oldest(folder: Path, rank: int, max_files: int, keep: Path, made: Sequence[Path] = ()) -> list[Path]:
    """Remove profiles of this rank on this machine until `max_files` are left; returns what was removed.

    `keep` is never removed, and neither is one that is still being written. `made`: those of this run in the order in
    which it made them, which a clock that was set back does not tell. `max_files` = 0 removes nothing. Rank 0,
    which merges, does the same with merged ones and leaves room for one more.
    """
    if max_files <= 0:
        return []
    stems = [stem_of_rank(rank), *([f"{_stem()}_{MERGED}"] if rank == 0 else [])]
    removed = []
    for stem in stems:
        removed += _remove_oldest(
            [path for path in folder.glob(f"{stem}_*{SUFFIX}") if path != keep], max_files - 1, made
        )
    return removed


def remove_profile(path: Path) -> None:
    """A profile and what stands beside it. Raises OSError."""
    path.unlink()
    for suffix in (".json", ".snapshot.pickle", ".oom.md"):
        path.with_suffix(suffix).unlink(missing_ok=True)


def _remove_oldest(paths: list[Path], wanted: int, made: Sequence[Path]) -> list[Path]:
    places = {path: place for place, path in enumerate(made)}
    whole = [path for path in paths if not path.with_name(path.stem + PART_SUFFIX).exists()]
    whole.sort(
        key=lambda path: (
            places.get(path, -1), path.name[: path.name.rindex("_") + 17], _changed_ns(path), path.name
        )
    )  # fmt: skip
    removed = []
    for path in whole[: max(0, len(whole) - wanted)]:
        with contextlib.suppress(OSError):
            remove_profile(path)
            removed.append(path)
    return removed


def _changed_ns(path: Path) -> int:
    """When a file was last written; 0 for one that somebody else has just removed."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
