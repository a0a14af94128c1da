"""Traces of other profilers as profiles: one file per format, one entry each in `IMPORTERS`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from leadline.profiles.merge import merge_profiles
from leadline.profiles.profile import Profile
from leadline.trace.importers import kineto, nsys, perf_script, rocpd, xspace
from leadline.trace.source import Source, sources, xspaces
from leadline.trace.tables import TraceError

HEAD_BYTES = 4096


class Importer(Protocol):
    """What a format's module offers."""

    NAME: str
    """As in "in the format of ..."."""

    def recognises(self, head: bytes, source: Source) -> bool:
        """Whether a file with these first bytes, decompressed, may be of this format."""

    def read(self, source: Source) -> Profile:
        """The profile of one file. Raises TraceError."""


IMPORTERS: tuple[Importer, ...] = (kineto, rocpd, nsys, xspace, perf_script)
"""In the order in which they are asked: `nsys` takes any database."""


def import_traces(paths: Sequence[str | Path]) -> Profile:
    """The profile of one trace, or of the ranks of a job together: files, folders or archives of them.

    Raises TraceError with the file that no importer knows, and whatever is wrong with one that an importer does know.
    """
    profiles = [_importer(source).read(source) for source in sources(list(paths))]
    return profiles[0] if len(profiles) == 1 else merge_profiles(profiles)


def recognised(path: Path) -> bool:
    """Whether `path` is a file that an importer would try to read, or a folder of JAX's or TensorFlow's profiles."""
    try:
        there = path.is_file() or (path.is_dir() and bool(xspaces(path)))
        return there and any(_known(source) for source in sources(path))
    except (TraceError, OSError):
        return False


def _importer(source: Source) -> Importer:
    found = _known(source)
    if found is None:
        formats = "; ".join(importer.NAME for importer in IMPORTERS)
        raise TraceError(f"{source.name} is in no format that can be imported; these can: {formats}")
    return found


def _known(source: Source) -> Importer | None:
    try:
        with source.open() as stream:
            head = stream.read(HEAD_BYTES)
    except (OSError, EOFError):
        return None
    return next((importer for importer in IMPORTERS if importer.recognises(head, source)), None)
