"""`open_profile(path)`: a `.leadline` file, from anyone, as a checked Profile, or one ProfileFileError.

Also reads the segments that a running process leaves (the same archive without meta.json), for merge and recover.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from leadline._version import __version__
from leadline.profiles.archive import Archive, Limits, open_archive, printable
from leadline.profiles.check import TableError, check_tables
from leadline.profiles.errors import ProfileFileError
from leadline.profiles.formats import FORMATS, Format, RawProfile, upgraded
from leadline.profiles.meta import MetaError, complete_meta, parse_meta
from leadline.profiles.npy import NpyError, read_column
from leadline.profiles.profile import Profile
from leadline.profiles.tables import Array, Columns, Tables, empty_columns
from leadline.profiles.tried import tried_beside
from leadline.schema import Table


def open_profile(path: str | os.PathLike[str], limits: Limits | None = None, *, with_events: bool = True) -> Profile:
    """The profile in a `.leadline` file of this or any older format; without the events of its trace window where
    nobody will ask for them.

    Raises ProfileFileError, with one sentence, when the file is missing, cut off, changed, of a newer format, or not a
    profile. Memory is bounded by `limits` (4 GiB of contents, and 300 times the file's size, unless told otherwise).
    """
    with _opened(path, limits) as (archive, meta, format):
        raw = upgraded(RawProfile(_read_columns(archive, format.tables, with_events), meta), format.version)
        profile = Profile(_checked(archive.name, raw.columns), complete_meta(raw.meta))
        profile.tried = tried_beside(Path(path), profile.meta)
        return profile


def open_head(path: str | os.PathLike[str], limits: Limits | None = None) -> tuple[dict[str, Any], Columns]:
    """meta.json and the table of processes, whose references are not checked: enough to tell whose file it is. Raises
    ProfileFileError as `open_profile` does."""
    with _opened(path, limits) as (archive, meta, format):
        columns = _read_columns(archive, {"processes": format.tables["processes"]})["processes"]
        if len({len(values) for values in columns.values()}) > 1:
            raise ProfileFileError(
                f"{archive.name} cannot be read: the columns of its table processes differ in length."
            )
        return complete_meta(meta), columns


def open_segment(
    path: str | os.PathLike[str],
    limits: Limits | None = None,
    events: str | os.PathLike[str] | None = None,
) -> Tables:
    """The tables of one process as its writer left them; raises ProfileFileError.

    `events`: the file beside the segment that holds the events of a trace window. It is not looked at where the segment
    has events of its own. The process may go on writing: what the events name stands in every later segment."""
    tables = FORMATS[-1].tables
    beside: dict[str, Array] | None = None
    if events is not None:  # before the segment, so that the segment is the later one
        with open_archive(events, limits or Limits()) as archive:
            beside = _read_columns(archive, {"events": tables["events"]})["events"]
    with open_archive(path, limits or Limits()) as archive:
        columns = _read_columns(archive, tables)
        own = any(f"events.{column.name}.npy" in archive for column in tables["events"].columns)
        if beside is not None and not own:
            columns["events"] = beside
        return _checked(archive.name, columns)


@contextmanager
def _opened(path: str | os.PathLike[str], limits: Limits | None) -> Iterator[tuple[Archive, dict[str, Any], Format]]:
    """The file, its meta.json and its format; a fault of meta.json, also found later, is a ProfileFileError."""
    with open_archive(path, limits or Limits()) as archive:
        if "meta.json" not in archive:
            raise ProfileFileError(f"{archive.name} is a ZIP archive but not a Leadline profile: it has no meta.json.")
        try:
            meta = parse_meta(archive.read("meta.json", archive.limits.meta_bytes))
            yield archive, meta, _format_of(archive.name, meta, FORMATS)
        except MetaError as error:
            raise ProfileFileError(f"{archive.name} cannot be read: its part meta.json {error}.") from None


def _format_of(name: str, meta: dict[str, Any], formats: Sequence[Format]) -> Format:
    stated = meta.get("format")
    version = stated.get("version") if isinstance(stated, dict) and stated.get("name") == "leadline" else None
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ProfileFileError(f"{name} is not a Leadline profile: its meta.json does not say format leadline.")
    newest = formats[-1].version
    if version > newest:
        release = meta.get("leadline")
        known = isinstance(release, str) and release != ""
        by = f"leadline {printable(str(release), 30)}" if known else "a newer leadline"
        raise ProfileFileError(
            f"{name} is of format {version}, written by {by}; this is leadline {__version__}, which reads formats up "
            f"to {newest}: install {by + ' or later' if known else by} to read it."
        )
    return next(one for one in formats if one.version == version)


def _read_columns(
    archive: Archive, tables: Mapping[str, Table], with_events: bool = True
) -> dict[str, dict[str, Array]]:
    wanted = {f"{name}.{column.name}.npy": (name, column) for name, table in tables.items() for column in table.columns}
    columns: dict[str, dict[str, Array]] = {name: {} for name in tables}
    absent = {
        name
        for name, table in tables.items()
        if table.optional
        and (
            (name == "events" and not with_events)
            or not any(f"{name}.{column.name}.npy" in archive for column in table.columns)
        )
    }
    for member, (table_name, column) in wanted.items():
        if table_name in absent:
            continue
        if member not in archive:
            raise ProfileFileError(f"{archive.name} cannot be read: its part {member} is missing.")
        with archive.member(member) as (stream, size):
            try:
                columns[table_name][column.name] = read_column(stream, size, column.dtype)
            except NpyError as error:
                raise ProfileFileError(f"{archive.name} cannot be read: its part {member} {error}.") from None
    for table_name in absent:
        columns[table_name] = empty_columns(table_name)
    return columns


def _checked(name: str, columns: Mapping[str, Mapping[str, Array]]) -> Tables:
    try:
        return check_tables(columns)
    except TableError as error:
        raise ProfileFileError(f"{name} cannot be read: {error}.") from None
