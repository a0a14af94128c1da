"""Packages of Debian, unpacked without being installed: headers of an interpreter, a C library to link against.

LEADLINE_DEBIAN names a mirror. Every file is checked against the suite's index.
"""

from __future__ import annotations

import functools
import hashlib
import lzma
import os
import subprocess
import urllib.request
from pathlib import Path

MIRROR = os.environ.get("LEADLINE_DEBIAN", "http://deb.debian.org/debian")
PROCESSORS = {"x86_64": "amd64", "aarch64": "arm64"}


def unpack(suite: str, processor: str, package: str, folder: Path) -> None:
    """Put the files of the package below `folder`. Raises SystemExit with one sentence where a file is damaged, OSError
    where the mirror does not answer, ValueError where the suite has no such package."""
    entry = _entry(suite, PROCESSORS[processor], package)
    content = _fetch(entry["Filename"])
    if hashlib.sha256(content).hexdigest() != entry["SHA256"]:
        raise SystemExit(f"{entry['Filename']} is not what the index says; try again, or another mirror.")
    folder.mkdir(parents=True, exist_ok=True)
    archive = folder / f"{package}.deb"
    archive.write_bytes(content)
    subprocess.run(["dpkg-deb", "-x", str(archive), str(folder)], check=True)
    archive.unlink()


def _fetch(path: str) -> bytes:
    with urllib.request.urlopen(f"{MIRROR}/{path}", timeout=300) as answer:
        content: bytes = answer.read()
    return content


@functools.cache
def _index(suite: str, architecture: str) -> str:
    return lzma.decompress(_fetch(f"dists/{suite}/main/binary-{architecture}/Packages.xz")).decode()


def _entry(suite: str, architecture: str, package: str) -> dict[str, str]:
    """The fields of one package in the suite's index."""
    index = _index(suite, architecture)
    start = index.index(f"Package: {package}\n")
    lines = index[start : index.index("\n\n", start)].splitlines()
    return dict(line.split(": ", 1) for line in lines if ": " in line and not line.startswith(" "))
