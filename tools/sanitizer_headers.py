#!/usr/bin/env python3
"""The Compute Sanitizer's headers and its API library for tests/nvidia/test_sanitizer_abi.py, out of NVIDIA's wheels.

python tools/sanitizer_headers.py FOLDER      does nothing where they are there already
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

WHEELS = {
    "12.9": "nvidia-cuda-sanitizer-api-cu12==12.9.79",
    "13.0": "nvidia-cuda-sanitizer-api==13.0.85",
    "13.5": "nvidia-cuda-sanitizer-api==13.5.25",
}
LIBRARY = "libsanitizer-public.so"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    for release, wheel in WHEELS.items():
        if not (folder / release / LIBRARY).exists():
            _take(wheel, folder / release)
    return 0


def _take(requirement: str, folder: Path) -> None:
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", place, requirement]
        if subprocess.run(command, check=False).returncode != 0:
            print(f"The wheel {requirement} could not be downloaded, so its headers are not compared.", file=sys.stderr)
            return
        (wheel,) = Path(place).glob("*.whl")
        folder.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(wheel) as archive:
            # The library last: it says that the rest is there.
            for name in sorted(archive.namelist(), key=lambda one: one.endswith(LIBRARY)):
                path = Path(name)
                if path.name == LIBRARY or (path.suffix == ".h" and path.parent.name == "include"):
                    (folder / path.name).write_bytes(archive.read(name))


if __name__ == "__main__":
    sys.exit(main())
