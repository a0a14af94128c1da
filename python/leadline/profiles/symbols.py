"""Names for the native frames of a profile, after the run: from the symbol tables of the files that were loaded.

A file that is not the one that ran (another build id, or changed since) gives no names: it is said, and its frames stay
as they are. Frames of one function become one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from leadline._dataclass import dataclass
from leadline.profiles.debuginfod import DebugServers
from leadline.profiles.demangle import demangler
from leadline.profiles.dwarf import DebugLines, SourceLine, debug_file, debug_lines
from leadline.profiles.elf import ElfError, ElfFile
from leadline.profiles.inlined import with_frames_above
from leadline.profiles.merge import merge_tables
from leadline.profiles.names import readable
from leadline.profiles.profile import Profile
from leadline.profiles.tables import Array, StringBuilder, Tables
from leadline.schema import FrameKind


@dataclass(frozen=True)
class Symbolized:
    """A profile whose native frames have names as far as they are known. `named`, `unnamed`: how many. `sentences`: one
    for each file that could not be used."""

    profile: Profile
    named: int
    unnamed: int
    sentences: tuple[str, ...]


def symbolized(profile: Profile, folders: Sequence[Path] = (), servers: DebugServers | None = None) -> Symbolized:
    """The profile with names. `folders`: where to look for a file that is not where it was loaded from, by its name.
    `servers`: asked for what is on this machine in no place."""
    frames = profile.tables["frames"]
    native = np.flatnonzero(
        (frames["kind"] == int(FrameKind.NATIVE)) & (frames["address"] != 0) & (frames["file"] != 0)
    )
    texts = profile.tables.strings
    lined = [row for row in np.unique(frames["detail"][native]).tolist() if '"source"' in texts[row]]
    native = native[~np.isin(frames["detail"][native], lined)]  # those were looked up before
    inlined = _Inlined()
    strings = StringBuilder()
    for text in profile.tables.strings.all_raw():
        strings.add(text)
    columns = {name: values.copy() for name, values in frames.items()}
    sentences: list[str] = []
    named = 0
    ended_ns = max((process.end_ns for process in profile.processes), default=0)
    for file, build_id in sorted({(int(frames["file"][row]), int(frames["module"][row])) for row in native.tolist()}):
        rows = native[(frames["file"][native] == file) & (frames["module"][native] == build_id)]
        path = Path(profile.tables.strings[file])
        if not path.is_absolute():
            continue  # the kernel's own page, which is no file
        try:
            elf = _opened(path, profile.tables.strings[build_id], ended_ns, folders, servers)
        except ElfError as error:
            sentences.append(str(error))
            continue
        split_off = debug_file(elf, folders, servers)
        files = [elf] if split_off is None else [split_off, elf]  # stripped files have names of what they export only
        try:
            lines = debug_lines([elf.path, *(one.path for one in files if one is not elf)])
            if lines is not None:
                inlined.add_lines(columns, rows, lines)
            named += _name(columns, rows, files, strings)
        finally:
            for one in files:
                one.close()
    sentences += servers.sentences if servers else []
    columns = inlined.applied(columns, strings)
    # Names were added; rows of strings stay as they were.
    whole = Tables({**profile.tables.columns, "frames": columns, "strings": strings.columns()})
    tables = merge_tables([with_frames_above(whole, inlined.above)], within=True) if named else profile.tables
    return Symbolized(Profile(tables, profile.meta), named, len(native) - named, tuple(sentences))


class _Inlined:
    """Lines of frames, and the functions that were inlined there; all are known before rows are added."""

    def __init__(self) -> None:
        self._found: dict[int, list[SourceLine]] = {}
        self.above: dict[int, list[int]] = {}

    def add_lines(self, columns: dict[str, Array], rows: Array, lines: DebugLines) -> None:
        """By the addresses that the frames still have."""
        for row in rows.tolist():
            if found := lines.at(int(columns["address"][row])):
                self._found[row] = found

    def applied(self, columns: dict[str, Array], strings: StringBuilder) -> dict[str, Array]:
        """The frames with their lines in `detail`; those of functions around inlined ones are put behind them."""
        demangle = demangler()
        added: dict[str, list[int]] = {name: [] for name in columns}
        size = len(columns["kind"])
        for row, found in self._found.items():
            columns["detail"][row] = strings.add(_source(found[0]))
            if found[0].name and len(found) > 1:  # the symbol table knows the outermost only
                columns["name"][row] = strings.add(readable(demangle(found[0].name)))
            for one in reversed(found[1:]):
                self.above.setdefault(row, []).append(size + len(added["kind"]))
                for name in columns:
                    added[name].append(int(columns[name][row]))
                added["name"][-1] = strings.add(readable(demangle(one.name)))
                added["detail"][-1] = strings.add(_source(one))
                added["address"][-1] = 0  # it is named already
        return {name: np.concatenate([values, np.array(added[name], values.dtype)]) for name, values in columns.items()}


def _source(line: SourceLine) -> str:
    """As `detail` of a frame."""
    return json.dumps({"source": line.file, "line": line.line}) if line.file else ""


def _opened(path: Path, build_id: str, ended_ns: int, folders: Sequence[Path], servers: DebugServers | None) -> ElfFile:
    """The file that ran, or what was split off it. Raises ElfError."""
    refused = f"{path} no longer exists; name the folder of a copy with --search FOLDER."
    for candidate in (path, *(folder / path.name for folder in folders)):
        if not candidate.is_file():
            continue
        elf = ElfFile(candidate)
        if build_id and elf.build_id == build_id:
            return elf
        if build_id:
            refused = f"{candidate} is not the file that ran: its build id differs."
        elif candidate.stat().st_mtime_ns <= ended_ns:
            return elf  # no build id to compare: it has not been written since
        else:
            refused = f"{candidate} has no build id and was changed after the run, so it gives no names."
        elf.close()
    for kind in ("debuginfo", "executable"):
        if servers and build_id and (fetched := servers.file(build_id, kind)):
            elf = ElfFile(fetched)
            if elf.build_id == build_id:
                return elf
            elf.close()
    raise ElfError(refused)


def _name(columns: dict[str, Array], rows: Array, files: Sequence[ElfFile], strings: StringBuilder) -> int:
    """Names from the first file that has one for an address; how many there were."""
    demangle = demangler()
    addresses = columns["address"][rows].copy()
    left = np.ones(len(rows), np.bool_)
    for elf in files:
        places = np.flatnonzero(left)
        for place, (start, name) in zip(places.tolist(), elf.functions_at(addresses[places]), strict=True):
            if name:
                columns["name"][rows[place]] = strings.add(readable(demangle(name)))
                columns["address"][rows[place]] = start
                left[place] = False
    return int(np.count_nonzero(~left))
