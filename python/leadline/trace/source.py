"""Opens what a user has: a JSON file, a gzip of it, or a tar of one file per rank; nothing is unpacked to disk."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO

from leadline._dataclass import dataclass
from leadline.trace.tables import TraceError

_TRACE_SUFFIXES = (".json", ".json.gz")
_XSPACE_SUFFIXES = (".xplane.pb", ".xplane.pb.gz")
_XSPACE_FOLDER = ("plugins", "profile")
"""Where JAX and TensorFlow put their profiles below a folder of logs: a folder for each time, a file for each host."""
CTF_METADATA = (b"/* CTF 1", b"\x57\x1d\xd1\x75", b"\x75\xd1\x1d\x57", b"\x1e")
"""How metadata of CTF may begin: as text, in packets of either byte order, and as JSON after a record separator."""
_DEEPEST, _MOST_FOLDERS = 6, 1_000
"""How far CTF traces are looked for: a session of LTTng has ust/uid/1000/64-bit."""
_PIECE_BYTES = 16 << 20
_ARCHIVE_SUFFIXES = (".tar", ".tar.gz", ".tgz")


class DamagedArchive(TraceError):
    """An archive of which not even the names of its files can be read."""


@dataclass(frozen=True)
class Source:
    """One rank's trace. `open()` gives a fresh stream of decoded bytes each time it is called.

    `size_bytes` is that of the stored form; a gzip is about 15 times larger inside. `path`: the file itself, where it
    is there and not compressed. `folder`: where the file lies, None in an archive.
    """

    name: str
    size_bytes: int
    compressed: bool
    open: Callable[[], BinaryIO]
    path: Path | None = None
    folder: Path | None = None


def whole_of(source: Source, most_bytes: int, what: str) -> bytes:
    """What a file holds, decompressed. Raises TraceError with `what` to do where that is more than `most_bytes`."""
    with source.open() as stream:
        if source.compressed:  # what a read asks for is reserved at once, so that is done by pieces
            pieces, size = [], 0
            while size <= most_bytes and (piece := stream.read(_PIECE_BYTES)):
                pieces.append(piece)
                size += len(piece)
            data = b"".join(pieces)
        else:
            data = stream.read(min(source.size_bytes, most_bytes) + 1)
    if len(data) > most_bytes:
        raise TraceError(f"{source.name} has more than {most_bytes + 1 >> 30} GiB, {what}")
    return data


def sources(path: str | Path | Sequence[str | Path]) -> list[Source]:
    """The traces behind a path: a file, a tar(.gz) of ranks, a directory of ranks, or several paths.

    Raises TraceError when there is none.
    """
    if not isinstance(path, str | Path):
        return [source for item in path for source in sources(item)]
    place = Path(path)
    if place.is_dir():
        profiles = xspaces(place)
        if profiles:
            return [_file(item) for item in profiles]
        if traces := ctf_traces(place):
            return [_folder(item, place) for item in traces]
        found = sorted(item for item in place.iterdir() if item.name.endswith(_TRACE_SUFFIXES))
        if not found:
            archives = sorted(item.name for item in place.iterdir() if item.name.endswith(_ARCHIVE_SUFFIXES))
            if archives:
                raise TraceError(f"{place.name} holds archives; give one of them: {', '.join(archives)}")
            raise TraceError(
                f"{place.name} holds no .json or .json.gz file; give the folder that holds the ranks' traces"
            )
        return [_file(item) for item in found]
    if not place.exists():
        raise TraceError(f"{place} does not exist; give a Kineto trace (.json, .json.gz, .tar.gz of ranks)")
    try:
        is_archive = tarfile.is_tarfile(place)
    except (EOFError, zlib.error):
        is_archive = False  # a gzip that is damaged within its first block; its reader says so
    if not is_archive:
        return [_file(place)]
    try:
        return _archive(place)
    except (EOFError, zlib.error, gzip.BadGzipFile, tarfile.TarError) as error:
        raise DamagedArchive(
            f"{place.name} is an archive that is cut off or damaged; copy the whole file again, or give what it was "
            "made from"
        ) from error


def xspaces(folder: Path) -> list[Path]:
    """The profiles of XLA or TensorFlow in a folder, one for each host: its own, or the latest of a folder of logs."""
    inner = folder.joinpath(*_XSPACE_FOLDER)
    times = sorted(item for item in inner.iterdir() if item.is_dir()) if inner.is_dir() else []
    for place in (folder, *reversed(times)):
        found = sorted(item for item in place.iterdir() if item.name.endswith(_XSPACE_SUFFIXES))
        if found:
            return found
    return []


def ctf_traces(folder: Path) -> list[Path]:
    """The CTF traces in a folder and below it, in order: each is a folder with a file `metadata`."""
    found = []
    for number, (place, inner, files) in enumerate(os.walk(folder)):
        if number >= _MOST_FOLDERS:
            break
        if len(Path(place).relative_to(folder).parts) >= _DEEPEST:
            inner.clear()
        if "metadata" in files and _is_ctf(Path(place, "metadata")):
            found.append(Path(place))
    return sorted(found)


def _is_ctf(metadata: Path) -> bool:
    with metadata.open("rb") as file:
        return file.read(64).lstrip().startswith(CTF_METADATA)


def _folder(place: Path, above: Path) -> Source:
    """A CTF trace; what is opened is its metadata."""
    name = above.name if place == above else f"{above.name}/{place.relative_to(above)}"
    size = sum(item.stat().st_size for item in place.iterdir() if item.is_file())
    return Source(name, size, False, lambda: (place / "metadata").open("rb"), place)


def _file(place: Path) -> Source:
    with place.open("rb") as stream:
        compressed = stream.read(2) == b"\x1f\x8b"

    def reopen() -> BinaryIO:
        return gzip.open(place, "rb") if compressed else place.open("rb")  # type: ignore[return-value]

    return Source(place.name, place.stat().st_size, compressed, reopen, None if compressed else place, place.parent)


def _archive(place: Path) -> list[Source]:
    with tarfile.open(place) as archive:
        members = [item for item in archive.getmembers() if item.isfile() and item.name.endswith(_TRACE_SUFFIXES)]
    if not members:
        raise TraceError(f"{place.name} holds no .json or .json.gz file; an archive of Kineto traces is needed")

    def opener(name: str) -> Callable[[], BinaryIO]:
        def reopen() -> BinaryIO:
            archive = tarfile.open(place)  # noqa: SIM115  (closed with the stream below)
            stream = archive.extractfile(name)
            if stream is None:
                raise TraceError(f"{name} in {place.name} is not a file")
            inner = _Member(stream, archive)
            return gzip.open(inner, "rb") if name.endswith(".gz") else inner  # type: ignore[return-value]

        return reopen

    return [
        Source(Path(item.name).name, item.size, item.name.endswith(".gz"), opener(item.name))
        for item in sorted(members, key=lambda item: item.name)
    ]


class _Member(io.BufferedReader):
    """A member of an archive that closes the archive with itself."""

    def __init__(self, stream: object, archive: tarfile.TarFile) -> None:
        super().__init__(stream)  # type: ignore[arg-type]
        self._archive = archive

    def close(self) -> None:
        super().close()
        self._archive.close()
