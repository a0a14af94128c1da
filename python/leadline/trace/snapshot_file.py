"""Torch's memory snapshots (`torch.cuda.memory._dump_snapshot`): what blocks there are at the end, and the history of
each device as columns. A file from someone else is data: reading it makes numbers, texts, lists and mappings only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass

DAMAGE = (EOFError, ValueError, IndexError, KeyError, AttributeError, TypeError, MemoryError)
"""What reading a damaged or a foreign file, and looking into it, may raise."""
LIVE = ("active_allocated", "active_awaiting_free", "active_pending_free")
"""States of blocks that are in use, or will be until the device is done."""
_PIECE_BYTES = 4 << 20
_SIGN = np.int64(-(1 << 63))

Ints = NDArray[np.int64]


class NotPlainError(ValueError):
    """It holds an object; the message names its class."""


@dataclass(frozen=True)
class Actions:
    """What one device's allocator did, in order. `action`: rows of `names`; `address`: less 2^63, so that all 64 bits
    fit; `time_us`: -1 where torch tells none; `stack`: for `SnapshotFile.frames`."""

    names: Mapping[str, int]
    action: NDArray[np.int32]
    address: Ints
    size: Ints
    time_us: Ints
    stack: NDArray[np.int32]

    def are(self, *names: str) -> NDArray[np.bool_]:
        """Which actions have one of these names."""
        return np.isin(self.action, [self.names[name] for name in names if name in self.names])


class SnapshotFile:
    """Raises NotPlainError, and what `DAMAGE` names."""

    def __init__(self, stream: BinaryIO) -> None:
        from leadline import _snapshot

        try:
            self._read = _snapshot.Snapshot(partial(stream.read, _PIECE_BYTES))
        except _snapshot.ObjectInPickle as error:
            raise NotPlainError(f"it holds a {error}, which no snapshot does") from None
        content = self._read.content()
        if not isinstance(content, dict) or not isinstance(content.get("segments"), list):
            raise ValueError("it has no segments")
        self.segments: Sequence[Mapping[str, Any]] = content["segments"]
        self.traces = [self._actions(one) for one in content.get("device_traces") or []]

    def trace(self, device: int) -> Actions:
        """Of one device; empty where none was kept."""
        return self.traces[device] if device < len(self.traces) else self._actions(None)

    def frames(self, stack: int) -> Sequence[Mapping[str, Any]]:
        """The innermost first."""
        return self._read.items(stack)

    def _actions(self, columns: Any) -> Actions:
        if not columns:
            none = np.zeros(0, np.int64)
            return Actions({}, none.astype(np.int32), none, none, none, none.astype(np.int32))
        names = {self._read.text(row): row for row in np.unique(columns["action"]).tolist()}
        address = np.bitwise_xor(columns["address"], _SIGN)
        return Actions(names, columns["action"], address, columns["size"], columns["time_us"], columns["stack"])
