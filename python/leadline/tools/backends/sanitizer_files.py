"""Where the Compute Sanitizer's library and the text for the device are. Loads nothing, changes nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from leadline.tools import device_text

LIBRARY = "libsanitizer-public.so"
LIBRARY_VARIABLE = "LEADLINE_SANITIZER_LIBRARY"
"""Environment: the library itself, where it is in none of the places that are looked at."""
TEXT_VARIABLE = "LEADLINE_SANITIZER_TEXT"
"""Environment: a file with the text for the device, compiled (a fatbin), instead of compiling it here."""
_IN_WHEELS = {
    13: ("cu13/compute-sanitizer", "cu13/lib"),  # 13.5; 13.0 to 13.4
    12: ("cuda_sanitizer_api/lib",),
}
_TOOLKIT = ("compute-sanitizer", "extras/Sanitizer")
_INJECTION_VARIABLE = "CUDA_INJECTION64_PATH"
"""Environment: the library that the driver asks for a tool, as Nsight and others set it for the programs they start."""
_OUR_INJECTION = "libleadline_inject.so"
_DEVICES = (Path("/dev/nvidiactl"), Path("/dev/dxg"))


def cuda_major() -> int:
    """Of the program's torch, where it is imported and made for CUDA; else 13."""
    cuda = str(getattr(getattr(sys.modules.get("torch"), "version", None), "cuda", None) or "")
    return 12 if cuda.startswith("12") else 13


def library_candidates() -> Iterator[str]:
    """Where the library is, best first: named, the wheel for torch's CUDA, the other wheel, the toolkit."""
    named = os.environ.get(LIBRARY_VARIABLE)
    if named:
        yield named
        return
    for major in sorted(_IN_WHEELS, key=lambda one: one != cuda_major()):
        for folder in _IN_WHEELS[major]:
            for place in sys.path:
                path = Path(place) / "nvidia" / folder / LIBRARY
                if path.is_file():
                    yield str(path)
    toolkits = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    for toolkit in filter(None, toolkits):
        for folder in _TOOLKIT:
            path = Path(toolkit) / folder / LIBRARY
            if path.is_file():
                yield str(path)


def named_text() -> Path | None:
    """The compiled text that the environment names."""
    named = os.environ.get(TEXT_VARIABLE)
    return Path(named) if named else None


def architectures() -> tuple[int, ...]:
    """Of this machine's GPUs, as nvidia-smi says (90: compute capability 9.0); empty where it does not."""
    command = ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    found = (line.strip().replace(".", "") for line in done.stdout.splitlines())
    return tuple(sorted({int(one) for one in found if one.isdecimal()}))


def why_not() -> str:
    """Why launches cannot be measured here, or empty."""
    other = os.environ.get(_INJECTION_VARIABLE, "")
    if other and Path(other).name not in (LIBRARY, _OUR_INJECTION):
        return (
            f"another tool measures this program's GPU already ({_INJECTION_VARIABLE} names {other}), with which the "
            f"Compute Sanitizer cannot share a process; run without it, or unset {_INJECTION_VARIABLE}"
        )
    candidates = list(library_candidates())
    if not candidates:
        package = "nvidia-cuda-sanitizer-api-cu12" if cuda_major() == 12 else "nvidia-cuda-sanitizer-api"
        return f"there is no {LIBRARY}; `pip install {package}` brings it"
    if not os.environ.get(LIBRARY_VARIABLE) and not any(path.exists() for path in _DEVICES):
        return "this machine shows no NVIDIA GPU (no /dev/nvidiactl)"
    return "" if named_text() is not None else device_text.why_not()
