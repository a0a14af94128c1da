"""Writes a profile as one file: a ZIP of `.npy` columns and meta.json, put in its place by an atomic rename.

The same tables and meta give the same bytes. The native writer makes segments; this makes what a person keeps.
"""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path

import numpy as np

from leadline import _package
from leadline.profiles.errors import ProfileFileError
from leadline.profiles.profile import Profile
from leadline.profiles.tables import Array, Tables
from leadline.schema import TABLES


def write_profile(path: str | os.PathLike[str], profile: Profile, *, force: bool = False) -> None:
    """Makes the file at `path`, or replaces the profile there (with `force` any file). Raises ProfileFileError; the old
    file, if any, is then untouched."""
    try:
        _package.write_package(
            Path(path), profile.meta, lambda archive: add_columns(archive, profile.tables), force=force
        )
    except _package.PackageError as error:
        raise ProfileFileError(str(error)) from error


def add_columns(archive: zipfile.ZipFile, tables: Tables) -> None:
    """The columns of every table that has rows or may not be absent, as members of an open archive."""
    for name, table in TABLES.items():
        if table.optional and not tables.rows(name):
            continue
        for column in table.columns:
            info = zipfile.ZipInfo(f"{name}.{column.name}.npy")  # its fixed date: no clock in the bytes
            info.compress_type = archive.compression
            archive.writestr(info, npy_bytes(tables[name][column.name], column.dtype))


def npy_bytes(values: Array, dtype: str) -> bytes:
    """A 1-D array as the contents of an `.npy` file of that type."""
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.ascontiguousarray(values, dtype=dtype), version=(1, 0), allow_pickle=False)
    return buffer.getvalue()
