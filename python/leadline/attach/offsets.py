"""Where this version of Python keeps its threads, found in the interpreter that runs this code.

The lists of interpreters and threads are internal, so no header says where they are. Here their values are known (the
C API gives them), so the places that hold them are looked for in this process's own memory, once.
"""

from __future__ import annotations

import ctypes
import functools
import struct
import threading
from collections.abc import Mapping

from leadline._dataclass import dataclass

_RUNTIME_BYTES = 1 << 16
_INTERPRETER_BYTES = 1 << 14
_MOST_THREADS = 1 << 14
_THREAD_BYTES = 1 << 10
_PTHREAD_BYTES = 1 << 11


class LayoutError(Exception):
    """This interpreter is not understood; one sentence."""


@dataclass(frozen=True)
class Offsets:
    """Bytes from the beginning of: `_PyRuntime` (`interpreter`), an interpreter (`first_thread`), a thread's state
    (`next_thread`, `ident`), and the C library's description of a thread (`tid`). `frames`: see `frame_layout` of the
    native module."""

    interpreter: int
    first_thread: int
    next_thread: int
    ident: int
    tid: int
    frames: Mapping[str, int]


def find_offsets() -> Offsets:
    """Raises LayoutError."""
    frames = frame_layout()
    release = threading.Event()
    began = threading.Event()

    def wait() -> None:
        began.set()
        release.wait()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    began.wait()
    try:
        return _find(frames, thread)
    finally:
        release.set()
        thread.join()


@functools.cache
def frame_layout() -> Mapping[str, int]:
    """Offsets of frames, code and texts in this version of Python. Raises LayoutError."""
    from leadline import _native

    found = _native.frame_layout()
    if found is None:
        raise LayoutError("The frames of this version of Python are not understood (free-threaded or newer).")
    return dict(found)


def _find(frames: Mapping[str, int], other: threading.Thread) -> Offsets:
    """With a second thread there, the first of the list is not the only one, so no place is taken for another. There
    may be more, whose places in the list are anywhere."""
    api = ctypes.pythonapi
    interpreter = _pointer(api.PyInterpreterState_Main)()
    states: list[int] = []
    state = _pointer(api.PyInterpreterState_ThreadHead, ctypes.c_void_p)(interpreter)
    while state and len(states) < _MOST_THREADS:
        states.append(state)
        state = _pointer(api.PyThreadState_Next, ctypes.c_void_p)(state)
    runtime = ctypes.addressof(ctypes.c_char.in_dll(api, "_PyRuntime"))
    if not interpreter or len(states) < 2 or other.ident is None or other.native_id is None:
        raise LayoutError("This interpreter does not say where its threads are.")
    idents = {other.ident, threading.get_ident()}
    ident = next(
        (at for at in range(0, _THREAD_BYTES, 8) if idents <= {_word(state + at) for state in states}),
        -1,
    )
    if ident < 0:
        raise LayoutError("This interpreter keeps the identity of its threads in an unknown place.")
    return Offsets(
        interpreter=_place_of(interpreter, runtime, _RUNTIME_BYTES),
        first_thread=_place_of(states[0], interpreter, _INTERPRETER_BYTES),
        next_thread=_place_of(states[1], states[0], _THREAD_BYTES),
        ident=ident,
        tid=_place_of_tid(other.ident, other.native_id),
        frames=frames,
    )


def _pointer(function: object, *arguments: type) -> ctypes._NamedFuncPointer:
    function.restype = ctypes.c_void_p  # type: ignore[attr-defined]
    function.argtypes = list(arguments)  # type: ignore[attr-defined]
    return function  # type: ignore[return-value]


def _word(address: int) -> int:
    return int(struct.unpack("<Q", ctypes.string_at(address, 8))[0])


def _place_of(value: int, begin: int, size: int) -> int:
    for at in range(0, size, 8):
        if _word(begin + at) == value:
            return at
    raise LayoutError("This interpreter keeps its threads in an unknown place.")


def _place_of_tid(ident: int, tid: int) -> int:
    """Of the kernel's number in what `pthread_self()` points at."""
    for at in range(0, _PTHREAD_BYTES, 4):
        if struct.unpack("<i", ctypes.string_at(ident + at, 4))[0] == tid:
            return at
    raise LayoutError("This C library keeps the numbers of threads in an unknown place.")
