"""What to type next for a path: the one place that makes suggested commands from what the path is.

A suggestion must work as it is printed. Where nothing that Leadline has can read or run the path there is none.
"""

from __future__ import annotations

import os
import shlex
from enum import Enum
from pathlib import Path

from leadline.opening import PART_SUFFIX, SUFFIX
from leadline.profiles.remote import is_address

_ENDINGS = (SUFFIX, ".pt.trace.json.gz", ".pt.trace.json", ".json.gz", ".json", ".tar.gz", ".xplane.pb", ".gz")
_HEAD = 4096


class Kind(Enum):
    """What a path is, for who has to say what can be done with it."""

    MEASURED = "a profile, a trace or the ranks of a job"
    SEGMENTS = "the segments of a run that was not finished"
    SCRIPT = "a Python script"
    PROGRAM = "a program"
    OTHER = "nothing that Leadline reads or runs"
    MISSING = "no file"


def kind_of(path: str) -> Kind:
    """By its name, its first bytes and its mode; nothing is parsed that could be large."""
    if is_address(path):
        return Kind.MEASURED
    place = Path(path)
    if path.rstrip("/").endswith(PART_SUFFIX):
        return Kind.SEGMENTS if place.is_dir() else Kind.MISSING
    if place.is_dir():
        return Kind.SCRIPT if (place / "__main__.py").exists() else _of_folder(place)
    if not place.exists():
        return Kind.MISSING
    if place.suffix in (".py", ".pyw"):
        return Kind.SCRIPT
    if place.suffix == SUFFIX or _recognised(place):
        return Kind.MEASURED
    return _of_file(place)


def command_for(path: str) -> str:
    """The command that shows, finishes or measures what is there; empty where none would work."""
    quoted = shlex.quote(path)
    return {
        Kind.MEASURED: f"leadline report {quoted}",
        Kind.SEGMENTS: f"leadline recover {quoted}",
        Kind.SCRIPT: f"leadline run {quoted}",
        Kind.PROGRAM: f"leadline run -- {shlex.quote(path if '/' in path else './' + path)}",
    }.get(kind_of(path), "")


def output_for(path: str, ending: str) -> str:
    """A name for what is made of `path`: beside a profile, else in the working folder, since folders of traces are
    often not one's own."""
    for known in _ENDINGS:
        if path.endswith(known):
            stem = path.removesuffix(known)
            break
    else:
        stem = path.rstrip("/")
    if not path.endswith(SUFFIX):
        stem = Path(stem).name or "profile"
    return stem + ending


def _of_folder(folder: Path) -> Kind:
    try:
        names = [one.name for one in folder.iterdir() if not one.name.startswith(".")]
    except OSError:
        return Kind.OTHER
    if any(name.endswith((SUFFIX, *_ENDINGS)) for name in names) or any(map(_recognised, folder.iterdir())):
        return Kind.MEASURED
    return Kind.OTHER


def _recognised(place: Path) -> bool:
    from leadline.trace.importers import recognised  # it knows all formats, and most paths are profiles

    try:
        return recognised(place)
    except OSError:
        return False


def _of_file(place: Path) -> Kind:
    try:
        with place.open("rb") as stream:
            head = stream.read(_HEAD)
    except OSError:
        return Kind.OTHER
    if head.startswith(b"#!") and b"python" in head.partition(b"\n")[0]:
        return Kind.SCRIPT
    runs = os.access(place, os.X_OK) and head.startswith((b"#!", b"\x7fELF"))
    return Kind.PROGRAM if runs else Kind.OTHER
