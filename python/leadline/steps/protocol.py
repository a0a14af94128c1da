"""What an event table must offer so that its steps can be found; `leadline.trace.tables.Trace` is one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from leadline.schema import EventKind as Kind


class Events(Protocol):
    """An event table, as `leadline.trace.tables.Trace` is one."""

    @property
    def events(self) -> Mapping[str, NDArray[Any]]: ...
    @property
    def strings(self) -> Sequence[str]: ...
    @property
    def facts(self) -> Mapping[str, Any]: ...
    @property
    def end_ns(self) -> NDArray[np.int64]: ...
    def of_kind(self, *kinds: Kind) -> NDArray[np.int64]: ...
    def name(self, row: int) -> str: ...
