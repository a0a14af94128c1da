"""The text that runs on an NVIDIA GPU, made into code where a program runs: nothing of it is shipped compiled.

Two ways, both without a network: `nvcc` of a toolkit or of NVIDIA's wheels (with the machine's C++ compiler), or NVRTC,
which torch for CUDA brings, and a `ptxas`, which Triton brings. What was made is kept in the user's cache folder.
The text itself is native/backends/device; a tool's `gpu` text comes among it.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from leadline.tools.errors import ToolError
from leadline.tools.installed import installed
from leadline.tools.nvrtc import Nvrtc, find_nvrtc

ARCHITECTURES = (75, 80, 90, 100, 120)
"""Code for one serves all newer ones with the same first digits; the last is there as PTX as well."""
PATCHES = {
    "leadline_exit": 2,
    "leadline_global": 3,
    "leadline_shared": 4,
    "leadline_local": 5,
    "leadline_barrier": 6,
    "leadline_syncwarp": 7,
    "leadline_memcpy_async": 14,
    "leadline_memcpy_async_filled": 14,
    "leadline_matrix": 19,
    "leadline_cluster_barrier": 21,
    "leadline_bulk_load": 30,
    "leadline_bulk_store": 35,
    "leadline_bulk_reduce": 37,
    "leadline_tma_load": 43,
}
"""What the code holds, and the vendor's number of the point that each is for: LEADLINE_DEVICE_PATCHES of tracker.h,
which says which of the two of point 14 a release of the library calls."""
_FILES = ("tracker.h", "lanes.h", "values.h", "stage.h", "instructions.h", "barriers.h", "finish.h", "patches.cu")
_USER = "user_text.h"
_ERROR = re.compile(r"^(?P<file>[^\s(]+)\((?P<line>\d+)\):\s*(?:catastrophic )?error:?\s*(?P<text>.*)")


@dataclass(frozen=True)
class Compiler:
    """`nvcc`, or `nvrtc` with `ptxas`; `name` says which to a person and to the cache."""

    name: str
    nvcc: str = ""
    nvrtc: Nvrtc | None = None
    ptxas: str = ""


def compilers() -> list[Compiler]:
    """Those that are here, the better first."""
    found = []
    nvcc = os.environ.get("NVCC") or program("nvcc")
    if nvcc and (os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")):
        found.append(Compiler(f"nvcc {version(nvcc)}", nvcc=nvcc))
    library = find_nvrtc(_package_folders())
    ptxas = program("ptxas")
    if library is not None and ptxas:
        found.append(Compiler(f"NVRTC {library.version} and ptxas {version(ptxas)}", nvrtc=library, ptxas=ptxas))
    return found


def why_not() -> str:
    """Why no text can be compiled for a GPU here, or empty."""
    if not (text_folder() / _FILES[0]).is_file():
        return "this installation has no text for the GPU; install Leadline from its wheel"
    if compilers():
        return ""
    return (
        "nothing here compiles for an NVIDIA GPU; install a CUDA toolkit with nvcc, or NVRTC and ptxas"
        " (`pip install nvidia-cuda-nvrtc nvidia-cuda-nvcc`; torch for CUDA and Triton bring both)"
    )


def text_folder() -> Path:
    """Where the files of the text are: beside the package's native module."""
    return installed("device")


def source(user_text: str = "", tool: str = "") -> str:
    """All of the text as one, a user's among it; compilers name the lines of each by their files."""
    folder = text_folder()
    parts = [_part(folder / name) for name in _FILES]
    if user_text:
        if "LL_STORE" not in user_text:
            raise ToolError(
                f"The `gpu` text of the tool {tool} has no LL_STORE(a) {{ ... }}; nothing would be counted."
            )
        users = f'#line 1 "{tool}.gpu"\n{user_text}\n#define LEADLINE_USER_STORE 1\n'
        parts[1:1] = [_part(folder / _USER), users]
    return "".join(parts)


def patches(
    architectures: Sequence[int] = ARCHITECTURES,
    user_text: str = "",
    tool: str = "",
    compiler: Compiler | None = None,
) -> bytes:
    """The code for the patch functions (`PATCHES`), a fatbin by nvcc, a cubin by NVRTC, which makes it for one
    architecture (90: compute capability 9.0) only. From the cache where it is there.

    Raises ToolError with the compiler's first message and its line, or saying what is missing.
    """
    if compiler is None:
        known = [one for one in compilers() if one.nvcc or len(architectures) == 1]
        if not known:
            raise ToolError(f"The backend sanitizer does not work here: {why_not() or 'nvcc is needed'}.")
        compiler = known[0]
    text = source(user_text, tool)
    stamp = f"{compiler.name}\n{tuple(architectures)}\n{text}"
    kept = _cache() / f"device-{hashlib.sha256(stamp.encode()).hexdigest()[:24]}.bin"
    if kept.is_file():
        return kept.read_bytes()
    code = _by_nvcc(compiler, text, architectures) if compiler.nvcc else _by_nvrtc(compiler, text, architectures)
    made = kept.with_suffix(f".{os.getpid()}")
    made.write_bytes(code)
    made.replace(kept)  # whole or not there, also where two processes compile the same
    return code


def _part(path: Path) -> str:
    lines = path.read_text(encoding="utf-8").splitlines()
    dropped = ('#include "backends/device/', "#pragma once")
    kept = ["" if line.startswith(dropped) else line for line in lines]
    return f'#line 1 "{path.name}"\n' + "\n".join(kept) + "\n"


