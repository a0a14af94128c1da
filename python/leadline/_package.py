"""The part directory of a session, and the `.leadline` file made from it when one process was measured.

The one thing that capture and the offline folders share, so it needs the standard library only. Merging several
processes needs NumPy and is `leadline.profiles.finish`, which takes `read_part`, `build_meta`, `write_package` from
here.

Promises: the file appears whole, by an atomic rename, or not at all; what comes from a part directory is data and is
checked for its type before use. Importing this loads nothing large: every measured process does so when it starts.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leadline._dataclass import dataclass
from leadline._output import PROFILE, OutputError, check_kind, replacing, write_text
from leadline._version import __version__

if TYPE_CHECKING:
    import zipfile

FORMAT_NAME = "leadline"
FORMAT_VERSION = 2
PART_FORMAT = 2
"""1: everything lay in the part directory itself; 2: in a folder in it, named by the session's id."""
SESSION_FILE = "session.json"
SEGMENT_SUFFIX = ".segment"
EVENTS_SUFFIX = ".events"
FLIGHT_SUFFIX = ".flight"
CODE_FOLDER = "code"
"""Beside the segments: machine code of devices, HASH.code each, of which samples were taken."""
MARKS = "marks"
"""Beside the segments of a session that rolls its files: what they were where one file ended and the next began."""
MARK_FILE = "file"
MARK_MADE = "made"
META_MEMBER = "meta.json"
_COPY_BYTES = 1 << 20
_MOST = 2**63 - 1
"""What a number of meta.json may be; sums of damaged ones stop there."""
_ID_LENGTH = 16
_ID_LETTERS = frozenset("0123456789abcdef")


class PackageError(Exception):
    """A part directory or a package could not be read or written; `str(error)` is one sentence."""


@dataclass(frozen=True)
class ProcessPart:
    """What one process left in the part directory."""

    stem: str
    """`<pid>-<start_ns>-<machine>`, the name of its files."""
    segment: Path | None
    """Its last segment, or None when it never wrote one."""
    record: dict[str, Any]
    """Its side file; empty when there was none or it could not be read."""
    events: Path | None
    """The events of its trace window, where they stand beside the segment: it did not write the last, whole one."""

    complete: bool
    """Whether its last segment holds all it measured: it stopped, or was ended by a signal that let it write."""

    flight: Path | None = None
    """Its flight recorder, where it began a collective."""


@dataclass(frozen=True)
class Part:
    """A part directory as it was when read."""

    directory: Path
    session: dict[str, Any]
    """`session.json`; empty when it was missing or could not be read."""
    processes: tuple[ProcessPart, ...]
    """In the order they began."""
    code: Path | None = None
    """The folder with machine code, where some was kept."""

    @property
    def single(self) -> bool:
        """Whether nothing is left to do: one process, stopped in order, all in its segment, no code to read."""
        alone = len(self.processes) == 1 and self.processes[0].complete and self.processes[0].events is None
        return alone and self.code is None


def session_folder(directory: Path) -> Path:
    """Where in a part directory its session keeps its files: a folder named by the session's id, or (format 1) the
    part directory itself. Raises OSError."""
    inner = [path for path in directory.iterdir() if is_session_id(path.name) and path.is_dir()]
    return max(inner, key=lambda path: (path / SESSION_FILE).exists(), default=directory)


def read_session(directory: Path) -> dict[str, Any]:
    """`session.json` of a part directory; empty where it is missing or damaged."""
    try:
        return _read_object(session_folder(directory) / SESSION_FILE)
    except OSError:
        return {}


def is_session_id(text: str) -> bool:
    """Whether this could be the id of a session: 16 hexadecimal digits."""
    return len(text) == _ID_LENGTH and set(text) <= _ID_LETTERS


