"""Memory of JAX's arrays by the call path that made each, as it was when the sum on their device was largest.

JAX keeps with every array the stack that made it, so nothing has to be hooked: the living arrays are summed up now and
then, and what was alive at the largest sum found on each device is put in at the end. Between two looks a peak can be
missed; what programs hold inside is in none of these sums.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from typing import Any

from leadline.capture.native import PLACE_THREAD, Native
from leadline.capture.providers.jax import devices as jax_devices
from leadline.capture.providers.jax import places as jax_places
from leadline.capture.providers.jax.devices import Place
from leadline.xla.parts import Frame

SOONEST_S = 0.02
BETWEEN_S = 1.0
"""From one look to the next; at first sooner, for programs that end soon."""
COST_SHARE = 0.005
"""A look may take this share of the time until the next."""

Stack = tuple[tuple[Any, int], ...]


class LiveArrays:
    """Looks at the arrays of this process when it is asked and due; `hidden`: folders whose frames are left out."""

    def __init__(self, native: Native, loss: Callable[[str], None]) -> None:
        self._native = native
        self._loss = loss
        self.next_s = 0.0
        """Before this time of `time.monotonic` no look is due."""
        self._between_s = SOONEST_S
        self._peak: dict[Place, int] = {}
        self._at_peak: dict[Place, dict[Stack, list[int]]] = {}
        self.hidden: tuple[str, ...] = ()

    def poll(self) -> None:
        """Sum up the living arrays, unless it was done just now."""
        if time.monotonic() >= self.next_s:
            self.poll_now()

    def poll_now(self) -> None:
        """Sum up the living arrays."""
        now_s = time.monotonic()
        live_arrays = jax_places.first("jax.live_arrays", "jax._src.api.live_arrays")
        if live_arrays is None or not jax_places.clients():
            return
        sums: dict[Place, dict[Stack, list[int]]] = {}
        for array in live_arrays():
            for place, held in _held(array):
                one = sums.setdefault(place, {}).setdefault(_stack(array), [0, 0])
                one[0] += 1
                one[1] += held
        for place, mine in sums.items():
            total = sum(held for _, held in mine.values())
            if total > self._peak.get(place, 0):
                self._peak[place], self._at_peak[place] = total, mine
        took_s = time.monotonic() - now_s
        self.next_s = time.monotonic() + max(self._between_s, took_s / COST_SHARE)
        self._between_s = min(2 * self._between_s, BETWEEN_S)

    def book(self) -> None:
        """Put in what was alive at the peak, below the calling thread."""
        for (kind, index), sums in self._at_peak.items():
            for stack, (count, held) in sums.items():
                frames = [frame for code, instruction in stack if (frame := self._frame(code, instruction)) is not None]
                # What was alive was allocated there; what had gone by then is not known.
                totals = [(metric, count, held, 0, held, 0.0) for metric in ("alloc_bytes", "peak_live_bytes")]
                self._native.book(PLACE_THREAD, frames, totals, kind, index, -1)
        self._at_peak = {}

    def _frame(self, code: Any, instruction: int) -> Frame | None:
        file = str(code.co_filename)
        if file.startswith(self.hidden):
            return None
        name = str(getattr(code, "co_qualname", code.co_name))
        return ("python", name, "", file, "", _line(code, instruction), int(code.co_firstlineno), 0)


def _held(array: Any) -> Iterator[tuple[Place, int]]:
    """Where an array lies, and how many bytes there; nothing for one that was donated. Arrays that JAX keeps in pinned
    memory of the host are the host's."""
    if array.is_deleted():
        return
    sharding = array.sharding
    devices = sharding.addressable_devices
    is_hosts = "host" in str(getattr(sharding, "memory_kind", None) or "")
    try:
        held = math.prod(sharding.shard_shape(array.shape)) * array.dtype.itemsize
    except Exception:  # of a sharding that cuts unevenly
        held = int(array.nbytes) // max(len(sharding.device_set), 1)
    for device in devices:
        if held:
            yield jax_devices.CPU if is_hosts else jax_devices.place_of(device), int(held)


def _stack(array: Any) -> Stack:
    """Code and instruction of each frame, outermost first; empty for an array that does not know."""
    traceback = getattr(array, "traceback", None)
    if traceback is None:
        return ()
    codes, instructions = traceback.raw_frames()
    return tuple(zip(reversed(codes), reversed(instructions), strict=True))


def _line(code: Any, instruction: int) -> int:
    """The line that an instruction belongs to."""
    for start, end, line in code.co_lines():
        if start <= instruction < end and line is not None:
            return int(line)
    return int(code.co_firstlineno)
