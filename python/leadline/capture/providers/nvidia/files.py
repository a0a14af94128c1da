"""Where NVIDIA's libraries and ours are, and what a program's environment must name. Loads nothing, changes nothing."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path

NVTX_VARIABLE = "NVTX_INJECTION64_PATH"
"""Environment: the library that NVTX asks for a tool, at a program's first NVTX call."""
CUDA_VARIABLE = "CUDA_INJECTION64_PATH"
"""Environment: the library that the driver asks for a tool, in a program's first cuInit."""
INJECT_LIBRARY = "libleadline_inject.so"
"""File name of the library that NVTX and the driver are given."""
VISIBLE_VARIABLE = "CUDA_VISIBLE_DEVICES"
"""Environment: the devices that the driver shows to a program."""
_DEVICE_FILES = (Path("/dev/nvidiactl"), Path("/dev/dxg"))
"""One of them is there where the driver is: Linux, and Linux under Windows."""


def no_gpu_sentence() -> str:
    """Why a program that was made for a GPU has not used one; empty where it could have, or was not made for one."""
    torch = sys.modules.get("torch")
    for_cuda = getattr(getattr(torch, "version", None), "cuda", None) is not None
    if not for_cuda and not driver_loaded():
        return ""
    if os.environ.get(VISIBLE_VARIABLE) == "":
        return f"{VISIBLE_VARIABLE} is empty, which hides every GPU, so no GPU work was measured; unset it to use one."
    if any(path.exists() for path in _DEVICE_FILES):
        return ""
    return (
        "The program is built for CUDA, but this machine has no visible NVIDIA GPU and driver (no /dev/nvidiactl), so "
        "no "
        "GPU work was measured; if this machine has a GPU, check whether `nvidia-smi` works."
    )


def driver_loaded() -> bool:
    """Whether this process has NVIDIA's driver library; reads /proc, loads nothing."""
    try:
        return "/libcuda.so" in Path("/proc/self/maps").read_text()
    except OSError:
        return False


def cupti_candidates() -> Iterator[str]:
    """Where CUPTI may be, best first: the wheel of torch's CUDA, the other, the toolkit, the loader's own paths."""
    torch = sys.modules.get("torch")
    cuda = str(getattr(getattr(torch, "version", None), "cuda", "") or "")
    majors = sorted((13, 12), key=lambda major: not cuda.startswith(str(major)))
    for major in majors:
        folder = "cu13" if major == 13 else "cuda_cupti"
        for place in sys.path:
            path = Path(place) / "nvidia" / folder / "lib" / f"libcupti.so.{major}"
            if path.exists():
                yield str(path)
    toolkits = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    for toolkit in filter(None, toolkits):
        for folder in ("extras/CUPTI/lib64", "lib64"):
            for major in majors:
                path = Path(toolkit) / folder / f"libcupti.so.{major}"
                if path.exists():
                    yield str(path)
    yield from (f"libcupti.so.{major}" for major in majors)


def inject_library() -> Path | None:
    """The file that NVTX_VARIABLE and CUDA_VARIABLE must name; None where this installation has none."""
    # Beside the native module, which an editable installation keeps apart from the Python files.
    native = importlib.util.find_spec("leadline._native")
    path = Path(native.origin).resolve().parent / INJECT_LIBRARY if native is not None and native.origin else None
    return path if path is not None and path.exists() else None


def injection_environment(environment: dict[str, str]) -> dict[str, str]:
    """What a launcher adds to a program's environment so that NVTX ranges and the start of CUDA are seen.

    What the user has set stays: it names another tool.
    """
    library = inject_library()
    if library is None:
        return {}
    return {name: str(library) for name in (NVTX_VARIABLE, CUDA_VARIABLE) if not environment.get(name)}
