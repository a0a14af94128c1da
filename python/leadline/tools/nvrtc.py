"""NVRTC: NVIDIA's compiler as a library, found where torch for CUDA or a toolkit has put it."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

_NAMES = ("libnvrtc.so.13", "libnvrtc.so.12")
_OPTIONS = (
    "--std=c++17",
    "--relocatable-device-code=true",
    "--device-as-default-execution-space",
)


class Nvrtc:
    """One library. A program is compiled on a thread of its own: NVRTC 12.1 leaves the thread that calls it in the
    locale "C", in which Python opens files as ASCII."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library: Any = library
        major, minor = ctypes.c_int(), ctypes.c_int()
        library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        self.version = f"{major.value}.{minor.value}"
        count = ctypes.c_int()
        library.nvrtcGetNumSupportedArchs(ctypes.byref(count))
        known = (ctypes.c_int * max(count.value, 1))()
        library.nvrtcGetSupportedArchs(known)
        self.architectures = frozenset(known)
        """Those that it compiles for, as 90 for compute capability 9.0."""

    def ptx(self, source: str, architecture: int) -> tuple[str | None, str]:
        """PTX, or None; and what the compiler said."""
        with ThreadPoolExecutor(1, "leadline-nvrtc") as thread:
            return thread.submit(self._ptx, source, architecture).result()

    def _ptx(self, source: str, architecture: int) -> tuple[str | None, str]:
        library = self._library
        program = ctypes.c_void_p()
        made = library.nvrtcCreateProgram(
            ctypes.byref(program), source.encode(), b"leadline", ctypes.c_int(0), None, None
        )
        if made != 0:
            return None, f"NVRTC answers {made}"
        try:
            words = [*_OPTIONS, f"--gpu-architecture=compute_{architecture}"]
            options = (ctypes.c_char_p * len(words))(*(word.encode() for word in words))
            failed = library.nvrtcCompileProgram(program, ctypes.c_int(len(words)), options)
            told = self._text("ProgramLog", program)
            return (None if failed else self._text("PTX", program)), told or f"NVRTC answers {failed}"
        finally:
            library.nvrtcDestroyProgram(ctypes.byref(program))

    def _text(self, what: str, program: ctypes.c_void_p) -> str:
        size = ctypes.c_size_t()
        getattr(self._library, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
        held = ctypes.create_string_buffer(size.value + 1)
        getattr(self._library, f"nvrtcGet{what}")(program, held)
        return held.value.decode(errors="replace")


def find_nvrtc(folders: Iterable[Path]) -> Nvrtc | None:
    """The library of a wheel in one of `folders` (site-packages), or the system's."""
    places = [
        place
        for folder in folders
        for pattern in ("*/lib/libnvrtc.so.*", "lib/libnvrtc.so.*")
        for place in sorted((folder / "nvidia").glob(pattern), reverse=True)
        if place.name in _NAMES
    ]
    for place in [*map(str, places), *_NAMES]:
        try:
            for builtins in sorted(Path(place).parent.glob("libnvrtc-builtins.so.*")) if "/" in place else ():
                ctypes.CDLL(str(builtins), ctypes.RTLD_GLOBAL)  # NVRTC asks for it by its bare name
            return Nvrtc(ctypes.CDLL(place))
        except (OSError, AttributeError):
            continue
    return None
