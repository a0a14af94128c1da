"""SHA-256 of the program's own source files, so that whoever reads the profile notices that one is no longer what ran.

Only files of modules that are loaded when measuring ends, none of the standard library or of installed packages. A file
that was written after the process began may not be what runs: it has an empty hash, which no file matches.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

_MOST_FILES = 500
_LARGEST = 4 << 20  # bytes
INSTALLED = ("/site-packages/", "/dist-packages/")
"""Parts of the paths of packages' files."""


def source_hashes(began_ns: int, program: Mapping[str, Any]) -> dict[str, str]:
    """Absolute file to hash. `began_ns`: CLOCK_REALTIME when the process was first measured; `program`: of the record,
    since CPython takes `__file__` from `__main__` when a script has ended. Raises nothing."""
    words = [word for word in program.get("argv", []) if isinstance(word, str)]
    scripts = [os.path.join(str(program.get("cwd", "")), word) for word in words]  # noqa: PTH118
    standard = (os.path.dirname(os.__file__), os.path.join(sys.exec_prefix, sys.platlibdir, "python"))  # noqa: PTH118, PTH120
    own = str(Path(__file__).resolve().parents[1])
    found: dict[str, str] = {}
    for file in [*scripts, *(getattr(module, "__file__", None) for module in list(sys.modules.values()))]:
        if not isinstance(file, str) or not file.endswith(".py") or len(found) >= _MOST_FILES:
            continue
        if file.startswith((*standard, own)) or any(folder in file for folder in INSTALLED):
            continue
        path = Path(file)
        try:
            about = path.stat()
            if about.st_size <= _LARGEST:
                fresh = about.st_mtime_ns > began_ns
                found[os.path.abspath(file)] = "" if fresh else _sha256(path.read_bytes())  # noqa: PTH100
        except (OSError, ValueError):
            continue
    return found


def _sha256(data: bytes) -> str:
    return str(_algorithm()(data).hexdigest())


@functools.cache
def _algorithm() -> Callable[[bytes], Any]:
    """The interpreter's own code: `hashlib` loads OpenSSL, which takes longer than the hashes of most programs. Looked
    for once: a module that is not there takes longer to find than most files take to hash."""
    for name in ("_sha2", "_sha256"):  # since Python 3.12, and before
        with contextlib.suppress(ImportError):
            found: Callable[[bytes], Any] = importlib.import_module(name).sha256
            return found
    import hashlib

    return hashlib.sha256
