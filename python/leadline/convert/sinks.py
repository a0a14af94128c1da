"""Where an export goes: a file, a folder of files, a stream, or memory.

A sink is a context manager. What was written appears under its name when the block ends without an exception, whole
and by a rename; until then, and after an exception, the place is as it was. A stream cannot take anything back.
"""

from __future__ import annotations

import contextlib
import io
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from leadline._output import HEAD_BYTES, OutputError, check_kind, kind_of, open_new, temporary_beside
from leadline.convert.request import ExportError


class Sink(ABC):
    """Takes either one stream of bytes (`write`, as often as one likes) or named members, as the format needs."""

    def __enter__(self) -> Sink:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close(whole=kind is None)

    @abstractmethod
    def write(self, data: bytes) -> None:
        """Append to the one file. Raises OSError, and ExportError where this place takes a folder only."""

    @abstractmethod
    def member(self, name: str) -> AbstractContextManager[BinaryIO]:
        """A new file of the folder, `/` between levels. Raises OSError, and ExportError where this takes one file."""

    @abstractmethod
    def _close(self, *, whole: bool) -> None:
        """The end; `whole` where nothing went wrong."""


class StreamSink(Sink):
    """An open binary stream, which stays open."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def write(self, data: bytes) -> None:
        self._stream.write(data)

    def member(self, name: str) -> AbstractContextManager[BinaryIO]:
        raise ExportError("This format is a folder of files; give it a name with -o FOLDER.")

    def _close(self, *, whole: bool) -> None:
        if whole:
            self._stream.flush()


class FileSink(Sink):
    """The file `path`, which must be new or of the kind that is written, unless `force`. What is no regular file, such
    as a pipe or /dev/stdout, is written to as it stands. Raises OutputError."""

    def __init__(self, path: Path, *, force: bool = False) -> None:
        self._path = path
        self._force = force
        self._in_place = path.exists() and not path.is_file()
        self._partial = path if self._in_place else temporary_beside(path)
        self._stream: BinaryIO | None = None
        self._head = b""

    def write(self, data: bytes) -> None:
        if self._stream is None:
            self._stream = self._partial.open("wb") if self._in_place else open_new(self._partial)
        if len(self._head) < HEAD_BYTES:
            self._head += data[: HEAD_BYTES - len(self._head)]
        self._stream.write(data)

    def member(self, name: str) -> AbstractContextManager[BinaryIO]:
        raise ExportError("This format is a folder of files, not one file.")

    def _close(self, *, whole: bool) -> None:
        try:
            if whole:
                self.write(b"")  # an empty export is a file too
            if self._stream is not None:
                self._stream.close()
            if whole and not self._in_place:
                check_kind(self._path, kind_of(self._head), force=self._force)
                self._partial.replace(self._path)
        except (OSError, OutputError):
            whole = False
            raise
        finally:
            if not whole and not self._in_place:
                with contextlib.suppress(OSError):
                    self._partial.unlink()


class FolderSink(Sink):
    """The folder `path`, which must be empty or not there: no file of anyone's is replaced."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._partial = temporary_beside(path)

    def write(self, data: bytes) -> None:
        raise ExportError("This format is one file, not a folder.")

    @contextlib.contextmanager
    def member(self, name: str) -> Iterator[BinaryIO]:
        parts = name.split("/")
        if any(part in ("", ".", "..") for part in parts):
            raise ValueError(f"{name!r} is not a name inside a folder")
        place = self._partial.joinpath(*parts)
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("wb") as stream:
            yield stream

    def __enter__(self) -> FolderSink:
        if self._path.exists() and (not self._path.is_dir() or any(self._path.iterdir())):
            raise ExportError(f"{self._path} exists already and is not an empty folder; choose another name with -o.")
        self._partial.mkdir()
        return self

    def _close(self, *, whole: bool) -> None:
        try:
            if whole:
                self._partial.replace(self._path)  # replaces an empty folder too
        finally:
            shutil.rmtree(self._partial, ignore_errors=True)


class MemorySink(Sink):
    """Keeps everything: `data`, or `members` by name."""

    def __init__(self) -> None:
        self._buffer = io.BytesIO()
        self.members: dict[str, bytes] = {}

    @property
    def data(self) -> bytes:
        return self._buffer.getvalue()

    def write(self, data: bytes) -> None:
        self._buffer.write(data)

    @contextlib.contextmanager
    def member(self, name: str) -> Iterator[BinaryIO]:
        stream = io.BytesIO()
        yield stream
        self.members[name] = stream.getvalue()

    def _close(self, *, whole: bool) -> None:
        pass
