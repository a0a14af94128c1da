"""Tools in C (`leadline/tool.h`): a shared library's one `leadline_tool` as a Tool class.

Batches are handed over as they are: columns are the arrays themselves. Its functions run without Python's lock.
"""

from __future__ import annotations

import ctypes
import importlib
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from leadline.tools.batch import Batch
from leadline.tools.errors import ToolError
from leadline.tools.events import EVENTS
from leadline.tools.out import Out
from leadline.tools.tool import Context, Tool, option

VERSION = 1
SYMBOL = "leadline_tool_it"
NO_C_EVENTS = frozenset({"count"})
"""Events that only a tool with a `gpu` text can ask for."""
_POINTER = ctypes.c_void_p
_REFS = ("name", "object", "place", "launch")
_UNITS = ("ns", "bytes", "%")


class _Batch(ctypes.Structure):
    _fields_: ClassVar = [
        ("event", ctypes.c_char_p),
        ("rows", ctypes.c_size_t),
        ("columns", ctypes.c_size_t),
        ("names", ctypes.POINTER(ctypes.c_char_p)),
        ("values", ctypes.POINTER(_POINTER)),
    ]


_TEXT = ctypes.CFUNCTYPE(ctypes.c_size_t, _POINTER, ctypes.c_int, ctypes.c_int64, _POINTER, ctypes.c_size_t)
_BYTES = ctypes.CFUNCTYPE(ctypes.c_int64, _POINTER, ctypes.c_int64)
_OPTION = ctypes.CFUNCTYPE(_POINTER, _POINTER, ctypes.c_char_p)
_TWO_TEXTS = ctypes.CFUNCTYPE(None, _POINTER, ctypes.c_char_p, ctypes.c_char_p)
_ROW = ctypes.CFUNCTYPE(None, _POINTER, ctypes.POINTER(ctypes.c_int64), ctypes.c_size_t)


class _Run(ctypes.Structure):
    _fields_: ClassVar = [
        ("state", _POINTER),
        ("text", _TEXT),
        ("object_bytes", _BYTES),
        ("option", _OPTION),
        ("table", _TWO_TEXTS),
        ("row", _ROW),
        ("say", _TWO_TEXTS),
    ]


_CALL = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Run))
_ON_BATCH = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Run), ctypes.POINTER(_Batch))
_EVENTS = tuple(event for event in EVENTS if event not in NO_C_EVENTS)


class _Tool(ctypes.Structure):
    _fields_: ClassVar = [
        ("version", ctypes.c_uint32),
        ("size", ctypes.c_uint32),
        ("name", ctypes.c_char_p),
        ("doc", ctypes.c_char_p),
        ("options", ctypes.c_char_p),
        ("columns", ctypes.c_char_p),
        ("start", _CALL),
        ("finish", _CALL),
        *((event, _ON_BATCH) for event in _EVENTS),
    ]


def include_folder() -> Path:
    """Where `leadline/tool.h` is."""
    native = importlib.import_module("leadline._native")
    return Path(str(native.__file__)).parent / "include"


def load(file: str) -> type[Tool]:
    """The Tool class of a shared library; raises ToolError."""
    try:
        library = ctypes.CDLL(str(Path(file).resolve()))
    except OSError as error:
        raise ToolError(f"The tool {file} cannot be loaded: {error}.") from None
    try:
        told = _Tool.in_dll(library, SYMBOL)
    except ValueError:
        raise ToolError(f"{file} has no tool; write LEADLINE_TOOL(name, ...) of <leadline/tool.h> in it.") from None
    if told.version != VERSION or told.size != ctypes.sizeof(_Tool):
        raise ToolError(
            f"{file} was built for version {told.version} of <leadline/tool.h>, this is {VERSION}; build it again."
        )
    wanted = {event: ["launch"] if "launch" in _columns(event) else [] for event in _EVENTS if getattr(told, event)}
    for named in (told.columns or b"").decode().split():
        event, _, column = named.partition(".")
        wanted.setdefault(event, []).append(column)
    options = dict(one.partition("=")[::2] for one in (told.options or b"").decode().split())
    name = (told.name or b"").decode()
    members: dict[str, Any] = {
        "__doc__": (told.doc or b"").decode(),
        "__module__": f"leadline_tool_{name}",
        "tool_name": name,
        "events": wanted,
        "told": told,
        "library": library,
        **{key: option(str, value) for key, value in options.items()},
        **dict.fromkeys(wanted, CTool.on_batch),
    }
    return type(name, (CTool,), members)


