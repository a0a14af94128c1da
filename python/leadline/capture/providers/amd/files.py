"""Where ROCm's libraries and ours are, and what a program's environment must name. Loads nothing, changes nothing."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path

TOOL_VARIABLE = "ROCP_TOOL_LIBRARIES"
"""Environment: the libraries that rocprofiler-sdk asks for a tool while HIP starts, separated by colons."""
TOOL_LIBRARY = "libleadline_rocm.so"
"""File name of the library that rocprofiler-sdk is given."""
DRIVER_FILE = Path("/dev/kfd")
"""What a program opens to use an AMD GPU for computing."""
SDK_LIBRARY = "librocprofiler-sdk.so"
_MAJORS = ("1", "0")
"""Of the SDK's file name: ROCm 7, ROCm 6."""
OLDER_LIBRARY = "libroctracer64.so"
"""What ROCm had before the SDK."""
HSA_VARIABLE = "HSA_TOOLS_LIB"
"""Environment: the libraries that HSA loads while it starts, separated by spaces."""


def hip_torch() -> bool:
    """Whether the program has imported a torch that was built for ROCm."""
    return getattr(getattr(sys.modules.get("torch"), "version", None), "hip", None) is not None


def hip_loaded() -> bool:
    """Whether this process has the HIP runtime; reads /proc, loads nothing."""
    try:
        return "/libamdhip64.so" in Path("/proc/self/maps").read_text()
    except OSError:
        return False


def no_gpu_sentence() -> str:
    """Why a program made for an AMD GPU has not used one; empty where it could have, or was not made for one."""
    if not hip_torch() and not hip_loaded():
        return ""
    if not DRIVER_FILE.exists():
        return (
            f"The program is built for ROCm, but this machine has no AMD GPU driver ({DRIVER_FILE} is missing), so no "
            "GPU work was measured; if it has one, run `leadline doctor`."
        )
    if not os.access(DRIVER_FILE, os.R_OK | os.W_OK):
        return (
            f"This user may not open {DRIVER_FILE}, so the program could not use an AMD GPU; put the user into the "
            "groups `render` and `video`."
        )
    return ""


def sdk_candidates() -> Iterator[str]:
    """Where rocprofiler-sdk may be, best first: in torch, in ROCm's wheels, its installation, the loader's paths."""
    yield from _candidates(SDK_LIBRARY, _MAJORS)


def older_candidates() -> Iterator[str]:
    """The same of roctracer."""
    yield from _candidates(OLDER_LIBRARY, ("4",))


def _candidates(library: str, majors: tuple[str, ...]) -> Iterator[str]:
    names = [library, *(f"{library}.{major}" for major in majors)]
    for folder in _folders():
        for name in names:
            if (folder / name).exists():
                yield str(folder / name)
    yield from names[1:]


def _folders() -> Iterator[Path]:
    torch = importlib.util.find_spec("torch")
    if torch is not None and torch.origin:
        yield Path(torch.origin).parent / "lib"
    for place in sys.path:
        yield from (Path(place) / package / "lib" for package in ("_rocm_sdk_core", "_rocm_sdk_devel"))
    yield from (Path(root) / "lib" for root in (os.environ.get("ROCM_PATH"), "/opt/rocm") if root)
    yield from (Path(folder) for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":") if folder)


def tool_library() -> Path | None:
    """The file that TOOL_VARIABLE must name; None where this installation has none."""
    # Beside the native module, which an editable installation keeps apart from the Python files.
    native = importlib.util.find_spec("leadline._native")
    path = Path(native.origin).resolve().parent / TOOL_LIBRARY if native is not None and native.origin else None
    return path if path is not None and path.exists() else None


_WHOLE_SAMPLES = {"ROCPROFILER_PC_SAMPLING_USE_MULTI_RECORD": "0"}
"""Environment: newer releases of the SDK hand over samples of instructions in parts unless told otherwise."""


def tool_environment(environment: dict[str, str], *, samples: bool = False) -> dict[str, str]:
    """What a launcher adds to a program's environment so that rocprofiler-sdk asks for Leadline, or HSA loads it where
    there is only roctracer; other tools stay. `samples`: of instructions are wanted."""
    library = tool_library()
    if library is None:
        return {}
    wanted = {name: value for name, value in _WHOLE_SAMPLES.items() if samples and name not in environment}
    return {**_tools(environment, library), **_hsa_tools(environment, library), **wanted}


def _hsa_tools(environment: dict[str, str], library: Path) -> dict[str, str]:
    is_file = os.path.isabs
    if any(map(is_file, sdk_candidates())) or not any(map(is_file, older_candidates())):
        return {}
    named = environment.get(HSA_VARIABLE, "")
    return {} if TOOL_LIBRARY in named or " " in str(library) else {HSA_VARIABLE: f"{named} {library}".strip()}


def _tools(environment: dict[str, str], library: Path) -> dict[str, str]:
    named = [path for path in environment.get(TOOL_VARIABLE, "").split(":") if path]
    if any(Path(path).name == TOOL_LIBRARY for path in named):
        return {}
    # The SDK leaves out what stands behind the last colon of several names.
    return {TOOL_VARIABLE: str(library) if not named else ":".join([*named, str(library), ""])}
