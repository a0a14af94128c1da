"""Leads a Chrome-trace JSON of any size through the compiled reader, in memory bounded by one piece.

What stands before and behind the array of events is the header. A file that ends early, or holds what is no JSON, gives
everything else and says so.
"""

from __future__ import annotations

import gzip
import json
import re
import tarfile
import zlib
from typing import Any, BinaryIO, Protocol

from leadline.trace.tables import TraceError

PIECE_BYTES = 1 << 20
COMPRESSION_DAMAGE = (EOFError, zlib.error, gzip.BadGzipFile, tarfile.TarError)
"""What reading a gzip or a tar that was cut or changed raises; what came before it is used."""
_HEAD_LIMIT_BYTES = 64 << 20
_ARRAY = re.compile(rb'"traceEvents"\s*:\s*\[')
_LONGEST_KEY = 64  # the key and its bracket, however they are spaced


class Reader(Protocol):
    """Takes the inside of the array of events (`leadline._events.EventReader`)."""

    damaged: bool

    def feed(self, data: bytes, last: bool) -> bool: ...

    def rest(self) -> bytes: ...


class TraceText:
    """The text of one trace: its header, whether it was complete, and its size in bytes, once `through` has returned.

    `name`: of the file, for errors.
    """

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self._name = name
        self._stream = stream
        self.header: dict[str, Any] = {}
        self.complete = True
        self.bytes_read = 0

    def through(self, reader: Reader) -> None:
        """Read all of it.

        Raises TraceError when there is no array of events.
        """
        data = self._head()
        while not reader.feed(data, False):
            data = self._read()
            if not data:
                if not reader.feed(b"", True):
                    self.complete = False
                break
        self._trailer(reader.rest())
        self.complete &= not reader.damaged

    def _read(self) -> bytes:
        try:
            data = self._stream.read(PIECE_BYTES)
        except COMPRESSION_DAMAGE:
            self.complete = False
            return b""
        self.bytes_read += len(data)
        return data

    def _head(self) -> bytes:
        """Read up to the array of events; keeps what stands before it as header and returns what follows."""
        buffer = bytearray()
        while True:
            searched = max(len(buffer) - _LONGEST_KEY, 0)
            data = self._read()
            buffer += data
            if searched == 0 and (start := bytes(buffer).lstrip(b"\xef\xbb\xbf \r\n\t"))[:1] == b"[":
                return start[1:]
            found = _ARRAY.search(buffer, searched)
            if found:
                self._told(bytes(buffer[: found.end()]) + b"]}")
                return bytes(buffer[found.end() :])
            if not data or len(buffer) > _HEAD_LIMIT_BYTES:
                raise TraceError(
                    f"there is no traceEvents array in {self._name}; a Kineto or Chrome trace in JSON is needed"
                )

    def _trailer(self, rest: bytes) -> None:
        parts, size = [rest], len(rest)
        while size < _HEAD_LIMIT_BYTES and (data := self._read()):
            parts.append(data)
            size += len(data)
        text = b"".join(parts).strip(b" \r\n\t,")
        if text not in (b"", b"}"):
            self._told(b"{" + text)

    def _told(self, text: bytes) -> None:
        try:
            self.header.update(json.loads(text.decode("utf-8-sig", errors="replace")))
        except (ValueError, RecursionError):
            self.complete = False
