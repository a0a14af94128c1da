"""Fields of the kernel's events as its `format` files state them: releases differ in offsets and types."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass
from leadline.trace.kernel.columns import texts
from leadline.trace.tables import TraceError

_ID = re.compile(r"^ID: (\d+)$", re.MULTILINE)
_FIELD = re.compile(
    r"field:(?P<what>[^;]+);\s*offset:(?P<offset>\d+);\s*size:(?P<size>\d+);\s*signed:(?P<signed>[01]);"
)
_NAME = re.compile(r"(\w+)(\[\w*\])?$")
_MOST_TEXT = 256


@dataclass(frozen=True)
class Field:
    """Where a field lies in a record. `located`: it holds offset and length of text elsewhere in the record."""

    offset: int
    size: int
    signed: bool
    located: bool


@dataclass(frozen=True)
class Format:
    """An event's number and its fields."""

    number: int
    fields: dict[str, Field]

    def integers(self, data: NDArray[np.uint8], at: NDArray[np.int64], name: str) -> NDArray[np.int64]:
        """A field of the records that begin at `at`. Raises TraceError where the event has no such field."""
        field = self._field(name)
        raw = data[at[:, None] + np.arange(field.offset, field.offset + field.size)]
        kind = "i" if field.signed else "u"
        return np.ascontiguousarray(raw).view(f"<{kind}{field.size}").ravel().astype(np.int64)

    def texts(self, data: NDArray[np.uint8], at: NDArray[np.int64], name: str) -> NDArray[np.object_]:
        """A text of the records that begin at `at`. Raises TraceError."""
        field = self._field(name)
        if not field.located:
            return texts(data[at[:, None] + np.arange(field.offset, field.offset + field.size)])
        place = self.integers(data, at, name)
        begin, length = at + (place & 0xFFFF), np.minimum(place >> 16, _MOST_TEXT)
        width = int(length.max(initial=1))
        inside = np.arange(width)
        reach = np.minimum(begin[:, None] + inside, data.size - 1)
        return texts(np.where(inside < length[:, None], data[reach], 0).astype(np.uint8))

    def _field(self, name: str) -> Field:
        found = self.fields.get(name)
        if found is None:
            raise TraceError(f"the kernel's event {self.number} has no field {name}")
        return found


def parse_format(text: str) -> Format:
    """A `format` file; raises TraceError."""
    number = _ID.search(text)
    if number is None:
        raise TraceError("a format file of the kernel has no ID")
    fields = {}
    for found in _FIELD.finditer(text):
        what = found["what"]
        if name := _NAME.search(what):
            fields[name[1]] = Field(
                int(found["offset"]), int(found["size"]), found["signed"] == "1", "__data_loc" in what
            )
    return Format(int(number[1]), fields)
