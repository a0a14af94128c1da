"""Traces of other profilers as profiles: one file per format, one entry each in `IMPORTERS`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from leadline._dataclass import dataclass
from leadline.profiles.merge import merge_profiles
from leadline.profiles.profile import Profile
from leadline.profiles.reader import open_profile
from leadline.profiles.recover import with_loss
from leadline.schema import LossKind
from leadline.trace.clock_sync import Compared, on_related_clocks, refuse_unrelated
from leadline.trace.importers import (
    ctf,
    kineto,
    memory_snapshot,
    nsys,
    perf_script,
    rocpd,
    run_metadata,
    tf_log,
    tf_timeline,
    trace_dat,
    xspace,
)
from leadline.trace.jsonstream import COMPRESSION_DAMAGE
from leadline.trace.kernel.foreign import joined
from leadline.trace.source import DamagedArchive, Source, ctf_traces, sources, xspaces
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


IMPORTERS: tuple[Importer, ...] = (
    memory_snapshot,
    tf_timeline,
    kineto,
    rocpd,
    nsys,
    trace_dat,
    ctf,
    run_metadata,
    xspace,
    tf_log,
    perf_script,
)
"""In the order in which they are asked: `kineto` takes any JSON, `nsys` any database."""


def import_traces(paths: Sequence[str | Path], relations: Sequence[Compared] = ()) -> Profile:
    """The profile of one trace, or of the ranks of a job together: files, folders or archives of them. Profiles of ours
    may be among them. Recordings of the kernel are laid beside what else there is. `relations`: how the machines'
    clocks compare; without them by CLOCK_REALTIME. What a folder or an archive holds beside traces is left out, and
    counted as a loss.

    Raises TraceError with the file that no importer knows, and whatever is wrong with one that an importer does know.
    """
    programs: list[Profile] = []
    kernels: list[tuple[Importer, Source]] = []
    left_out: list[TraceError] = []
    for source, named in _sources(paths):
        if isinstance(source, _Own):
            programs.append(open_profile(source.path))
            continue
        try:
            importer = _importer(source)
            if getattr(importer, "kernel_only", lambda source: False)(source):
                kernels.append((importer, source))
            else:
                programs.append(_read(importer, source))
        except TraceError as error:
            if named:
                raise
            left_out.append(error)
    if left_out and not programs and not kernels:
        raise left_out[0]
    if not programs and len(kernels) == 1:
        return _read(*kernels[0])
    if not programs:
        names = ", ".join(source.name for _, source in kernels)
        raise TraceError(f"{names} are recordings of the kernel; give one of them, or a profile that it belongs to")
    if relations:
        programs = on_related_clocks(programs, relations)
    refuse_unrelated(programs)
    found = programs[0] if len(programs) == 1 else merge_profiles(programs)
    for importer, source in kernels:
        with _whole(source):
            found = joined(found, importer.recording(source))  # type: ignore[attr-defined]
    for why in left_out:
        found = Profile(with_loss(found.tables, 0, LossKind.FILE_LEFT_OUT, f"{why}."), found.meta)
    return found


def _sources(paths: Sequence[str | Path]) -> Iterator[tuple[_Own | Source, bool]]:
    """Every file, and whether it was named: what else lies in a folder was not."""
    for path in paths:
        if _is_ours(path):
            yield _Own(Path(path)), True
            continue
        found = sources(path)
        for source in found:
            yield source, len(found) == 1


def _read(importer: Importer, source: Source) -> Profile:
    with _whole(source):
        return importer.read(source)


@contextmanager
def _whole(source: Source) -> Iterator[None]:
    """Reading what is compressed and was cut off or changed is one sentence."""
    try:
        yield
    except COMPRESSION_DAMAGE as error:
        raise _damaged(source) from error


def _damaged(source: Source) -> TraceError:
    return TraceError(
        f"{source.name} is cut off or damaged: what it holds cannot be unpacked to its end. Copy the whole file again."
    )


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
        return there and any(recognises(source) for source in sources(path))
    except DamagedArchive:
        return True
    except (TraceError, OSError):
        return False


def recognises(source: Source) -> bool:
    """Whether an importer would try to read it, or all that can be said is that it is damaged."""
    try:
        return _known(source) is not None
    except TraceError:
        return True


def of_another_format(source: Source) -> bool:
    """Whether a file is of a known format, and not of torch.profiler's, of which parts can be read."""
    return _known(source) not in (None, kineto)


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
    """The format of a file; raises TraceError where its beginning cannot be unpacked far enough to tell."""
    try:
        head, damaged = _head(source)
    except OSError:
        return None
    found = next((importer for importer in IMPORTERS if importer.recognises(head, source)), None)
    if found is None and damaged:
        raise _damaged(source)
    return found


def _head(source: Source) -> tuple[bytes, bool]:
    """The first bytes, decompressed, and whether damage has ended them."""
    head = b""
    try:
        with source.open() as stream:
            while len(head) < HEAD_BYTES and (piece := stream.read1(HEAD_BYTES - len(head))):  # type: ignore[attr-defined]
                head += piece
    except COMPRESSION_DAMAGE:
        return head, True
    return head, False
