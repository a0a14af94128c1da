"""`open_any(path)`: a profile, a trace of another profiler, or a folder of a job's ranks, as one Profile.

Every verb, `leadline.open`, `leadline.diff`, `leadline mcp` and the page open files through it.
"""

from __future__ import annotations

import os
from pathlib import Path

from leadline.profiles import Profile, ProfileFileError
from leadline.profiles.merge import merge_profiles
from leadline.profiles.reader import open_head, open_profile
from leadline.profiles.remote import is_address

SUFFIX, PART_SUFFIX = ".leadline", ".leadline.part"


def open_any(path: str | os.PathLike[str]) -> Profile:
    """The profile in `path`: a `.leadline` file (or its address), a trace that `leadline import` reads, an archive of
    such, or a folder with the ranks of a job in either form.

    Raises ProfileFileError, with one sentence, for what cannot be read.
    """
    text = os.fspath(path)
    if not is_address(text) and Path(text).is_dir() and not text.rstrip("/").endswith(PART_SUFFIX):
        return _of_folder(Path(text))
    try:
        return open_profile(text)
    except ProfileFileError as error:
        from leadline.trace.importers import recognised  # here, since most files are profiles

        if is_address(text) or not recognised(Path(text)):
            raise
        return _imported(text, error)


def is_ours(path: str | os.PathLike[str]) -> bool:
    """Whether `path` is named as a profile, or is a folder of profiles."""
    place = Path(path)
    return place.name.endswith(SUFFIX) or (place.is_dir() and bool(_profiles_in(place)))


def _profiles_in(folder: Path) -> list[Path]:
    return sorted(item for item in folder.iterdir() if item.name.endswith(SUFFIX) and item.stat().st_size)


def _of_folder(folder: Path) -> Profile:
    ours = _profiles_in(folder)
    if not ours:
        try:
            return open_profile(folder)
        except ProfileFileError as error:  # which says what a folder of segments is for
            if not any(not item.name.startswith(".") for item in folder.iterdir()):
                raise
            return _imported(str(folder), error)
    if len(ours) > 1:
        _refuse_strangers(folder, ours)
    found = [open_profile(item) for item in ours]
    return found[0] if len(found) == 1 else merge_profiles(found)


def _refuse_strangers(folder: Path, files: list[Path]) -> None:
    """Runs that only lie side by side are not one job."""
    ranks: set[int] = set()
    for item in files:
        listed = open_head(item)[1]["rank"].tolist()
        here = {rank for rank in listed if rank >= 0}
        if not here or here & ranks:
            raise ProfileFileError(
                f"{folder} holds {len(files)} profiles that are not the ranks of one job; name one of them, or bring "
                f"them together with 'leadline merge'."
            )
        ranks |= here


def _imported(path: str, instead: ProfileFileError) -> Profile:
    """The profile of a trace of another profiler; `instead`: the error of a folder in which no importer finds one."""
    from leadline.trace.importers import import_traces
    from leadline.trace.tables import TraceError

    try:
        return import_traces([path])
    except (TraceError, ValueError) as error:
        raise ProfileFileError(str(error)) from instead
