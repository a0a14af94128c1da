"""From samples of a kernel's instructions to its source: lines, inlined functions, and the instructions' own text.

While a program runs only places in machine code are known: frames of instructions say in their detail which code object
(`code`) and which function. Afterwards the code objects that were kept say the rest. Below a kernel then stand, the
outermost first, a frame for every line that the instruction was inlined through, and the instruction itself.

A code object without lines, or of a kind that no reader knows, leaves its instructions as they are: offsets.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol

import numpy as np

from leadline._dataclass import dataclass, replace
from leadline.profiles.codetables import CodeLine, CodeTables
from leadline.profiles.demangle import demangler
from leadline.profiles.inlined import with_frames_above
from leadline.profiles.merge import merge_tables
from leadline.profiles.names import readable
from leadline.profiles.profile import Profile
from leadline.profiles.sass import can_disassemble, instruction_texts
from leadline.profiles.tables import StringBuilder, Tables
from leadline.profiles.tree import json_object
from leadline.schema import FrameKind

_INTERNAL = re.compile(r"\b_INTERNAL_\w+::")  # what nvcc puts around functions of a file alone
_INSTRUCTION_BYTES = 16
"""Of every device since compute capability 7.0."""
_MOST_OF_FUNCTION = 1 << 22
_MOST_BYTES = 1 << 30
"""Of one code object; the largest that libraries ship have some hundred megabytes."""


class CodeReader(Protocol):
    """What is known of one code object."""

    def at(self, function: str, offset: int) -> list[tuple[str, str, int]]:
        """(function, file, line) of an instruction, the innermost first; empty where nothing is known."""

    def texts(self, function: str) -> Mapping[int, str]:
        """Instructions of a function as text, by their offsets; empty where nothing can read them."""

    def lines(self, function: str) -> list[CodeLine]:
        """Every instruction of a function; empty where the code has no such function."""


@dataclass(frozen=True)
class _Place:
    code: str
    function: str
    offset: int


class CubinReader:
    """NVIDIA's."""

    def __init__(self, data: bytes, path: Path) -> None:
        from leadline import _cubin

        self._cubin = _cubin.read(data)
        self._path = path
        self._texts: dict[str, dict[int, str]] | None = None
        self._sizes: dict[str, int] | None = None

    def at(self, function: str, offset: int) -> list[tuple[str, str, int]]:
        """See `CodeReader`."""
        return self._cubin.at(function, offset)

    def texts(self, function: str) -> Mapping[int, str]:
        """See `CodeReader`; by nvdisasm, where the machine has it."""
        if self._texts is None:
            self._texts = instruction_texts(self._path)
        return self._texts.get(function, {})

    def lines(self, function: str) -> list[CodeLine]:
        """See `CodeReader`."""
        texts = self.texts(function)
        if self._sizes is None:
            self._sizes = {name: size for name, size, _ in self._cubin.functions()}
        size = min(self._sizes.get(function, 0), _MOST_OF_FUNCTION)
        found = []
        for offset in sorted(texts) or range(0, size, _INSTRUCTION_BYTES):
            _, file, line = next(iter(self.at(function, offset)), ("", "", 0))
            found.append(CodeLine(offset, texts.get(offset, ""), file, line))
        return found


