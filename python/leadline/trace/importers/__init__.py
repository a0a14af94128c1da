"""Traces of other profilers as profiles: one file per format, one row each in `IMPORTERS`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from leadline.profiles.merge import merge_profiles
from leadline.profiles.profile import Profile
from leadline.trace.importers import kineto
from leadline.trace.source import Source, sources
from leadline.trace.tables import TraceError

HEAD_BYTES = 4096


@dataclass(frozen=True)
class Importer:
    """`recognises` gets the first bytes of a file, decompressed; `read` makes the profile of one file."""

    name: str
    recognises: Callable[[bytes], bool]
    read: Callable[[Source], Profile]


def _is_json(head: bytes) -> bool:
    return head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[")


IMPORTERS: tuple[Importer, ...] = (Importer("a Kineto trace of torch.profiler", _is_json, kineto.read),)


def import_traces(paths: Sequence[str | Path]) -> Profile:
    """The profile of one trace, or of the ranks of a job together: files, folders or archives of them.

    Raises TraceError with the file that no importer knows, and whatever is wrong with one that an importer does know.
    """
    found = sources(list(paths))
    profiles = [_importer(source).read(source) for source in found]
    if len(profiles) == 1:
        return profiles[0]
    return merge_profiles(profiles)


def recognised(path: Path) -> bool:
    """Whether `path` is a file that an importer would try to read."""
    try:
        return path.is_file() and any(_known(source) for source in sources(path))
    except (TraceError, OSError):
        return False


def _importer(source: Source) -> Importer:
    found = _known(source)
    if found is None:
        formats = ", ".join(importer.name for importer in IMPORTERS)
        raise TraceError(f"{source.name} is in no format that can be imported; these can: {formats}")
    return found


def _known(source: Source) -> Importer | None:
    with source.open() as stream:
        try:
            head = stream.read(HEAD_BYTES)
        except (OSError, EOFError):
            return None
    return next((importer for importer in IMPORTERS if importer.recognises(head)), None)
