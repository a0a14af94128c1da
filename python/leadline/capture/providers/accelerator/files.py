"""Where the audit library is, what a program's environment must name for it, and what a library exports."""

from __future__ import annotations

import importlib.util
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

AUDIT_VARIABLE = "LD_AUDIT"
"""Environment: libraries that the loader asks about every library and binding, separated by colons."""
DESCRIPTION_VARIABLE = "LEADLINE_AUDIT"
"""Environment: the descriptions, for the audit library (native/audit/mailbox.h)."""
AUDIT_LIBRARY = "libleadline_audit.so"


def audit_library() -> Path | None:
    """The file that AUDIT_VARIABLE must name; None where this installation has none."""
    # Beside the native module, which an editable installation keeps apart from the Python files.
    native = importlib.util.find_spec("leadline._native")
    path = Path(native.origin).resolve().parent / AUDIT_LIBRARY if native is not None and native.origin else None
    return path if path is not None and path.exists() else None


def audit_environment(descriptions: Sequence[str], environment: Mapping[str, str]) -> dict[str, str]:
    """What a launcher adds to a program's environment so that its calls are seen; other audit libraries stay."""
    library = audit_library() if descriptions else None
    if library is None:
        return {}
    others = [path for path in environment.get(AUDIT_VARIABLE, "").split(":") if path and path != str(library)]
    return {AUDIT_VARIABLE: ":".join([*others, str(library)]), DESCRIPTION_VARIABLE: "".join(descriptions)}


def exported(path: Path) -> list[str]:
    """Names of the functions that a library (ELF, 64 bits) exports; empty where the file cannot be read as one."""
    try:
        content = path.read_bytes()
        return sorted(set(_exported(content)))
    except (OSError, struct.error, ValueError, UnicodeDecodeError, IndexError):
        return []


def _exported(content: bytes) -> list[str]:
    if content[:5] != b"\x7fELF\x02":
        return []
    (sections_at,) = struct.unpack_from("<Q", content, 40)
    size, count = struct.unpack_from("<HH", content, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", content, sections_at + size * i) for i in range(count)]
    found = []
    for _, kind, _, _, offset, length, link, _, _, each in sections:
        if kind != 11 or each != 24:  # SHT_DYNSYM
            continue
        text = sections[link][4]
        for at in range(offset, offset + length, each):
            name, info, _, section = struct.unpack_from("<IBBH", content, at)
            if section != 0 and info & 15 in (2, 10):  # a function that is defined here
                start = text + name
                found.append(content[start : content.index(b"\0", start)].decode("ascii"))
    return found