def read_part(directory: Path) -> Part:
    """Read a part directory; raises PackageError when it is not one."""
    try:
        folder = session_folder(directory)
        names = sorted(path.name for path in folder.iterdir())
    except OSError as error:
        why = f"Cannot read the part directory {directory}: {error.strerror}"
        raise PackageError(f"{why}; a run that ended in order leaves a profile and no such directory.") from error
    stems = {name.rpartition(".")[0] for name in names if name.endswith((SEGMENT_SUFFIX, ".json"))} - {"session"}
    if not stems and SESSION_FILE not in names:
        raise PackageError(f"{directory} is not a part directory: it holds neither {SESSION_FILE} nor a segment.")
    session = _read_object(folder / SESSION_FILE)
    processes = []
    for stem in stems:
        segment = folder / f"{stem}{SEGMENT_SUFFIX}"
        record = _read_object(folder / f"{stem}.json")
        written = segment.exists()
        complete = written and (record.get("complete") is True or _is_last(segment))
        events = folder / f"{stem}{EVENTS_SUFFIX}"
        beside = events if written and events.exists() else None
        recorder = folder / f"{stem}{FLIGHT_SUFFIX}"
        flight = recorder if recorder.exists() else None
        processes.append(ProcessPart(stem, segment if written else None, record, beside, complete, flight))
    processes.sort(key=_start_order)
    code = folder / CODE_FOLDER
    return Part(directory, session, tuple(processes), code if code.is_dir() else None)


def build_meta(part: Part) -> dict[str, Any]:
    """`meta.json` of the finished file, from the session's and the processes' own words (keys: docs/file-format.md)."""
    records = [{**process.record, "complete": process.complete} for process in part.processes]
    first = _first_process(part)
    started_at_ns = (
        _integer(part.session.get("started_at_ns")) or _integer(first.get("started_at_ns")) or time.time_ns()
    )
    ended_at_ns = max(_integer(one.get("ended_at_ns")) for one in (part.session, *records))
    program = dict(first.get("program") or {})
    if part.session.get("argv"):
        program["argv"] = part.session["argv"]
    return {
        "format": {"name": FORMAT_NAME, "version": FORMAT_VERSION},
        "leadline": __version__,
        "program": program,
        "session": part.session.get("id") or "",
        "started_at_ns": started_at_ns,
        "wall_ns": max(0, ended_at_ns - started_at_ns) if ended_at_ns else 0,
        "asked": part.session.get("asked") or {},
        "available": combine_available(records),
        "cost": sum_cost(records),
        "clock": first.get("clock") or {},
        "host": host(),
        "processes": records,
        "exit": part.session.get("exit"),
        **({"observed": observed} if (observed := part.session.get("observed")) else {}),
        **({"growth": growth} if (growth := part.session.get("growth")) else {}),
        "complete": bool(part.processes) and all(process.complete for process in part.processes),
    }


