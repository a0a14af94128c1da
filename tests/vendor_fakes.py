"""Fake vendor libraries compiled once for all who want them: workers of a test run, rehearsals of bench/gpu, later runs.

What was compiled lies in build/fakes/ under the digest of all that it depends on.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NATIVE = ROOT / "native"
FLAGS = ("-std=c++20", "-fPIC", "-shared", f"-I{NATIVE}", f"-I{NATIVE / 'include'}")


def build(
    folder: Path, compiler: str, vendor: str, libraries: Mapping[str, tuple[Sequence[str], Sequence[str]]], *more: str
) -> None:
    """Put `libraries` (file name: its sources in native/testing/VENDOR, and those of them that it needs, which come
    before it) into a folder; `more`: flags. Raises CalledProcessError."""
    made = ROOT / "build" / "fakes" / _digest(compiler, vendor, repr(libraries), *more)
    made.parent.mkdir(parents=True, exist_ok=True)
    with made.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.is_dir():
            partial = made.with_suffix(f".{os.getpid()}")
            partial.mkdir()
            for name, (sources, needed) in libraries.items():
                command = [compiler, *FLAGS, *more, *(str(NATIVE / "testing" / vendor / source) for source in sources)]
                command += ["-o", str(partial / name), f"-Wl,-soname,{name}", "-Wl,-rpath,$ORIGIN", f"-L{partial}"]
                subprocess.run([*command, *(f"-l:{library}" for library in needed), "-lpthread"], check=True)
            partial.rename(made)
    for name in libraries:
        shutil.copy2(made / name, folder / name)


def _digest(*words: str) -> str:
    found = hashlib.sha256("\0".join(words).encode())
    for path in sorted([*NATIVE.rglob("*.h"), *(NATIVE / "testing").rglob("*.cpp")]):
        found.update(path.read_bytes())
    return found.hexdigest()[:16]
