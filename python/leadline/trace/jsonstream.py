"""Splits a Chrome-trace JSON of any size into batches of decoded events, in memory bounded by the batch.

The array of events is cut at places that look like a border between two objects; a batch counts only when it decodes,
and a decodable piece between two borders of the same array cannot have been cut wrongly. What does not decode is read
object by object. A file that ends early yields everything before the break and says so.
"""

from __future__ import annotations

import gzip
import json
import re
import tarfile
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from leadline.trace.tables import TraceError

BATCH_BYTES = 1 << 20
EVENT_LIMIT_BYTES = 8 << 20  # one event; what does not end within it is damage
COMPRESSION_DAMAGE = (EOFError, zlib.error, gzip.BadGzipFile, tarfile.TarError)
"""What reading a gzip or a tar that was cut or changed raises; what came before it is used."""
_HEAD_LIMIT_BYTES = 64 << 20
_ARRAY = re.compile(rb'"traceEvents"\s*:\s*\[')
_BORDER = re.compile(rb"\}\s*,\s*\{")
_SPACE = re.compile(r"[\s,]*")


def fast_decoder() -> Callable[[bytes], Any]:
    """orjson where it is installed (extra `whatif`), else the standard library."""
    try:
        import orjson
    except ImportError:
        return json.loads
    return orjson.loads


class EventStream:
    """Batches of events of one stream; `header` and `complete` are final once the iteration has ended.

    `name`: of the file, for errors. `wanted`: batches whose bytes do not match it are skipped without decoding them.
    """

    def __init__(self, stream: BinaryIO, name: str, wanted: re.Pattern[bytes] | None = None) -> None:
        self._name = name
        self._stream = stream
        self._wanted = wanted
        self._decode = fast_decoder()
        self.header: dict[str, Any] = {}
        self.complete = True
        self.bytes_read = 0

    def _read(self, size: int) -> bytes:
        try:
            data = self._stream.read(size)
        except COMPRESSION_DAMAGE:
            self.complete = False
            return b""
        self.bytes_read += len(data)
        return data

    def __iter__(self) -> Iterator[list[Any]]:
        buffer = self._head()
        while True:
            data = self._read(BATCH_BYTES)
            buffer += data
            events, buffer, ended = self._batch(buffer, final=not data)
            if events:
                yield events
            if ended:
                self._trailer(buffer)
                return
            if not data:
                self.complete = False
                return

    def _head(self) -> bytes:
        """Read up to the array of events; keeps what stands before it as header."""
        buffer = b""
        while True:
            data = self._read(min(BATCH_BYTES, 1 << 18))
            buffer += data
            stripped = buffer.lstrip(b"\xef\xbb\xbf \r\n\t")
            if stripped[:1] == b"[":
                return stripped[1:].lstrip()
            found = _ARRAY.search(buffer)
            if found:
                head = buffer[: found.end()] + b"]}"
                try:
                    self.header.update(json.loads(head))
                except (ValueError, RecursionError):
                    self.complete = False
                return buffer[found.end() :].lstrip()
            if not data or len(buffer) > _HEAD_LIMIT_BYTES:
                raise TraceError(
                    f"there is no traceEvents array in {self._name}; a Kineto or Chrome trace in JSON is needed"
                )

    @staticmethod
    def _cut(buffer: bytes) -> int | None:
        """End of the last object that is followed by another one, looking back from the end."""
        window = 1 << 16
        while True:
            start = max(0, len(buffer) - window)
            borders = [found.start() for found in _BORDER.finditer(buffer, start)]
            if borders:
                return borders[-1] + 1
            if start == 0:
                return None
            window *= 8

    def _batch(self, buffer: bytes, *, final: bool) -> tuple[list[Any], bytes, bool]:
        """Events of the buffer, what is left of it, and whether the array has ended."""
        cut = None if final else self._cut(buffer)
        if cut is not None:
            piece, rest = buffer[:cut], buffer[cut:].lstrip(b", \r\n\t")
            if self._wanted is not None and not self._wanted.search(piece):
                return [], rest, False
            try:
                return self._decode(b"[" + piece + b"]"), rest, False
            except (ValueError, RecursionError):
                pass  # the cut fell into a nested list or text, the array ends inside, or there is damage
        elif not final:
            return [], buffer, False
        return self._one_by_one(buffer, final=final)

    def _one_by_one(self, buffer: bytes, *, final: bool) -> tuple[list[Any], bytes, bool]:
        text = buffer.decode("utf-8", errors="surrogateescape")
        decoder = json.JSONDecoder(strict=False)
        found: list[Any] = []
        at = 0
        while True:
            space = _SPACE.match(text, at)
            at = space.end() if space else at
            if at >= len(text):
                return found, b"", False
            if text[at : at + 1] == "]":
                return found, text[at + 1 :].encode("utf-8", errors="surrogateescape"), True
            try:
                event, at = decoder.raw_decode(text, at)
            except RecursionError:
                at = self._next_event(text, at + 1)
                continue
            except json.JSONDecodeError as error:
                cut = error.pos >= len(text) - 8 or error.msg.startswith("Unterminated string")
                if cut and not final and len(text) - at < EVENT_LIMIT_BYTES:
                    break  # an event of which the rest has not been read yet
                at = self._next_event(text, at + 1)
                continue
            found.append(event)
        return found, text[at:].encode("utf-8", errors="surrogateescape"), False

    def _next_event(self, text: str, at: int) -> int:
        """Where the next event may begin behind damage; the end of the text when none does."""
        self.complete = False
        border = text.find('{"ph"', at)
        return border if border >= 0 else len(text)

    def _trailer(self, buffer: bytes) -> None:
        rest = buffer
        while len(rest) < _HEAD_LIMIT_BYTES:
            data = self._read(BATCH_BYTES)
            if not data:
                break
            rest += data
        text = rest.decode("utf-8", errors="replace").strip().lstrip(",").strip()
        if text in ("", "}"):
            return
        try:
            self.header.update(json.loads("{" + text))
        except (ValueError, RecursionError):
            self.complete = False
