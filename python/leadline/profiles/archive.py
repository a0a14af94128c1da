"""The outside of a profile: a ZIP archive whose members are looked at before a byte of them is unpacked.

Promises for a file from anyone: reading takes at most `Limits.total_bytes` of memory for contents and never more than a
fixed multiple of the file's own size; nothing is written to disk; every way in which the archive can be wrong becomes
one ProfileFileError. The central directory is bounded before `zipfile` parses it, declared sizes are bounded before
allocation, and members may neither overlap (the trick of small archives that unpack without end) nor be named like a
path.
"""

from __future__ import annotations

import os
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from leadline._dataclass import dataclass
from leadline.profiles.errors import ProfileFileError
from leadline.profiles.remote import is_address, open_address

_NAME = re.compile(r"(meta\.json|[a-z_]+\.[a-z_]+\.npy)")
_DEFLATE_MAX = 1032  # no deflate stream expands further (zlib's technical notes)
_LOCAL_HEADER_BYTES = 30
_ZIP_ERRORS = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, RuntimeError, ValueError)


@dataclass(frozen=True)
class Limits:
    """What a file may ask for; a file that asks for more is refused before anything is allocated."""

    total_bytes: int = 4 << 30
    """All members unpacked."""
    expansion: int = 300
    """All members unpacked, as a multiple of the file's size (real profiles: below 30) ..."""
    expansion_floor_bytes: int = 64 << 20
    """... which small files may exceed up to this size."""
    directory_bytes: int = 1 << 20
    """The archive's table of contents."""
    members: int = 256
    meta_bytes: int = 16 << 20


class _BoundedReads:
    """A file that refuses to hand out more than a bound at once: `zipfile` reads the central directory in one piece."""

    def __init__(self, raw: IO[bytes], bound: int) -> None:
        self._raw = raw
        self._bound = bound

    def read(self, size: int = -1) -> bytes:
        data = self._raw.read(min(size, self._bound + 1) if size >= 0 else self._bound + 1)
        if len(data) > self._bound:
            raise zipfile.BadZipFile(f"its table of contents is larger than {self._bound} bytes")
        return data

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._raw.seek(offset, whence)

    def tell(self) -> int:
        return self._raw.tell()

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        self._raw.close()


class Archive:
    """An opened archive whose members have passed the checks above."""

    def __init__(self, name: str, archive: zipfile.ZipFile, file_bytes: int, limits: Limits) -> None:
        self.name = name
        self.limits = limits
        self._archive = archive
        self._members = _checked_members(name, archive.infolist(), file_bytes, limits)

    def __contains__(self, member: str) -> bool:
        return member in self._members

    def names(self) -> list[str]:
        return list(self._members)

    @contextmanager
    def member(self, name: str) -> Iterator[tuple[IO[bytes], int]]:
        """The unpacking stream of a member and its declared size; errors of unpacking become ProfileFileError."""
        with reading(self.name, f"its part {name} is damaged"), self._archive.open(self._members[name]) as stream:
            yield stream, self._members[name].file_size

    def read(self, name: str, limit: int) -> bytes:
        """A whole small member."""
        with self.member(name) as (stream, size):
            if size > limit:
                raise ProfileFileError(f"{self.name} cannot be read: its part {name} is larger than {limit} bytes.")
            data = stream.read(size)
            stream.read(1)  # reaching the end is what makes zipfile compare the checksum
            return data


@contextmanager
def open_archive(path: str | os.PathLike[str], limits: Limits) -> Iterator[Archive]:
    """The archive at `path`; raises ProfileFileError where it is missing, no ZIP, or asks for more than `limits`
    allow."""
    name = os.fspath(path)
    raw: IO[bytes]
    try:
        if is_address(name):
            raw, file_bytes = open_address(name)
        else:
            raw = Path(path).open("rb")  # noqa: SIM115 - closed below; errors of opening and of reading differ
            file_bytes = os.fstat(raw.fileno()).st_size
    except IsADirectoryError:
        advice = f"if it holds the segments of a run, 'leadline recover {name}' makes the file"
        raise ProfileFileError(f"{name} is a directory, not a profile; {advice}.") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise ProfileFileError(f"{name} cannot be opened: {why}; check the name and its permissions.") from None
    with raw:
        bounded = cast(IO[bytes], _BoundedReads(raw, max(limits.directory_bytes, 1 << 17)))
        try:
            archive = zipfile.ZipFile(bounded)
        except (*_ZIP_ERRORS, OSError, UnicodeError) as error:
            what = "is empty" if not file_bytes else f"is not a Leadline profile or is cut off ({_reason(error)})"
            raise ProfileFileError(f"{name} {what}; copy it again, or make one with `leadline run`.") from None
        with archive:
            yield Archive(name, archive, file_bytes, limits)


@contextmanager
def reading(name: str, what: str) -> Iterator[None]:
    """Turns what unpacking raises into one sentence about `name`."""
    try:
        yield
    except (*_ZIP_ERRORS, OSError) as error:
        raise ProfileFileError(
            f"{name} cannot be read: {what} ({_reason(error)}); the file was cut off or changed."
        ) from None


def printable(text: str, limit: int = 80) -> str:
    """Text from a file as it may appear in a message: one line, bounded, nothing a terminal would act on."""
    clean = "".join(char if char.isprintable() else "?" for char in text[:limit])
    return clean + ("..." if len(text) > limit else "")


def _reason(error: BaseException) -> str:
    return printable(str(error).rstrip(".").lower(), 120) or type(error).__name__


def _checked_members(
    name: str, infos: list[zipfile.ZipInfo], file_bytes: int, limits: Limits
) -> dict[str, zipfile.ZipInfo]:
    def refuse(why: str) -> ProfileFileError:
        return ProfileFileError(f"{name} cannot be read: {why}.")

    if len(infos) > limits.members:
        raise refuse(f"it has {len(infos)} parts where a profile has fewer than {limits.members}")
    members: dict[str, zipfile.ZipInfo] = {}
    for info in infos:
        if not _NAME.fullmatch(info.orig_filename):
            raise refuse(f"it has a part named {printable(info.orig_filename)!r}, which no Leadline profile has")
        if info.filename in members:
            raise refuse(f"it has two parts named {info.filename}")
        _check_sizes(info, refuse)
        members[info.filename] = info
    total = sum(info.file_size for info in infos)
    allowed = min(limits.total_bytes, max(limits.expansion_floor_bytes, limits.expansion * file_bytes))
    if total > allowed:
        raise refuse(f"it would unpack to {total} bytes and at most {allowed} are accepted for a file of its size")
    end = 0
    for info in sorted(infos, key=lambda one: one.header_offset):
        if info.header_offset < end:
            raise refuse(f"its part {info.filename} overlaps another one")
        end = info.header_offset + _LOCAL_HEADER_BYTES + info.compress_size
    if end > file_bytes:
        raise refuse("it is cut off")
    return members


def _check_sizes(info: zipfile.ZipInfo, refuse: Any) -> None:
    if info.flag_bits & 0x1:
        raise refuse(f"its part {info.filename} is encrypted")
    if info.compress_type == zipfile.ZIP_STORED:
        plausible = info.file_size == info.compress_size
    elif info.compress_type == zipfile.ZIP_DEFLATED:
        plausible = info.file_size <= _DEFLATE_MAX * info.compress_size + 1024
    else:
        raise refuse(f"its part {info.filename} is packed by a method that profiles do not use")
    if not plausible:
        raise refuse(f"its part {info.filename} claims a size that it cannot have")
