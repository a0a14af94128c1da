"""Leads a Chrome-trace JSON of any size through the compiled reader, in memory bounded by one piece.

What stands before and behind the array of events is the header. A file that ends early, or holds what is no JSON, gives
everything else and says so.
"""

from __future__ import annotations

import contextlib
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
_KNOWN_MEMBERS = ("distributedInfo", "deviceProperties", "computeProperties", "baseTimeNanoseconds", "traceName")
"""Of the header, which are looked for where it is no JSON as a whole."""
_ARRAY = re.compile(rb'"traceEvents"\s*:\s*\[')
_LONGEST_KEY = 64  # the key and its bracket, however they are spaced


class Reader(Protocol):
    """Takes the inside of the array of events (`leadline._events.EventReader`)."""

    damaged: bool

    def feed(self, data: bytes, last: bool) -> bool: ...

    def rest(self) -> bytes: ...


class TraceText:
    """The text of one trace: its header, whether it was complete, and its size in bytes, once `through` has returned.

    `name`: of the file, for errors. `damage`: what is wrong with the file, a sentence each.
    """

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self._name = name
        self._stream = stream
        self.header: dict[str, Any] = {}
        self.complete = True
        self.damage: list[str] = []
        self.bytes_read = 0
        self._ended = False

    def through(self, reader: Reader) -> None:
        """Read all of it.

        Raises TraceError when there is no array of events.
        """
        data = self._head()
        while not reader.feed(data, False):
            data = self._read()
            if not data:
                if not reader.feed(b"", True):
                    self._damaged("the file ends inside the list of events; the rest is missing")
                break
        self._trailer(reader.rest())
        self.complete &= not reader.damaged

    def _damaged(self, sentence: str) -> None:
        self.complete = False
        self.damage.append(sentence)

    def _read(self) -> bytes:
        """The next piece; of a compressed file all that can be unpacked before it is cut off or changed, which a read
        of the whole piece would lose."""
        parts: list[bytes] = []
        size = 0
        while size < PIECE_BYTES and not self._ended:
            try:
                data = self._stream.read1(PIECE_BYTES - size)  # type: ignore[attr-defined]
            except COMPRESSION_DAMAGE as error:
                self._ended = True
                self._damaged(f"the compressed data is cut off or damaged ({error}); what could be unpacked is used")
                break
            self._ended = not data
            parts.append(data)
            size += len(data)
        self.bytes_read += size
        return b"".join(parts)

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
                    f"there is no traceEvents array in {self._name}; give a trace of torch.profiler or Chrome"
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
        plain = text.decode("utf-8-sig", errors="replace")
        try:
            self.header.update(json.loads(plain, strict=False))
        except (ValueError, RecursionError):
            self._damaged("a part of the header is no JSON; of the rest rank, devices and date are used")
            self.header.update(_members(plain))


def _members(text: str) -> dict[str, Any]:
    """The members of a header that count, each for itself, where it is no JSON as a whole."""
    decoder = json.JSONDecoder(strict=False)
    found = {}
    for key in _KNOWN_MEMBERS:
        at = re.search(rf'"{key}"\s*:\s*', text)
        if at:
            with contextlib.suppress(ValueError, RecursionError):
                found[key] = decoder.raw_decode(text, at.end())[0]
    return found