def open_code(path: Path) -> CodeReader | None:
    """A reader for the code object in a file; None where it cannot be read or is of an unknown kind."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            return None
        return CubinReader(path.read_bytes(), path)
    except (OSError, ValueError):
        return None


def with_code(profile: Profile, folder: Path) -> Profile:
    """The profile with lines for its instructions, by the code objects `HASH.code` in a folder."""
    tables = profile.tables
    places = _places(tables)
    if not places:
        return profile
    readers = {code: open_code(folder / f"{code}.code") for code in sorted({one.code for one in places.values()})}
    strings = StringBuilder()
    for raw in tables.strings.all_raw():
        strings.add(raw)
    frames = {name: values.copy() for name, values in tables["frames"].items()}
    added: dict[str, list[int]] = {name: [] for name in frames}
    above: dict[int, list[int]] = {}
    demangle = demangler()
    for row, place in places.items():
        reader = readers[place.code]
        if reader is None:
            continue
        if text := reader.texts(place.function).get(place.offset):
            frames["name"][row] = strings.add(text)
        chain = reader.at(place.function, place.offset)
        if not chain:
            continue
        _, file, line = chain[0]
        frames["file"][row], frames["line"][row] = strings.add(file), line
        for function, file, line in reversed(chain):
            above.setdefault(row, []).append(len(frames["kind"]) + len(added["kind"]))
            for name in frames:
                added[name].append(0)
            added["kind"][-1] = int(FrameKind.INSTRUCTION)
            added["name"][-1] = strings.add(readable(_INTERNAL.sub("", demangle(function))))
            added["file"][-1], added["line"][-1] = strings.add(file), line
    frames = {name: np.concatenate([values, np.array(added[name], values.dtype)]) for name, values in frames.items()}
    code = _code_tables(places.values(), readers, folder)
    held = code.columns(strings)
    whole = Tables({**tables.columns, **held, "frames": frames, "strings": strings.columns()})
    return Profile(merge_tables([with_frames_above(whole, above)], within=True), profile.meta)


def disassembled(profile: Profile) -> Profile:
    """The profile with text for instructions that had none when it was made, from the code that it holds; the same
    profile where it holds none, or no disassembler is here either."""
    tables = profile.tables
    text = tables.strings
    wanting = {text[row] for row in np.unique(tables["code_lines"]["hash"][tables["code_lines"]["text"] == 0]).tolist()}
    if not wanting or not can_disassemble():
        return profile
    made = CodeTables()
    made.add(tables)
    texts: dict[str, Mapping[str, Mapping[int, str]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for code in sorted(wanting & made.objects.keys()):
            path = Path(folder, f"{code}.code")
            path.write_bytes(made.objects[code])
            texts[code] = instruction_texts(path)
    for (code, function), lines in made.lines.items():
        said = texts.get(code, {}).get(function, {})
        made.lines[code, function] = [replace(one, text=one.text or said.get(one.offset, "")) for one in lines]
    strings = StringBuilder()
    for raw in text.all_raw():
        strings.add(raw)
    names = tables["frames"]["name"].copy()
    for row, place in _places(tables).items():
        if said_of := texts.get(place.code, {}).get(place.function, {}).get(place.offset):
            names[row] = strings.add(said_of)
    columns = {**tables.columns, **made.columns(strings), "frames": {**tables["frames"], "name": names}}
    return Profile(Tables({**columns, "strings": strings.columns()}), profile.meta)


def _code_tables(places: Iterable[_Place], readers: Mapping[str, CodeReader | None], folder: Path) -> CodeTables:
    """The code objects that were sampled, and the instructions of the functions that were."""
    made = CodeTables()
    for code, function in sorted({(one.code, one.function) for one in places}):
        reader = readers[code]
        if reader is None:
            continue
        made.lines[code, function] = reader.lines(function)
        if code not in made.objects:
            made.objects[code] = (folder / f"{code}.code").read_bytes()
    return made


def _places(tables: Tables) -> dict[int, _Place]:
    """Frames of instructions whose code is named, by their rows."""
    frames = tables["frames"]
    found: dict[int, _Place] = {}
    details: dict[int, tuple[str, str]] = {}
    for row in np.flatnonzero(frames["kind"] == int(FrameKind.INSTRUCTION)).tolist():
        detail = int(frames["detail"][row])
        if detail not in details:
            said = json_object(tables.strings[detail])
            details[detail] = (_hash(said.get("code")), str(said.get("function", "")))
        code, function = details[detail]
        if code and function:
            found[row] = _Place(code, function, int(frames["address"][row]))
    return found


def _hash(text: object) -> str:
    """A hash as files are named by it; empty for anything else, which would be a path."""
    good = isinstance(text, str) and len(text) == 16 and set(text) <= set("0123456789abcdef")
    return str(text) if good else ""
