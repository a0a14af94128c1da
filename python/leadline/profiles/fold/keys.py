"""What makes two frames of two ranks the same one.

A frame's key holds all of its columns, but: a process is the group that it is folded into; numbers of threads and
digits in their names do not count; a file of an installed package or of the interpreter counts from the folder of
packages on, since machines have it in different places. Keys are bytes, so equal means equal: nothing is hashed to a
number. Their order is that of kind, line and name, which is the order of rows in the file.
"""

from __future__ import annotations

import json
import re
import struct
from functools import lru_cache
from itertools import accumulate, pairwise

from leadline.profiles.tables import Tables
from leadline.profiles.tree import json_object
from leadline.schema import FrameKind

_HEAD = struct.Struct(">BIIQIIII")
_DIGITS = re.compile(r"\d+")
_PACKAGES = re.compile(rb"^.*?/(?=(?:site|dist)-packages/|lib(?:64)?/python3\.\d+t?/)")
_SIGN = 1 << 31
_THREAD, _PHASE = int(FrameKind.THREAD), int(FrameKind.PHASE)
COLUMNS = ("kind", "name", "file", "line", "first_line", "module", "address", "detail")

Parts = tuple[int, bytes, bytes, int, int, bytes, int, bytes]
"""Kind, name, file, line, first line, module, address, detail."""


def frame_keys(tables: Tables) -> tuple[list[bytes], list[bytes]]:
    """For every row of `frames` its key, and its file as this rank has it."""
    texts = tables.strings.all_raw()
    rows = zip(*(tables["frames"][name].tolist() for name in COLUMNS), strict=True)
    keys, files = [], []
    for kind, name, file, line, first_line, module, address, detail in rows:
        shown = texts[file]
        called, told = texts[name], texts[detail]
        if kind == _THREAD:
            called, told = thread_name(called), b""  # its detail is the kernel's number
        elif kind == _PHASE and b'"thread"' in told:
            told = _thread_detail(told)
        keys.append(frame_key((kind, called, portable(shown), line, first_line, texts[module], address, told)))
        files.append(shown)
    return keys, files


def frame_key(parts: Parts) -> bytes:
    """The key of a frame whose names count as they are."""
    kind, name, file, line, first_line, module, address, detail = parts
    sizes = (len(name), len(file), len(module), len(detail))
    head = _HEAD.pack(kind, line + _SIGN, first_line + _SIGN, address, *sizes)
    return head + name + file + module + detail


def key_parts(key: bytes) -> Parts:
    """What `frame_key` was made of."""
    kind, line, first_line, address, *lengths = _HEAD.unpack_from(key)
    ends = list(accumulate(lengths, initial=_HEAD.size))
    name, file, module, detail = (key[begin:end] for begin, end in pairwise(ends))
    return kind, name, file, line - _SIGN, first_line - _SIGN, module, address, detail


def process_key(label: str) -> bytes:
    """The key of the process frame that stands for a group."""
    return frame_key((int(FrameKind.PROCESS), label.encode("utf-8", "replace"), b"", 0, 0, b"", 0, b""))


@lru_cache(maxsize=65536)
def portable(file: bytes) -> bytes:
    """A file of a package from the folder of packages on; any other as it is."""
    return _PACKAGES.sub(b"", file)


@lru_cache(maxsize=65536)
def thread_name(name: bytes) -> bytes:
    """`worker-12` as `worker-*`: pools number their threads as they come."""
    return _DIGITS.sub("*", name.decode("utf-8", "replace")).encode()


@lru_cache(maxsize=65536)
def _thread_detail(detail: bytes) -> bytes:
    """The detail of a phase that names a thread, with the name as `thread_name` has it."""
    told = json_object(detail.decode("utf-8", "replace"))
    if not isinstance(told.get("thread"), str):
        return detail
    told["thread"] = thread_name(told["thread"].encode("utf-8", "replace")).decode()
    return json.dumps(told, sort_keys=True, separators=(",", ":")).encode()
