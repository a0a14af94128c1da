"""The schema as plain data, read from leadline.toml and checked: every name, type and reference is valid."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# type in the TOML file: (C++ type, NumPy dtype, TypeScript array; 64-bit integers are read as doubles there)
TYPES = {
    "u8": ("std::uint8_t", "|u1", "Uint8Array"),
    "i16": ("std::int16_t", "<i2", "Int16Array"),
    "u32": ("std::uint32_t", "<u4", "Uint32Array"),
    "i32": ("std::int32_t", "<i4", "Int32Array"),
    "u64": ("std::uint64_t", "<u8", "Float64Array"),
    "i64": ("std::int64_t", "<i8", "Float64Array"),
    "f64": ("double", "<f8", "Float64Array"),
}
NAME = re.compile(r"[a-z][a-z0-9_]*")


class SchemaError(ValueError):
    """The TOML file says something that cannot be generated."""


@dataclass(frozen=True)
class Column:
    name: str
    type: str
    ref: str
    doc: str


@dataclass(frozen=True)
class Table:
    name: str
    doc: str
    optional: bool
    columns: tuple[Column, ...]


@dataclass(frozen=True)
class Enum:
    """A closed list; the number of a value is its position. `docs` is empty or has one sentence per value."""

    name: str
    values: tuple[str, ...]
    docs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Metric:
    """`formerly` is the name of an earlier release, which must still be understood, or empty."""

    name: str
    unit: str
    additive: bool
    doc: str
    formerly: str = ""


@dataclass(frozen=True)
class Stall:
    """A vendor's reason why an instruction was not issued; `group` is the name of a stall group."""

    vendor: str
    name: str
    group: str
    doc: str


@dataclass(frozen=True)
class MakersWord:
    """What a maker of devices calls that which NVIDIA's word, a regular expression, stands for."""

    vendor: str
    pattern: str
    word: str


@dataclass(frozen=True)
class Schema:
    format_version: int
    tables: tuple[Table, ...]
    enums: tuple[Enum, ...]  # FrameKind, EventKind, then MetricKind and LossKind
    metrics: tuple[Metric, ...]
    stall_groups: Enum
    stalls: tuple[Stall, ...]
    makers_words: tuple[MakersWord, ...]

    def words_of(self, vendor: str) -> list[MakersWord]:
        """In the order in which they are put in."""
        return [one for one in self.makers_words if one.vendor == vendor]

    @property
    def makers(self) -> list[str]:
        """Makers that have their own words."""
        return sorted({one.vendor for one in self.makers_words})


def read_toml(path: Path) -> dict[str, Any]:
    """A TOML file, unchanged."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


def load(path: Path) -> Schema:
    """Read and check the schema. Raises SchemaError with one sentence."""
    raw = read_toml(path)
    tables = tuple(
        Table(
            name=table["name"],
            doc=table["doc"],
            optional=table.get("optional", False),
            columns=tuple(Column(c["name"], c["type"], c.get("ref", ""), c["doc"]) for c in table["columns"]),
        )
        for table in raw["table"]
    )
    metrics = tuple(Metric(m["name"], m["unit"], m["additive"], m["doc"], m.get("formerly", "")) for m in raw["metric"])
    losses = raw["loss"]
    enums = (
        *(Enum(e["name"], tuple(e["values"])) for e in raw["enum"]),
        Enum("MetricKind", tuple(m.name for m in metrics), tuple(m.doc for m in metrics)),
        Enum("LossKind", tuple(x["name"] for x in losses), tuple(x["doc"] for x in losses)),
    )
    _check(tables, enums)
    _unique("name of a metric, former ones included,", [n for m in metrics for n in (m.name, m.formerly) if n])
    groups = raw["stall_group"]
    stall_groups = Enum("StallGroup", tuple(g["name"] for g in groups), tuple(g["doc"] for g in groups))
    stalls = tuple(Stall(s["vendor"], s["name"], s["group"], s["doc"]) for s in raw["stall"])
    _check_stalls(stall_groups, stalls)
    words = tuple(MakersWord(w["vendor"], w["pattern"], w["word"]) for w in raw["makers_word"])
    return Schema(raw["format_version"], tables, enums, metrics, stall_groups, stalls, words)


def _check(tables: tuple[Table, ...], enums: tuple[Enum, ...]) -> None:
    _unique("table", [t.name for t in tables])
    known = {t.name for t in tables}
    for table in tables:
        _unique(f"column of {table.name}", [c.name for c in table.columns])
        for column in table.columns:
            if column.type not in TYPES:
                raise SchemaError(f"{table.name}.{column.name} has the unknown type {column.type!r}")
            if column.ref and column.ref not in known:
                raise SchemaError(f"{table.name}.{column.name} refers to the unknown table {column.ref!r}")
    for enum in enums:
        _unique(f"value of {enum.name}", list(enum.values))
        if len(enum.values) > 256:
            raise SchemaError(f"{enum.name} has more than 256 values, which a u8 column cannot hold")


def _check_stalls(groups: Enum, stalls: tuple[Stall, ...]) -> None:
    _unique("stall group", list(groups.values))
    _unique("stall reason of any vendor,", [s.name for s in stalls])  # frames hold the name without the vendor
    for stall in stalls:
        if stall.group not in groups.values:
            raise SchemaError(f"the stall reason {stall.name!r} is in the unknown group {stall.group!r}")


def _unique(what: str, names: list[str]) -> None:
    for name in names:
        if not NAME.fullmatch(name):
            raise SchemaError(f"the {what} {name!r} is not a lower-case name")
        if names.count(name) > 1:
            raise SchemaError(f"the {what} {name!r} stands there twice")
