"""A compiler that makes code whose memory accesses are counted, and the library that counts them.

GCC and clang call a function at each access of code compiled with `-fsanitize=thread`. The functions called here are
those of `libleadline_accesses.so` (native/accesses), not a sanitizer's. Kernels made so go to a folder of their own: a
run without tools never meets them.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.tools.errors import ToolError
from leadline.tools.installed import ACCESSES, installed, why_missing

MOST_SPANS = 256
RESULT = np.dtype(
    [
        (name, "<u8")
        for name in (
            "read_bytes",
            "written_bytes",
            "loads",
            "stores",
            "read_distinct",
            "written_distinct",
            "distinct",
            "first",
            "end",
        )
    ]
)
"""SpanResult of native/accesses/counts.h."""


class Counter:
    """The library, which counts one launch at a time. Its functions keep the GIL."""

    def __init__(self, path: Path) -> None:
        library = ctypes.PyDLL(str(path))
        self._begin: Any = library.ll_accesses_begin
        self._begin.restype = ctypes.c_int
        self._begin.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
        self._end: Any = library.ll_accesses_end
        self._end.restype = ctypes.c_uint64
        self._end.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)

    def begin(self, spans: NDArray[np.uint64]) -> bool:
        """Count from now on; `spans` has begin and end of each, ascending and apart. False: nothing will be counted."""
        return bool(self._begin(spans.ctypes.data, len(spans) // 2))

    def end(self, count: int, page_sizes: NDArray[np.uint64]) -> tuple[NDArray[Any], NDArray[np.uint64], int]:
        """What each of `count` spans has seen, its distinct pages by size, and the bytes outside of all."""
        results = np.zeros(count, RESULT)
        pages = np.zeros((count, len(page_sizes)), np.uint64)
        outside = self._end(results.ctypes.data, page_sizes.ctypes.data, len(page_sizes), pages.ctypes.data)
        return results, pages, int(outside)


@dataclass(frozen=True)
class Compiler:
    """`command`: what stands in for the C++ compiler; `cache`: where kernels made with it go."""

    command: Path
    cache: Path


def why_not() -> str:
    """Why accesses of compiled code cannot be counted here, or empty."""
    if missing := why_missing(ACCESSES):
        return missing
    if _real_compiler() is None:
        return "torch.compile needs a C++ compiler on the CPU and there is none; install g++ or set CXX"
    return ""


def make_compiler() -> Compiler:
    """A script that calls the machine's compiler so; raises ToolError."""
    real = _real_compiler()
    if real is None:
        raise ToolError(f"The backend inductor-cpu does not work here: {why_not()}.")
    library = installed(ACCESSES)
    header = library.with_name("leadline_accesses_masked.h")
    text = _SCRIPT.format(
        real=shlex.join(real),
        header=shlex.quote(str(header)),
        library=shlex.quote(str(library)),
        folder=shlex.quote(str(library.parent)),
    )
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "leadline" / "inductor"
    stamp = f"{text}{header.read_text()}{library.stat().st_size}"
    folder = base / hashlib.sha256(stamp.encode()).hexdigest()[:16]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        folder = Path(tempfile.mkdtemp(prefix="leadline-inductor-"))
    # Its name says what it is to whoever asks: Inductor takes flags by it.
    command = folder / ("clang++" if "clang" in real[0] else "g++")
    made = command.with_suffix(f".{os.getpid()}")
    made.write_text(text)
    made.chmod(0o755)
    made.replace(command)
    _try(command, folder)
    return Compiler(command, folder / "kernels")


def _try(command: Path, folder: Path) -> None:
    """Once for each compiler: a program must not fail for want of what its kernels are counted with."""
    passed = folder / "works"
    if passed.is_file():
        return
    made = folder / f"try.{os.getpid()}.so"
    source = made.with_suffix(".cpp")
    words = [str(command), "-O1", "-march=native", "-fPIC", "-shared", str(source), "-o", str(made)]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LEADLINE")}
    try:
        source.write_text(_TRIED)
        done = subprocess.run(words, capture_output=True, errors="replace", timeout=120, check=False, env=clean)
        told = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr)[:200]
        if done.returncode == 0:
            ctypes.CDLL(str(made)).add_up  # noqa: B018
            passed.touch()
            return
    except (OSError, AttributeError, subprocess.TimeoutExpired) as error:
        told = str(error)
    finally:
        made.unlink(missing_ok=True)
        source.unlink(missing_ok=True)
    raise ToolError(f"The backend inductor-cpu does not work here: this C++ compiler cannot count accesses: {told}.")


def _real_compiler() -> list[str] | None:
    named = os.environ.get("CXX", "")
    if named:
        words = shlex.split(named)
        return words if words and shutil.which(words[0]) else None
    found = shutil.which("g++") or shutil.which("clang++")
    return [found] if found else None


_TRIED = 'extern "C" float add_up(const float* x, int n) { float s = 0; while (n--) s += x[n]; return s; }\n'
_SCRIPT = """#!/bin/sh
# The C++ compiler, with every memory access of what it makes counted (leadline run --backend inductor-cpu).
case " $* " in
  *" -c "*|*" -E "*|*" -S "*) exec {real} -include {header} "$@" -fsanitize=thread ;;
  *" -o "*) exec {real} -include {header} "$@" -fsanitize=thread -nodefaultlibs {library} -Wl,-rpath,{folder} \\
    -Wl,--wrap=memcpy,--wrap=memmove,--wrap=memset -lstdc++ -lm -lgcc_s -lgcc -lpthread -lc ;;
  *) exec {real} "$@" ;;
esac
"""
