"""C++ names as they were written, by the C++ library.

Its demangler refuses names of more than 1,024 characters, which AMD's Composable Kernel has: these are cut behind an
argument of a template and closed, so that what stands in front can be read. As native/gpu/cut_name.cpp.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable

LONGEST = 1024
"""Characters of a mangled name that the demangler takes."""

_ELEMENT = re.compile(
    r"(?P<length>\d+)|S[tabsiod]|[ST][0-9A-Z]*_|(?P<open>[NIJ])|(?P<literal>L(?!_))|(?P<close>E)"
    r"|(?P<prefix>[PROKVr]|Dp)|D[FBU]\d+[_b]?|D[^p]|[a-z]"
)
"""One element of a name, by the Itanium C++ ABI; what is not among them (expressions, functions) ends the reading."""
_VALUE = re.compile(r"[^E]*(?=E)")


def cut_name(mangled: str, most: int = LONGEST) -> str:
    """The mangled name of `void f<the first arguments>(void)` with at most `most` characters; empty where the name has
    no template, or a form that is not known here."""
    if not mangled.startswith("_ZN"):
        return ""
    at, opened, best, prefixed = 2, "", "", False
    while True:
        if opened[-1:] in ("I", "J") and not prefixed:
            if at + len(opened) + 2 > most:
                return best
            best = mangled[:at] + "E" * len(opened) + "vv"
        found = _ELEMENT.match(mangled, at)
        if found is None:
            return best
        at, prefixed = found.end(), found["prefix"] is not None
        in_value = False
        if found["length"]:
            at += int(found["length"])
        elif found["open"]:
            opened += found["open"]
        elif found["literal"]:
            opened += "L"
            in_value = mangled[at : at + 1] not in "N0123456789"
        elif found["close"]:
            opened = opened[:-1]
            if not opened:
                return best
            in_value = opened[-1] == "L"
        if in_value:
            value = _VALUE.match(mangled, at)
            if value is None:
                return best
            at = value.end()


def demangler() -> Callable[[str], str]:
    """Makes C++ names what they were written as, by the C++ library; leaves them as they are where there is none."""
    try:
        return _Demangler(ctypes.CDLL("libstdc++.so.6"))
    except OSError:
        return str


_NEW_TYPES = (
    ("DF16_", ("Dd", "decimal64"), "_Float16"),
    ("DF16b", ("De", "decimal128"), "__bf16"),
    ("DB8_", ("Df", "decimal32"), "_BitInt(8)"),
    ("DU8_", ("Du", "char8_t"), "unsigned _BitInt(8)"),
)
"""Types of compilers for GPUs that the C++ library may not know, by types that it knows and no kernel has: as in
native/gpu/kernel_names.cpp."""


def _digest(name: str) -> str:
    """What tells names apart whose beginnings are the same: FNV-1a, as in native/gpu/kernel_names.cpp."""
    value = 0x811C9DC5
    for byte in name.encode():
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return f"{value:08x}"


def _stand_ins(name: str) -> str:
    for mangled, (stand_in, _), _ in _NEW_TYPES:
        name = name.replace(mangled, stand_in)
    return name


class _Demangler:
    def __init__(self, library: ctypes.CDLL) -> None:
        self._demangle = library["__cxa_demangle"]
        self._demangle.restype = ctypes.c_void_p
        self._free = ctypes.CDLL(None).free
        self._free.argtypes = [ctypes.c_void_p]

    def __call__(self, name: str) -> str:
        if not name.startswith("_Z"):
            return name
        known = _stand_ins(name)
        text = self._text(known)
        if not text and len(known) > LONGEST:
            text = self._text(cut_name(known)).removesuffix("()")
            text += f"(... #{_digest(name)})" if text else ""
        if text and known != name:
            for _, stand_in, words in _NEW_TYPES:
                text = text.replace(stand_in[1], words)
        return text or self._text(name) or name

    def _text(self, name: str) -> str:
        status = ctypes.c_int()
        made = self._demangle(name.encode(), None, None, ctypes.byref(status))
        if not made:
            return ""
        text = ctypes.string_at(made).decode("utf-8", "replace")
        self._free(made)
        return text