def _by_nvcc(compiler: Compiler, text: str, architectures: Sequence[int]) -> bytes:
    with tempfile.TemporaryDirectory(prefix="leadline-") as folder:
        made = Path(folder) / "patches.fatbin"
        written = Path(folder) / "patches.cu"
        written.write_text(text, encoding="utf-8")
        command = [compiler.nvcc, "-std=c++17", "-fatbin", "--compile-as-tools-patch", "-Xfatbin", "-compress-all"]
        architectures = _that_it_knows(compiler.nvcc, architectures)
        for each in architectures:
            code = f"[sm_{each},compute_{each}]" if each == max(architectures) else f"sm_{each}"
            command += ["-gencode", f"arch=compute_{each},code={code}"]
        told = _run([*command, "-o", str(made), str(written)])
        if told:
            raise ToolError(_sentence(told))
        return made.read_bytes()


def _that_it_knows(nvcc: str, architectures: Sequence[int]) -> Sequence[int]:
    """Those that this nvcc compiles for; where it is older than all of them its newest, whose PTX newer GPUs take."""
    try:
        done = subprocess.run([nvcc, "--list-gpu-arch"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolError(f"The text for the GPU could not be compiled: {error}.") from None
    known = [int(number) for number in re.findall(r"^compute_(\d+)$", done.stdout, re.MULTILINE)]
    kept = [each for each in architectures if each in known]
    return kept or (architectures if not known else [max(known)])


def _by_nvrtc(compiler: Compiler, text: str, architectures: Sequence[int]) -> bytes:
    if len(architectures) != 1:
        raise ToolError("Code for several architectures at once needs nvcc; NVRTC makes it for one.")
    assert compiler.nvrtc is not None
    if architectures[0] not in compiler.nvrtc.architectures:
        raise ToolError(
            f"NVRTC {compiler.nvrtc.version} makes no code for compute capability {architectures[0] / 10:.1f}; "
            "a newer one may (`pip install -U nvidia-cuda-nvrtc`), or nvcc of a newer toolkit."
        )
    ptx, told = compiler.nvrtc.ptx(text, architectures[0])
    if ptx is None:
        raise ToolError(_sentence(told))
    with tempfile.TemporaryDirectory(prefix="leadline-") as folder:
        made = Path(folder) / "patches.cubin"
        written = Path(folder) / "patches.ptx"
        ptxas = _for_new(compiler.ptxas) if architectures[0] >= 100 else compiler.ptxas
        command = [ptxas, "--compile-as-tools-patch", f"-arch=sm_{architectures[0]}", "-o", str(made), str(written)]
        written.write_text(ptx, encoding="utf-8")
        told = _run(command)
        # An older ptxas reads what a newer NVRTC writes, if the text says an older version.
        older = re.search(r"current version is '([\d.]+)'", told)
        if older is not None:
            written.write_text(re.sub(r"^\.version .*$", f".version {older[1]}", ptx, flags=re.M), encoding="utf-8")
            told = _run(command)
        if told:
            raise ToolError(_sentence(told))
        return made.read_bytes()


def _run(command: list[str]) -> str:
    """What the compiler said, where it failed."""
    # The variables of the session would make a compiler wrapper that is a Python program measure itself.
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LEADLINE")}
    try:
        done = subprocess.run(command, capture_output=True, errors="replace", timeout=120, check=False, env=clean)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolError(f"The text for the GPU could not be compiled: {error}.") from None
    return (done.stdout + done.stderr or f"error {done.returncode}") if done.returncode != 0 else ""


def _sentence(told: str) -> str:
    """The first error as a sentence; errors in a user's text name its tool."""
    for line in told.splitlines():
        error = _ERROR.match(line)
        if error is None:
            continue
        file, number, text = Path(error["file"]).name, error["line"], error["text"].strip().rstrip(".")
        if file.endswith(".gpu"):
            return f"The `gpu` text of the tool {file[:-4]} does not compile: line {number}: {text}."
        return f"The text for the GPU does not compile: {file}, line {number}: {text}."
    first = next((line.strip() for line in told.splitlines() if "error" in line.lower()), told.strip()[:200])
    return f"The text for the GPU does not compile: {first.rstrip('.')}."


def _cache() -> Path:
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "leadline" / "tools"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        folder = Path(tempfile.mkdtemp(prefix="leadline-"))
    return folder


def _package_folders() -> list[Path]:
    return [Path(entry) for entry in sys.path if entry and Path(entry).is_dir()]


def program(name: str) -> str:
    """A program of a toolkit, of NVIDIA's wheels or of Triton's; empty where there is none."""
    homes = [os.environ.get("CUDA_HOME", ""), os.environ.get("CUDA_PATH", "")]
    places = [Path(home) / "bin" / name for home in homes if home]
    on_path = shutil.which(name)
    if on_path:
        places.append(Path(on_path))
    places.append(Path("/usr/local/cuda/bin") / name)
    for folder in _package_folders():
        places += sorted((folder / "nvidia").glob(f"*/bin/{name}"), reverse=True)
        places.append(folder / "triton/backends/nvidia/bin" / name)
    return next((str(place) for place in places if os.access(place, os.X_OK)), "")


def _for_new(ptxas: str) -> str:
    """Triton has a second one for Blackwell."""
    second = Path(ptxas).with_name("ptxas-blackwell")
    return str(second) if second.is_file() else ptxas


def version(program: str) -> str:
    """What a program of NVIDIA's says of itself, such as 13.0.88, or empty."""
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    found = re.search(r"V(\d[\d.]*)", done.stdout)
    return found[1] if found else ""