def sum_cost(records: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Own cost over the processes that state one (traces of others do not); `percent`: time in callbacks of all threads
    over the wall time of those processes."""
    total = {"callbacks_ns": 0, "flush_ns": 0, "events": 0, "held_bytes": 0}
    wall_ns = 0
    for record in records:
        cost = record.get("cost") or {}
        if not cost:
            continue
        for key in total:
            total[key] = min(total[key] + _integer(cost.get(key)), _MOST)
        wall_ns += _integer(record.get("wall_ns"))
    percent = 100.0 * total["callbacks_ns"] / wall_ns if wall_ns else None
    return {**total, "percent": percent}


def combine_available(records: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """What could be measured by any process: of each provider the first status that is good, else the first that says
    why not, else the first. What each process could measure is its own record's `available`."""
    combined: dict[str, Any] = {}
    for record in records:
        available = record.get("available")
        for name, status in available.items() if isinstance(available, dict) else ():
            if name not in combined or _worth(status) > _worth(combined[name]):
                combined[name] = status
    return combined


def _worth(status: object) -> int:
    ok = status.get("ok") if isinstance(status, dict) else None
    return 2 if ok is True else 1 if ok is False else 0


def host() -> dict[str, Any]:
    """The machine, as far as the standard library knows it."""
    system = os.uname()
    halves = products_of_halves()
    return {
        "hostname": system.nodename,
        "system": f"{system.sysname} {system.release}",
        "machine": system.machine,
        "cpus": os.cpu_count(),
        **({} if halves is None else {"products": halves}),
    }


_OF_HALVES = {
    "bfloat16": ("avx512_bf16", "amx_bf16", "bf16"),
    "float16": ("avx512_fp16", "amx_fp16", "asimdhp"),
}
"""Words of /proc/cpuinfo, of x86 and of ARM, that promise instructions for products of a type."""


@cache
def products_of_halves(cpuinfo: str = "/proc/cpuinfo") -> list[str] | None:
    """Types of half width that the processor multiplies by itself; others are turned into float32 and back, element by
    element. None where the kernel does not tell."""
    try:
        with Path(cpuinfo).open(encoding="utf-8", errors="replace") as file:
            line = next((line for line in file if line.startswith(("flags", "Features"))), "")
    except OSError:
        return None
    words = set(line.split())
    return [name for name, some in _OF_HALVES.items() if words & set(some)] if words else None


def pack_single(part: Part, output: Path) -> None:
    """Make `output` from the one complete process of `part` (see `Part.single`); raises PackageError."""
    import zipfile

    segment = part.processes[0].segment
    if not part.single or segment is None:
        raise PackageError(
            f"{part.directory} holds more than one process; merge it with `leadline recover {part.directory}`."
        )

    def fill(package: zipfile.ZipFile) -> None:
        with zipfile.ZipFile(segment) as source:
            for member in source.infolist():
                _copy_member(source, member, package)

    write_package(output, build_meta(part), fill)


def write_package(
    output: Path, meta: dict[str, Any], fill: Callable[[zipfile.ZipFile], None], *, force: bool = False
) -> None:
    """Write a package: `fill` adds the columns, `meta.json` goes first, the name appears last. Raises PackageError,
    also where `output` is there and no profile, unless `force`; it is then as it was."""
    import zipfile

    try:
        check_kind(output, PROFILE, force=force)
        with replacing(output) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as package:
            # A fresh ZipInfo has a fixed date. ASCII: a command line may hold what UTF-8 cannot (lone surrogates).
            package.writestr(zipfile.ZipInfo(META_MEMBER), json.dumps(meta, indent=1), zipfile.ZIP_DEFLATED)
            fill(package)
    except OutputError as error:
        raise PackageError(str(error)) from None
    except (OSError, zipfile.BadZipFile) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise PackageError(f"Cannot write {output}: {reason}.") from error


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Replace a JSON file atomically; raises OSError."""
    write_text(path, json.dumps(value, ensure_ascii=False), 0o600)


def _copy_member(source: zipfile.ZipFile, member: zipfile.ZipInfo, package: zipfile.ZipFile) -> None:
    import zipfile

    # A fresh ZipInfo with a fixed date: the same measurement gives the same bytes.
    target = zipfile.ZipInfo(member.filename)
    target.compress_type = zipfile.ZIP_DEFLATED
    with source.open(member) as reader, package.open(target, "w") as writer:
        while block := reader.read(_COPY_BYTES):
            writer.write(block)


def _first_process(part: Part) -> dict[str, Any]:
    """The process that began first among those that say what they are; empty when none does."""
    return next((process.record for process in part.processes if process.record), {})


def _is_last(segment: Path) -> bool:
    """Whether a segment says of itself that nothing comes after it: its one value of `processes.complete` is 1."""
    import zipfile

    try:
        with zipfile.ZipFile(segment) as source:
            return source.read("processes.complete.npy")[-1:] == b"\x01"
    except Exception:  # zipfile raises UnicodeError, struct.error, zlib.error and more for a damaged file
        return False


def _start_order(process: ProcessPart) -> tuple[int, str]:
    start = process.stem.split("-")[1:2]
    return (int(start[0]) if start and start[0].isdecimal() else 0, process.stem)


def _read_object(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _integer(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
