"""Files of trace-cmd (`trace.dat`): where formats, names and pages lie, by trace-cmd.dat.v6(5) and trace-cmd.dat.v7(5).

A file of version 6 is one header after the other; one of version 7 is a chain of options that point to sections, and
may be compressed. What the pages say is the business of `tracefs.py`: they are those of the kernel's own tracer.
"""

from __future__ import annotations

import contextlib
import importlib
import mmap
import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

from leadline._dataclass import dataclass, field
from leadline.trace.tables import TraceError

MAGIC = b"\x17\x08\x44tracing"
_STATISTICS, _BUFFER, _CLOCK, _MACHINE = 2, 3, 4, 5
_EVENT_FORMATS, _COMMANDS = 18, 21
_TAG_BYTES = 10
_COMPRESSED = 1
_MOST_CPUS = 1 << 14
_CLOCK_IN_USE = re.compile(r"\[(\w[\w-]*)\]")
_LOST = re.compile(r"^(?:overrun|commit overrun|dropped events): (\d+)$", re.MULTILINE)
_COMMIT = re.compile(r"commit;\s*offset:8;\s*size:(\d+);")

Unpacker = Callable[[bytes, int], bytes]
"""Gives a packed part, which has so many bytes when it is unpacked."""


@dataclass
class TraceDat:
    """What a file holds. `buffers`: pages by CPU of each of its buffers. `clock`: the tracer's name for its clock."""

    page_bytes: int = 4096
    formats: dict[str, str] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    buffers: list[dict[int, bytes]] = field(default_factory=list)
    clock: str = "local"
    host: str = ""
    machine: str = "x86_64"
    lost: int = 0
    cut_off: int = 0
    """Bytes of pages that the file says it has and has not."""


