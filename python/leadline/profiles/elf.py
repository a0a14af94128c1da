"""Functions of an ELF file by address: its symbol table, read as whole columns (System V ABI, chapter 4; 64 bit).

A file that is stripped, torn or no ELF file gives what it has, which may be nothing; every size is checked before it is
used. Names stay mangled.
"""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass

Addresses = NDArray[np.uint64]

_SYMBOL = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")]
)
_SYMTAB, _NOTE, _DYNSYM = 2, 7, 11
_FUNCTION, _CHOSEN_AT_LOAD = 2, 10  # STT_FUNC, STT_GNU_IFUNC
_BUILD_ID = 3
_LONGEST_NAME = 1 << 16


class ElfError(ValueError):
    """The file cannot be read as what it should be; one sentence."""


@dataclass(frozen=True)
class _Section:
    name: int
    kind: int
    address: int
    offset: int
    size: int
    link: int


class ElfFile:
    """One file, open until `close`. Raises ElfError where it cannot be read or is no 64-bit little-endian ELF
    file."""

    def __init__(self, path: Path) -> None:
        try:
            with path.open("rb") as file:
                self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise ElfError(f"{path} cannot be read: {error}.") from error
        if self._data[:6] != b"\x7fELF\x02\x01" or len(self._data) < 64:
            self._data.close()
            raise ElfError(f"{path} is not a 64-bit ELF file.")
        self.path = path
        self._sections = self._read_sections()
        self._starts: Addresses | None = None

    def close(self) -> None:
        """Give the file back."""
        self._data.close()

    @property
    def build_id(self) -> str:
        """As hexadecimal digits; empty where it has none."""
        for section in self._sections:
            if section.kind == _NOTE and (found := self._build_id_in(section)):
                return found
        return ""

    @property
    def debug_link(self) -> str:
        """Name of the file that its debug information was moved to; empty where none is named."""
        section = self._section(b".gnu_debuglink")
        if section is None:
            return ""
        end = self._data.find(b"\0", section.offset, section.offset + section.size)
        return self._data[section.offset : max(end, section.offset)].decode("utf-8", "replace")

    @property
    def has_debug_information(self) -> bool:
        """Whether it has lines itself (DWARF)."""
        return any(self._section(name) is not None for name in (b".debug_info", b".zdebug_info"))

    def functions_at(self, addresses: Addresses) -> list[tuple[int, str]]:
        """For every address (as in the file) the start and the name of its function; (0, "") where none is known."""
        if self._starts is None:
            self._read_functions()
        assert self._starts is not None
        found: list[tuple[int, str]] = []
        places = np.searchsorted(self._starts, addresses, side="right") - 1
        for address, place in zip(addresses.tolist(), places.tolist(), strict=True):
            inside = place >= 0 and address < int(self._ends[place])
            found.append((int(self._starts[place]), self._name(place)) if inside else (0, ""))
        return found

    def _section(self, name: bytes) -> _Section | None:
        (names,) = struct.unpack_from("<H", self._data, 0x3E)
        if not 0 < names < len(self._sections):
            return None
        texts = self._sections[names]
        at = self._data.find(b"\0" + name + b"\0", texts.offset, texts.offset + texts.size)
        wanted = at + 1 - texts.offset
        return next((one for one in self._sections if one.name == wanted), None) if at >= 0 else None

    def _read_sections(self) -> list[_Section]:
        offset, size, count = (
            struct.unpack_from("<Q", self._data, 0x28)[0],
            *struct.unpack_from("<HH", self._data, 0x3A),
        )
        if size < 64 or offset + size * count > len(self._data):
            return []
        sections = []
        for number in range(count):
            name, kind, _, address, at, length, link = struct.unpack_from(
                "<IIQQQQI", self._data, offset + number * size
            )
            if at <= len(self._data) and length <= len(self._data) - at:
                sections.append(_Section(name, kind, address, at, length, link))
            else:  # such as .bss, which is not in the file
                sections.append(_Section(0, 0, 0, 0, 0, 0))
        return sections

    def _read_functions(self) -> None:
        """Of .symtab, which has local functions too; of .dynsym where that was stripped. Sorted, one name per start."""
        self._text = _Section(0, 0, 0, 0, 0, 0)
        symbols = np.empty(0, _SYMBOL)
        for wanted in (_SYMTAB, _DYNSYM):
            table = next((one for one in self._sections if one.kind == wanted), None)
            if table is None or not 0 < table.link < len(self._sections):
                continue
            symbols = np.frombuffer(self._data, _SYMBOL, table.size // _SYMBOL.itemsize, table.offset)
            self._text = self._sections[table.link]
            break
        kind = symbols["info"] & 15
        symbols = symbols[
            np.isin(kind, (_FUNCTION, _CHOSEN_AT_LOAD)) & (symbols["section"] != 0) & (symbols["value"] != 0)
        ]
        # Of several names for one address the global one with the largest size.
        is_local = (symbols["info"] >> 4) == 0
        symbols = symbols[np.lexsort((symbols["name"], -symbols["size"].astype(np.int64), is_local, symbols["value"]))]
        first = np.ones(len(symbols), np.bool_)
        first[1:] = symbols["value"][1:] != symbols["value"][:-1]
        symbols = symbols[first]
        self._starts, self._names = symbols["value"].copy(), symbols["name"].copy()
        section_ends = np.array([one.address + one.size for one in self._sections] + [0], np.uint64)
        own_end = section_ends[np.minimum(symbols["section"], len(self._sections))]
        following = np.append(self._starts[1:], np.uint64(2**63))
        following = np.where(own_end > self._starts, np.minimum(following, own_end), following)
        ends = self._starts + symbols["size"]
        # Assembly often has no size: such a function goes on to the next one, or to the end of its section.
        self._ends = np.where(symbols["size"] == 0, following, np.minimum(ends, following))

    def _name(self, place: int) -> str:
        at = self._text.offset + int(self._names[place])
        limit = min(self._text.offset + self._text.size, at + _LONGEST_NAME)
        end = self._data.find(b"\0", at, limit)
        return self._data[at : end if end >= 0 else max(at, limit)].decode("utf-8", "replace")

    def _build_id_in(self, section: _Section) -> str:
        at, end = section.offset, section.offset + section.size
        while at + 12 <= end:
            name, size, kind = struct.unpack_from("<III", self._data, at)
            body = at + 12 + (name + 3 & ~3)
            if body + size > end:
                return ""
            if kind == _BUILD_ID and self._data[at + 12 : at + 12 + name] == b"GNU\0":
                return self._data[body : body + size].hex()
            at = body + (size + 3 & ~3)
        return ""
