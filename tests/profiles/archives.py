"""Profiles taken apart into members and put together again, also wrongly: what hostile files are made of."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from typing import Any

import numpy as np

from leadline.profiles.build import build
from leadline.profiles.profile import Profile
from leadline.profiles.writer import npy_bytes
from leadline.schema import TABLES

Members = dict[str, bytes]


def sample() -> Profile:
    """A small profile with rows in every table."""
    return build(
        """
        process train.py | pid=7
          thread MainThread | tid=7 wall_ns=100 operator_ns=60
            python main @ train.py:3 | first_line=1
              module model.fc [Linear]
                operator aten::linear #linear | time=5,7 call_time=9,11 alloc_bytes=64
                  kernel sgemm | gpu_time@0:7=100,50 detail={"grid":[1,2]}
            python main @ train.py:5
              operator aten::add | time=30/3
        """,
        losses=[("events_dropped", 3, "The trace window was full.")],
        events="""
        start_ns duration_ns kind     node   thread device stream
        10       9           operator linear 0      -1     -1
        20       5           kernel   linear -1     0      7
        """,
    )


def members_of(profile: Profile, *, meta: bool = True) -> Members:
    """The members of its file by name; without meta.json, of a segment."""
    members = {"meta.json": json.dumps(profile.meta).encode()} if meta else {}
    for name, table in TABLES.items():
        for column in table.columns:
            members[f"{name}.{column.name}.npy"] = npy_bytes(profile.table(name)[column.name], column.dtype)
    return members


def packed(members: Members, compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A ZIP of the members."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data, compression)
    return buffer.getvalue()


def column(values: Any, dtype: str) -> bytes:
    """An `.npy` member of any type, objects included."""
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.array(values, dtype=dtype), allow_pickle=True)
    return buffer.getvalue()


def with_header(header: str, data: bytes) -> bytes:
    """An `.npy` member whose header says what it likes."""
    text = header.encode("latin-1")
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


def directory_entry(archive: bytes, name: str) -> int:
    """Offset of a member's entry in the table of contents."""
    at = archive.index(b"PK\x01\x02")
    while archive[at + 46 : at + 46 + len(name)] != name.encode():
        at = archive.index(b"PK\x01\x02", at + 4)
    return at