def read_dat(path: Path) -> TraceDat:
    """The contents of a file. Raises TraceError, and OSError."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return _File(path.name, data).read()


class _File:
    """A file on its way; `at` is where the header is read."""

    def __init__(self, name: str, data: mmap.mmap) -> None:
        self._name = name
        self._data: mmap.mmap | bytes = data
        self._whole = data
        self._at = len(MAGIC)
        self._cpus = 0
        self._unpack: Unpacker | None = None
        self._found = TraceDat()

    def read(self) -> TraceDat:
        version = self._text()
        if self._number(1):
            raise TraceError(f"{self._name} is of a big-endian machine, which is not read")
        self._number(1)  # bytes of a long in user space
        self._found.page_bytes = self._number(4)
        if not 1 << 9 <= self._found.page_bytes <= 1 << 22:
            raise TraceError(f"{self._name} is damaged: it says that a page has {self._found.page_bytes} bytes")
        if version == "6":
            self._version_6()
        elif version == "7":
            self._version_7()
        else:
            raise TraceError(f"{self._name} is of version {version} of trace.dat; 6 and 7 are read")
        if not self._found.buffers:
            raise TraceError(f"{self._name} holds no pages of the kernel's tracer")
        return self._found

    # ------------------------------------------------------------------ version 6: one after the other

    def _version_6(self) -> None:
        self._page_header()
        self._take(len(b"header_event\0"))
        self._take(self._number(8))
        for _ in range(self._number(4)):  # the tracer's own events
            self._take(self._number(8))
        self._event_formats()
        self._take(self._number(4))  # symbols
        self._take(self._number(4))  # texts of printk
        self._commands()
        self._cpus = self._count(self._number(4))
        while (tag := self._take(_TAG_BYTES)) != b"flyrecord\0":
            if tag != b"options  \0":
                raise TraceError(f"{self._name} holds no pages of events but {tag.rstrip(b' ' + bytes(1))!r}")
            for kind, place, size in self._options():
                self._option(kind, place, size)
                if kind == _BUFFER:
                    self._jump(place)
                    self._jump(self._number(8))
                    if self._take(_TAG_BYTES) == b"flyrecord\0":
                        self._pages(self._places())
                self._jump(place + size)
        self._pages(self._places())

    def _page_header(self) -> None:
        self._take(len(b"header_page\0"))
        told = _COMMIT.search(bytes(self._take(self._number(8))).decode("ascii", "replace"))
        if told is None or told[1] != "8":
            raise TraceError(f"{self._name} is of a 32-bit kernel, which is not read")

    def _places(self) -> list[tuple[int, int, int]]:
        """(CPU, offset, size) of the pages of a buffer of version 6."""
        return [(cpu, self._number(8), self._number(8)) for cpu in range(self._cpus)]

    # ------------------------------------------------------------------ version 7: options that point to sections

    def _version_7(self) -> None:
        method, _ = self._text(), self._text()
        self._unpack = _unpacker(self._name, method)
        following = self._number(8)
        seen = set()
        while following and following not in seen:
            seen.add(following)
            following = self._section_of_options(following)

    def _section_of_options(self, offset: int) -> int:
        """Reads a section of options and what they point to; where the next one is."""
        body = self._section(offset)
        within = self._inside(body)
        following = 0
        for kind, place, size in within._options():
            if kind in (_EVENT_FORMATS, _COMMANDS) and size >= 8:
                within._jump(place)
                part = self._inside(self._section(within._number(8)))
                part._event_formats() if kind == _EVENT_FORMATS else part._commands()
            elif kind == _BUFFER:
                within._jump(place)
                self._buffer_of_section(within, place + size)
            else:
                within._option(kind, place, size)
            within._jump(place + size)
        if len(body) - within._at >= 8:  # the option that ends them has told where others are
            following = within._number(8)
        return following

    def _buffer_of_section(self, within: _File, end: int) -> None:
        within._number(8)  # the section, whose description says nothing more
        within._text()
        if (clock := within._text()) and not self._found.buffers:
            self._found.clock = clock
        self._found.page_bytes = within._number(4)
        places = [
            (within._number(4), within._number(8), within._number(8)) for _ in range(self._count(within._number(4)))
        ]
        if within._at > end:
            raise self._ended()
        self._pages(places)

    def _section(self, offset: int) -> bytes:
        """The bytes of a section, unpacked."""
        self._data = self._whole
        self._jump(offset)
        self._number(2)
        packed = self._number(2) & _COMPRESSED
        self._number(4)
        body = bytes(self._take(self._number(8)))
        return b"".join(self._unpacked(self._inside(body))) if packed else body

    def _unpacked(self, within: _File, count: int = -1) -> Iterator[bytes]:
        """The pieces of something packed: (packed size, size, bytes) each."""
        while count != 0 and (count > 0 or within._at < len(within._data)):
            size, whole = within._number(4), within._number(4)
            if self._unpack is None:
                raise TraceError(f"{self._name} is damaged: a part is packed, and the file does not say how")
            piece = self._unpack(within._take(size), whole)
            if len(piece) != whole:
                raise TraceError(f"{self._name} is damaged: a packed part does not have its size")
            yield piece
            count -= 1

    # ------------------------------------------------------------------ what both have

    def _options(self) -> Iterator[tuple[int, int, int]]:
        """(kind, place, size) of each."""
        while kind := self._number(2):
            size = self._number(4)
            place = self._at
            self._take(size)
            yield kind, place, size
            self._jump(place + size)
        if self._data is not self._whole:
            self._number(4)  # the last one has a size, too

    def _option(self, kind: int, place: int, size: int) -> None:
        text = bytes(self._data[place : place + size]).split(b"\0", 1)[0].decode("utf-8", "replace")
        if kind == _CLOCK:
            told = _CLOCK_IN_USE.search(text)
            self._found.clock = told[1] if told else text.strip()
        elif kind == _MACHINE:
            words = text.split()
            self._found.host, self._found.machine = (words[1] if len(words) > 1 else "", words[-1] if words else "")
        elif kind == _STATISTICS:
            self._found.lost += sum(int(number) for number in _LOST.findall(text))

    def _event_formats(self) -> None:
        for _ in range(self._number(4)):
            system = self._text()
            for _ in range(self._number(4)):
                text = bytes(self._take(self._number(8))).decode("utf-8", "replace")
                name = text[5:].split("\n", 1)[0].strip() if text.startswith("name:") else ""
                if name:
                    self._found.formats[f"{system}/{name}"] = text

    def _commands(self) -> None:
        for line in bytes(self._take(self._number(8))).decode("utf-8", "replace").splitlines():
            tid, _, name = line.partition(" ")
            if tid.isdecimal():
                self._found.names[int(tid)] = name

    def _pages(self, places: list[tuple[int, int, int]]) -> None:
        """Adds a buffer. Of a file that ends early the pages that are there count."""
        pages = {}
        for cpu, offset, size in places:
            if self._unpack is not None and size:  # the size is that of the pieces without what stands before each
                within = self._inside(self._whole)
                within._jump(offset)
                there = b"".join(self._unpacked(within, within._number(4)))
            else:
                there = bytes(self._whole[offset : offset + size])
                self._found.cut_off += size - len(there)
            pages[cpu] = there[: len(there) // self._found.page_bytes * self._found.page_bytes]
        if any(pages.values()) or not self._found.buffers:
            self._found.buffers.append(pages)

    def _count(self, cpus: int) -> int:
        if cpus > _MOST_CPUS:
            raise TraceError(f"{self._name} is damaged: it says that there are {cpus} CPUs")
        return cpus

    # ------------------------------------------------------------------ bytes

    def _inside(self, data: mmap.mmap | bytes) -> _File:
        """A reader of a part, which adds to the same result."""
        one = _File(self._name, self._whole)
        one._data, one._at, one._found, one._unpack = data, 0, self._found, self._unpack
        return one

    def _jump(self, to: int) -> None:
        self._at = to

    def _take(self, size: int) -> bytes:
        end = self._at + size
        if size < 0 or end > len(self._data):
            raise self._ended()
        found = bytes(self._data[self._at : end])
        self._at = end
        return found

    def _number(self, size: int) -> int:
        return int.from_bytes(self._take(size), "little")

    def _text(self) -> str:
        end = self._data.find(b"\0", self._at)
        if end < 0:
            raise self._ended()
        return self._take(end + 1 - self._at)[:-1].decode("utf-8", "replace")

    def _ended(self) -> TraceError:
        return TraceError(
            f"{self._name} ends within its headers, after {len(self._whole)} bytes; it was not written whole"
        )


def _unpacker(name: str, method: str) -> Unpacker | None:
    """What unpacks a file's parts; None where they are not packed."""
    if method in ("none", ""):
        return None
    if method == "zlib":
        return _zlib
    if method == "zstd":
        for module, unpacker in (("zstandard", _zstandard), ("compression.zstd", _of_python)):
            with contextlib.suppress(ImportError):
                return unpacker(importlib.import_module(module))
    install = "`pip install zstandard`, or " if method == "zstd" else ""
    raise TraceError(
        f"{name} is packed with {method}, which this Python cannot read; {install}write it again with "
        "trace-cmd convert --compression none"
    )


def _zlib(data: bytes, size: int) -> bytes:
    try:
        return zlib.decompressobj().decompress(data, size)
    except zlib.error as error:
        raise _damaged(error) from error


def _zstandard(module: ModuleType) -> Unpacker:
    def unpack(data: bytes, size: int) -> bytes:
        try:
            found: bytes = module.ZstdDecompressor().decompress(data, max_output_size=size)
        except module.ZstdError as error:
            raise _damaged(error) from error
        return found

    return unpack


def _of_python(module: ModuleType) -> Unpacker:
    """Python's own, since 3.14."""

    def unpack(data: bytes, size: int) -> bytes:
        try:
            found: bytes = module.ZstdDecompressor().decompress(data, size)
        except module.ZstdError as error:
            raise _damaged(error) from error
        return found

    return unpack


def _damaged(error: Exception) -> TraceError:
    return TraceError(f"a packed part of the file is damaged ({error})")
