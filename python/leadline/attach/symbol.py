"""Where a variable of a loaded file lies in memory: its address in the file's symbol table, and where the file lies."""

from __future__ import annotations

import struct
from pathlib import Path

_LOAD, _DYNSYM, _SYMTAB = 1, 11, 2


def symbol_address(path: Path, name: str, loaded_at: int) -> int:
    """Address of `name` in a process in which the file's beginning is mapped at `loaded_at`; 0 where it has none."""
    try:
        data = path.read_bytes()
    except OSError:
        return 0
    try:
        return _symbol_address(data, name.encode(), loaded_at)
    except struct.error:  # torn, or no ELF file after all
        return 0


def _symbol_address(data: bytes, name: bytes, loaded_at: int) -> int:
    if data[:6] != b"\x7fELF\x02\x01":
        return 0
    programs, sections = struct.unpack_from("<QQ", data, 0x20)
    program_size, program_count, section_size, section_count = struct.unpack_from("<HHHH", data, 0x36)
    lowest: int | None = None
    for number in range(program_count):
        kind, _, _, virtual = struct.unpack_from("<IIQQ", data, programs + number * program_size)
        if kind == _LOAD:
            lowest = virtual if lowest is None else min(lowest, virtual)
    if lowest is None:
        return 0
    tables = [struct.unpack_from("<IIQQQQI", data, sections + number * section_size) for number in range(section_count)]
    for _, kind, _, _, offset, size, link in tables:
        if kind not in (_DYNSYM, _SYMTAB) or link >= len(tables):
            continue
        texts = data[tables[link][4] : tables[link][4] + tables[link][5]]
        wanted = _places(texts, name + b"\0")  # linkers let names share their ends
        if not wanted:
            continue
        for at in range(offset, offset + size, 24):
            text, _, _, section, value = struct.unpack_from("<IBBHQ", data, at)
            if text in wanted and section:
                return int(value - (lowest & ~0xFFF) + loaded_at)
    return 0


def _places(texts: bytes, wanted: bytes) -> set[int]:
    found = set()
    at = texts.find(wanted)
    while at >= 0:
        found.add(at)
        at = texts.find(wanted, at + 1)
    return found
