"""The instructions of a cubin as text, by NVIDIA's nvdisasm where the machine has it: a toolkit's, or the package
nvidia-cuda-nvdisasm. Without it there are offsets."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sysconfig
from functools import cache
from pathlib import Path

VARIABLE = "LEADLINE_NVDISASM"
"""Environment: the program to take; empty for none."""
_TIMEOUT_S = 60
_MOST_BYTES = 32 << 20
"""Of a file; those of whole libraries take minutes."""
_FUNCTION = re.compile(r"^(?:\.text\.)?(?P<name>[^.\s]\S*):\s*$")
_INSTRUCTION = re.compile(r"^\s*/\*(?P<offset>[0-9a-f]{4,})\*/\s+(?P<text>[^/;][^;]*?)\s*;")


def instruction_texts(path: Path) -> dict[str, dict[int, str]]:
    """Function to offset to text; empty where there is no nvdisasm, or where it refuses the file (one that is older
    than the code)."""
    program = _nvdisasm()
    if program is None or path.stat().st_size > _MOST_BYTES:
        return {}
    try:
        done = subprocess.run(
            [program, "-c", str(path)],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return {}
    return parse_listing(done.stdout) if done.returncode == 0 else {}


def can_disassemble() -> bool:
    """Whether this machine has nvdisasm."""
    return _nvdisasm() is not None


def parse_listing(listing: str) -> dict[str, dict[int, str]]:
    """From what `nvdisasm -c` prints; offsets in the listing are those of a section, here those of the function."""
    found: dict[str, dict[int, str]] = {}
    texts: dict[int, str] = {}
    begin: int | None = None
    for line in listing.splitlines():
        if named := _FUNCTION.match(line):
            texts, begin = found.setdefault(named["name"], {}), None
        elif said := _INSTRUCTION.match(line):
            offset = int(said["offset"], 16)
            begin = offset if begin is None else begin
            texts[offset - begin] = said["text"]
    return found


@cache
def _nvdisasm() -> str | None:
    if (chosen := os.environ.get(VARIABLE)) is not None:
        return chosen or None
    homes = [Path(home, "bin") for name in ("CUDA_HOME", "CUDA_PATH") if (home := os.environ.get(name))]
    homes += [Path("/usr/local/cuda/bin")]
    homes += sorted(Path(sysconfig.get_paths()["purelib"], "nvidia").glob("*/bin"))
    return shutil.which("nvdisasm") or next(
        (str(home / "nvdisasm") for home in homes if (home / "nvdisasm").is_file()), None
    )
