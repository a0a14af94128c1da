"""Python threads and frames of another process, read from its memory by the offsets of this same version of Python.

The process goes on while it is read, so anything may change in between: a chain that makes no sense is read again, and
what still makes none is left out.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Iterator

from leadline._dataclass import dataclass
from leadline.attach.offsets import Offsets, frame_layout
from leadline.attach.target import AttachError, Target

_MOST_THREADS = 10_000
_MOST_FRAMES = 5_000
_LONGEST_TEXT = 1 << 16
_LONGEST_LINES = 1 << 22
_TRIES = 5
_NO_FILE = "__init__"
"""Of the frame that CPython 3.13 puts between a class that is called often and its __init__: no Python function."""


@dataclass(frozen=True)
class Frame:
    """One Python frame: a function, its file and the line it is at (0 where unknown)."""

    name: str
    file: str
    line: int


@dataclass(frozen=True)
class Run:
    """One evaluation of the interpreter: its Python frames, the innermost first, and an object on its native frame (0
    where there is none)."""

    home: int
    frames: tuple[Frame, ...]


class Interpreter:
    """The interpreter of a process. Raises AttachError where it is none that can be read."""

    def __init__(self, target: Target, offsets: Offsets) -> None:
        self._target = target
        self._at = offsets
        self._frames = offsets.frames
        self.runtime = target.runtime()
        self.file = target.file_at(self.runtime)
        self._codes: dict[int, tuple[str, str, int, bytes]] = {}
        self._code_type = 0

    def threads(self) -> dict[int, int]:
        """Of every Python thread the address of its state, by its number in the kernel."""
        interpreter = self._target.word(self.runtime + self._at.interpreter)
        if not interpreter:
            raise AttachError(f"Python has not started in process {self._target.pid}, or has ended.")
        found: dict[int, int] = {}
        state = self._target.word(interpreter + self._at.first_thread)
        for _ in range(_MOST_THREADS):
            if not state:
                break
            ident = self._target.word(state + self._at.ident)
            if ident:
                found[struct.unpack("<i", self._target.read(ident + self._at.tid, 4))[0]] = state
            state = self._target.word(state + self._at.next_thread)
        return found

    def stack(self, state: int) -> list[Frame]:
        """Frames of a thread, the innermost first; read until two readings agree, since it may be running."""
        before: list[tuple[int, int]] | None = None
        for _ in range(_TRIES):
            try:
                found = list(self._chain(state))
                if found == before:
                    return self._frames_of(found)
                before = found
            except AttachError:
                before = None
        try:
            return self._frames_of(before or [])
        except AttachError:
            return []

    def runs(self, state: int) -> list[Run]:
        """The same frames by evaluations of the interpreter; of a thread that stands still."""
        try:
            found: list[Run] = []
            frames: list[Frame] = []
            for code, instruction, home in self._links(state):
                if code:
                    frames += self._frames_of([(code, instruction)])
                if home and frames:
                    found.append(Run(home, tuple(frames)))
                    frames = []
            return [*found, Run(0, tuple(frames))] if frames else found
        except AttachError:
            return []

    def _chain(self, state: int) -> Iterator[tuple[int, int]]:
        """(code, instruction) of each frame, the innermost first."""
        return ((code, instruction) for code, instruction, _ in self._links(state) if code)

    def _links(self, state: int) -> Iterator[tuple[int, int, int]]:
        """(code, instruction, home) of each frame, the innermost first; home where an evaluation ends with it; without
        code only that."""
        at, read = self._frames, self._target.word
        c_frame = read(state + at["cframe"]) if at["cframe"] >= 0 else 0
        frame = read(state + at["thread_frame"])
        if at["through_cframe"] and frame:
            frame = read(frame + at["cframe_frame"])
        for _ in range(_MOST_FRAMES):
            if not frame:
                return
            if at["owner"] >= 0 and self._target.read(frame + at["owner"], 1)[0] == at["shim_owner"]:
                yield 0, 0, frame
            else:
                code = read(frame + at["code"]) & at["code_mask"]
                if at["instruction_is_index"]:
                    instruction = struct.unpack("<i", self._target.read(frame + at["instruction"], 4))[0]
                else:
                    instruction = read(frame + at["instruction"])
                entry = at["owner"] < 0 and (at["entry"] < 0 or self._target.read(frame + at["entry"], 1)[0] != 0)
                yield code, instruction, c_frame if entry else 0
                if entry and c_frame:
                    c_frame = read(c_frame + at["cframe_previous"])
            frame = read(frame + at["previous"])

    def _frames_of(self, chain: list[tuple[int, int]]) -> list[Frame]:
        frames = (self._frame(code, instruction) for code, instruction in chain)
        return [one for one in frames if one.file != _NO_FILE]

    def _frame(self, code: int, instruction: int) -> Frame:
        if code not in self._codes:
            self._codes[code] = self._read_code(code)
        name, file, first, lines = self._codes[code]
        if self._frames["instruction_is_index"]:
            offset = instruction * 2
        else:
            offset = instruction - (code + self._frames["code_start"])
        return Frame(name, file, _line(first, lines, offset))

    def _read_code(self, code: int) -> tuple[str, str, int, bytes]:
        at = self._frames
        name = self._text(self._target.word(code + at["code_name"]))
        file = self._text(self._target.word(code + at["code_filename"]))
        first = int(struct.unpack("<i", self._target.read(code + at["code_first_line"], 4))[0])
        lines = self._target.word(code + at["code_lines"])
        size = self._target.word(lines + at["bytes_size"])
        if size > _LONGEST_LINES:
            raise AttachError("A code object makes no sense.")
        return name, file, first, self._target.read(lines + at["bytes_data"], size)

    def _text(self, address: int) -> str:
        """A Python str: its letters lie behind its head, one, two or four bytes each."""
        length = self._target.word(address + self._frames["text_length"])
        state = struct.unpack("<I", self._target.read(address + self._frames["text_state"], 4))[0]
        kind, ascii_only = _kind(state)
        if length > _LONGEST_TEXT or kind not in (1, 2, 4):
            raise AttachError("A text makes no sense.")
        begin = address + self._frames["text_ascii" if ascii_only else "text_wide"]
        raw = self._target.read(begin, length * kind)
        return raw.decode({1: "latin-1", 2: "utf-16-le", 4: "utf-32-le"}[kind], "replace")


def _kind(state: int) -> tuple[int, bool]:
    """Bytes per letter and whether all are ASCII."""
    shift = _kind_shift()
    return state >> shift & 7, bool(state >> (shift + 4) & 1)


@functools.cache
def _kind_shift() -> int:
    """From which bit on the kind stands, found in texts of this interpreter whose kind is known."""
    at = frame_layout()["text_state"]
    known = {"letters": 1, "\xe9t\xe9": 1, "\u0101": 2, "\U0001f600": 4}
    states = {text: struct.unpack("<I", ctypes.string_at(id(text) + at, 4))[0] for text in known}
    for shift in range(28):
        if all(states[text] >> shift & 7 == kind for text, kind in known.items()):
            return shift
    raise AttachError("This interpreter stores its strings in a way that Leadline does not know.")


def _line(first: int, lines: bytes, offset: int) -> int:
    """Line of an instruction; read by a code object of this interpreter that is given the same table."""
    if offset < 0:
        return first
    for begin, end, line in _CODE.replace(co_linetable=lines, co_firstlineno=first).co_lines():
        if begin <= offset < end:
            return line if line is not None else first
    return first


_CODE = compile("", "<table of lines>", "exec")
