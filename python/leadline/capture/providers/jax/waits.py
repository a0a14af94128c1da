"""Where a JAX program waits for the device, and where it copies NumPy data to it.

Programs are dispatched and run behind the program's back until somebody wants a value: `float(loss)`, `.item()`,
`numpy.asarray`, printing, `jax.block_until_ready`. All of these but the last go through one property of an array. What
they wait is booked as `sync_time`, and copies as `copy_bytes`, each below the line that asked. Promises: values and
errors come back as they are, and `uninstall` leaves JAX as it was found.
"""

from __future__ import annotations

import functools
import sys
import time
import zlib
from collections.abc import Callable
from typing import Any

from leadline.capture.native import Native
from leadline.capture.providers.booked import Booked
from leadline.capture.providers.jax import places as jax_places
from leadline.capture.providers.replaced import Replacements
from leadline.xla.parts import Frame

_ASKED = {
    "__float__": "float()",
    "__int__": "int()",
    "__bool__": "bool()",
    "__index__": "index()",
    "__complex__": "complex()",
    "__array__": "numpy.asarray()",
    "__format__": "format()",
    "__repr__": "print()",
    "__str__": "print()",
    "__iter__": "iteration",
}
"""What the program wrote, by the method of the array that it calls."""
_LEAST_BYTES = 4096
"""Of a copy to the device; numbers by themselves are copied everywhere."""
_ENDS = 2048
"""Bytes of each end of an array by which it is told from the one before."""
COPY = "NumPy array to the device"


class Waits:
    """One per session."""

    def __init__(self, native: Native, loss: Callable[[str], None]) -> None:
        self._native = native
        self._loss = loss
        self._booked = Booked(native)
        self._replaced = Replacements()
        self._copied: dict[tuple[int, int], int] = {}
        """Sum of the array copied last at each place, by its size."""

    def install(self) -> None:
        """What this release of JAX does not have is left out."""
        array = jax_places.member("jax._src.array.ArrayImpl")
        value = vars(array).get("_value") if isinstance(array, type) else None
        if isinstance(value, property) and value.fget is not None:
            self._replaced.attribute(array, "_value", property(self._read(value.fget)))
        for name in ("item", "block_until_ready"):
            method = vars(array).get(name) if isinstance(array, type) else None
            if method is not None:
                self._replaced.attribute(array, name, self._called(f".{name}()", method))
        api = jax_places.member("jax._src.api")
        block = getattr(api, "block_until_ready", None)
        if block is not None:
            self._replaced.everywhere("block_until_ready", block, self._blocked(block))
        pxla = jax_places.member("jax._src.interpreters.pxla")
        put = getattr(pxla, "batched_device_put", None)
        if put is not None:
            self._replaced.attribute(pxla, "batched_device_put", self._put(put))

    def uninstall(self) -> None:
        """Undo `install`."""
        self._replaced.undo()

    def _read(self, original: Callable[[Any], Any]) -> Callable[[Any], Any]:
        @functools.wraps(original)
        def value(array: Any) -> Any:
            if getattr(array, "_npy_value", None) is not None:
                return original(array)
            begin_ns = time.monotonic_ns()
            try:
                return original(array)
            finally:
                asked = sys._getframe(1)
                if not str(asked.f_globals.get("__name__", "")).startswith("leadline."):
                    name = asked.f_code.co_name
                    self._waited(_ASKED.get(name) or f".{name}()", time.monotonic_ns() - begin_ns)

        return value

    def _called(self, asked: str, original: Callable[..., Any]) -> Callable[..., Any]:
        """A method of arrays; called by JAX itself it is part of a wait that is known."""

        def method(array: Any, *arguments: Any) -> Any:
            begin_ns = time.monotonic_ns()
            try:
                return original(array, *arguments)
            finally:
                by = str(sys._getframe(1).f_globals.get("__name__", ""))
                if not by.startswith(("leadline.", "jax.")):
                    self._waited(asked, time.monotonic_ns() - begin_ns)

        return functools.update_wrapper(method, original, assigned=("__name__", "__doc__"), updated=())

    def _blocked(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def block_until_ready(*arguments: Any, **named: Any) -> Any:
            begin_ns = time.monotonic_ns()
            try:
                return original(*arguments, **named)
            finally:
                self._waited("jax.block_until_ready", time.monotonic_ns() - begin_ns)

        return block_until_ready

    def _put(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def batched_device_put(aval: Any, sharding: Any, xs: Any, *arguments: Any, **named: Any) -> Any:
            begin_ns = time.monotonic_ns()
            try:
                return original(aval, sharding, xs, *arguments, **named)
            finally:
                self._copied_to_device(xs, time.monotonic_ns() - begin_ns)

        return batched_device_put

    def _waited(self, asked: str, ns: int) -> None:
        try:
            self._book(("operator", asked, "", "", "", 0, 0, 0), [("sync_time", ns)])
        except Exception as error:
            self._loss(f"A wait for JAX's devices could not be recorded ({error!r}).")

    def given(self, arrays: list[Any]) -> None:
        """NumPy arrays that a program was given, which its call has copied."""
        if arrays:
            self._note(arrays, [])

    def _copied_to_device(self, arrays: Any, ns: int) -> None:
        try:
            copied = [one for one in map(_numpy, arrays) if one is not None and one.nbytes >= _LEAST_BYTES]
            if copied:
                self._note(copied, [("time", ns), ("call_time", ns)])
        except Exception as error:
            self._loss(f"A copy to JAX's devices could not be recorded ({error!r}).")

    def _note(self, arrays: list[Any], times: list[tuple[str, int]]) -> None:
        place = self._native.place()
        again = [self._is_same(place, one) for one in arrays]
        detail = '{"again": true}' if all(again) else ""
        size = sum(int(one.nbytes) for one in arrays)
        self._book(("operator", COPY, "", "", detail, 0, 0, 0), [*times, ("copy_bytes", size)])

    def _is_same(self, place: int, array: Any) -> bool:
        """Whether the ends of an array are what they were when one of its size was copied here before."""
        if not array.flags.c_contiguous:
            return False
        data = memoryview(array).cast("B")
        ends = zlib.crc32(data[-_ENDS:], zlib.crc32(data[:_ENDS]))
        key = (place, int(array.nbytes))
        same = self._copied.get(key) == ends
        if len(self._copied) < 10_000 or key in self._copied:
            self._copied[key] = ends
        return same

    def _book(self, frame: Frame, values: list[tuple[str, int]]) -> None:
        place = self._native.place()
        if place:
            self._booked.put(place, (frame,), [(metric, 1, value, value, value, 0.0) for metric, value in values])


def _numpy(array: Any) -> Any:
    """The NumPy array that is given, or None; JAX wraps some with a type of its own."""
    array = getattr(array, "val", array)
    return array if type(array).__module__ == "numpy" else None