def _columns(event: str) -> list[str]:
    return [column.name for column in EVENTS[event].columns]


class CTool(Tool):
    """What every tool in C has in common."""

    told: ClassVar[Any]

    def __init__(self, context: Context, values: Any = None) -> None:
        super().__init__(context, values)
        self._tables: list[tuple[str, list[tuple[str, str]], list[list[int]]]] = []
        self._said: list[tuple[str, str]] = []
        self._texts: dict[str, bytes] = {}
        self._wrong = ""
        self._run = _Run(
            None, _TEXT(self._text), _BYTES(self._bytes), _OPTION(self._option), _TWO_TEXTS(self._table),
            _ROW(self._row), _TWO_TEXTS(self._say),
        )  # fmt: skip

    def start(self) -> None:
        if self.told.start:
            self._call(self.told.start)

    def _call(self, function: Any, *arguments: Any) -> None:
        function(self._run, *arguments)
        if self._wrong:
            raise ToolError(self._wrong)

    def on_batch(self, b: Batch) -> None:
        """Any event: the function of its name."""
        columns = {name: np.ascontiguousarray(values) for name, values in b.columns().items() if "@" not in name}
        names = (ctypes.c_char_p * len(columns))(*(name.encode() for name in columns))
        values = (_POINTER * len(columns))(*(column.ctypes.data for column in columns.values()))
        batch = _Batch(b.event.name.encode(), len(b), len(columns), names, values)
        self._call(getattr(self.told, b.event.name), batch)

    def finish(self, out: Out) -> None:
        if self.told.finish:
            self._call(self.told.finish)
        for name, columns, rows in self._tables:
            records = [
                {key: self._shown(out, kind, value) for (key, kind), value in zip(columns, row, strict=True)}
                for row in rows
            ]
            out.table(name, records, units={key: kind for key, kind in columns if kind in _UNITS})
        for name, sentence in self._said:
            out.text(name, sentence)

    def _shown(self, out: Out, kind: str, value: int) -> Any:
        if kind == "place":
            return out.path(value)
        return self._named(_REFS.index(kind), value) if kind in _REFS else value

    # ---------------------------------------------------------------- called by the tool

    def _named(self, ref: int, number: int) -> str:
        match _REFS[ref]:
            case "name":
                return self.names[number]
            case "object":
                return self.objects.label(number)
            case "place":
                return self.places.short(number)
        return self.names[int(self.launches.kernel[number])]

    def _text(self, _: Any, ref: int, number: int, text: int, room: int) -> int:
        told = self._named(ref, number).encode() if 0 <= ref < len(_REFS) else b""
        if room:
            cut = told[: room - 1] + b"\0"
            ctypes.memmove(text, cut, len(cut))
        return len(told)

    def _bytes(self, _: Any, thing: int) -> int:
        return int(self.objects.bytes[thing]) if 0 <= thing < len(self.objects) else 0

    def _option(self, _: Any, name: bytes) -> int | None:
        key = name.decode()
        if key not in self.options():
            return None
        kept = self._texts[key] = str(getattr(self, key)).encode() + b"\0"
        return ctypes.cast(ctypes.c_char_p(kept), _POINTER).value

    def _table(self, _: Any, name: bytes, columns: bytes) -> None:
        kinds = [(key, kind) for key, _, kind in (one.partition("=") for one in columns.decode().split())]
        self._tables.append((name.decode(), kinds, []))

    def _row(self, _: Any, values: Any, count: int) -> None:
        columns = self._tables[-1][1] if self._tables else []
        if count != len(columns):
            self._wrong = f"a row of {count} values came for a table of {len(columns)} columns"
        else:
            self._tables[-1][2].append([int(values[at]) for at in range(count)])

    def _say(self, _: Any, name: bytes, sentence: bytes) -> None:
        self._said.append((name.decode(), sentence.decode()))
