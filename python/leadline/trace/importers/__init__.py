"""Traces of other profilers as profiles: one file per format, one entry each in `IMPORTERS`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from leadline.profiles.merge import merge_profiles
from leadline.profiles.profile import Profile
from leadline.profiles.reader import open_profile
from leadline.trace.importers import ctf, kineto, nsys, perf_script, rocpd, trace_dat, xspace
from leadline.trace.kernel.foreign import joined
from leadline.trace.related import Compared, on_related_clocks, refuse_unrelated
from leadline.trace.source import Source, ctf_traces, sources, xspaces
from leadline.trace.tables import TraceError

HEAD_BYTES = 4096
_PERFETTO = (".pftrace", ".perfetto-trace", ".pftrace.gz")
_ZIP = b"PK\x03\x04"


class Importer(Protocol):
    """What a format's module offers."""

    NAME: str
    """As in "in the format of ..."."""

    def recognises(self, head: bytes, source: Source) -> bool:
        """Whether a file with these first bytes, decompressed, may be of this format."""

    def read(self, source: Source) -> Profile:
        """The profile of one file. Raises TraceError."""


IMPORTERS: tuple[Importer, ...] = (kineto, rocpd, nsys, trace_dat, ctf, xspace, perf_script)
"""In the order in which they are asked: `nsys` takes any database."""


def import_traces(paths: Sequence[str | Path], relations: Sequence[Compared] = ()) -> Profile:
    """The profile of one trace, or of the ranks of a job together: files, folders or archives of them. Profiles of ours
    may be among them. Recordings of the kernel are laid beside what else there is. `relations`: how the machines'
    clocks compare; without them by CLOCK_REALTIME.

    Raises TraceError with the file that no importer knows, and whatever is wrong with one that an importer does know.
    """
    programs: list[Profile] = []
    kernels: list[tuple[Importer, Source]] = []
    for source in (found for path in paths for found in ([_Own(Path(path))] if _is_ours(path) else sources(path))):
        if isinstance(source, _Own):
            programs.append(open_profile(source.path))
            continue
        importer = _importer(source)
        if getattr(importer, "kernel_only", lambda source: False)(source):
            kernels.append((importer, source))
        else:
            programs.append(importer.read(source))
    if not programs and len(kernels) == 1:
        return kernels[0][0].read(kernels[0][1])
    if not programs:
        names = ", ".join(source.name for _, source in kernels)
        raise TraceError(f"{names} are recordings of the kernel; give one of them, or a profile that it belongs to")
    if relations:
        programs = on_related_clocks(programs, relations)
    refuse_unrelated(programs)
    found = programs[0] if len(programs) == 1 else merge_profiles(programs)
    for importer, source in kernels:
        found = joined(found, importer.recording(source))  # type: ignore[attr-defined]
    return found


@dataclass(frozen=True)
class _Own:
    """A profile of ours among traces of others."""

    path: Path


def _is_ours(path: str | Path) -> bool:
    try:
        with Path(path).open("rb") as file:
            return file.read(len(_ZIP)) == _ZIP
    except OSError:
        return False


def recognised(path: Path) -> bool:
    """Whether `path` is a file that an importer would try to read, or a folder of JAX's or TensorFlow's profiles or of
    CTF traces."""
    try:
        there = path.is_file() or (path.is_dir() and bool(xspaces(path) or ctf_traces(path)))
        return there and any(_known(source) for source in sources(path))
    except (TraceError, OSError):
        return False


def _importer(source: Source) -> Importer:
    found = _known(source)
    if found is None and source.name.endswith(_PERFETTO):
        raise TraceError(
            f"{source.name} is a trace of Perfetto, which is not imported; give what it was made from: the .leadline "
            "file that was exported, a rocpd database (rocprofv3 --output-format rocpd), or of the kernel what "
            "trace-cmd or perf script wrote"
        )
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
