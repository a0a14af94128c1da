#!/usr/bin/env python3
"""AMD's headers for tests/amd, as the `triton` wheel ships them, and no more of it.

python tools/rocm_headers.py FOLDER [WHEEL]      does nothing where they are there already

WHEEL is `triton==3.9.0` (ROCm 7.1) unless it is given; `triton==3.0.0` has those of ROCm 6.1, the last release without
rocprofiler-sdk.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

WHEEL = "triton==3.9.0"
INSIDE = "triton/backends/amd/include/"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("wheel", nargs="?", default=WHEEL)
    given = parser.parse_args()
    folder: Path = given.folder
    wanted: str = given.wheel
    mark = folder / wanted
    if mark.exists():
        return 0
    with tempfile.TemporaryDirectory() as place:
        # Its headers are the same for every Python; this one has a wheel in any case.
        which = ["--python-version", "3.12", "--only-binary=:all:", "--no-deps"]
        command = [sys.executable, "-m", "pip", "download", "--quiet", *which, "--dest", place, wanted]
        if subprocess.run(command, check=False).returncode != 0:
            print(f"The wheel {wanted} could not be downloaded, so AMD's headers are not compared.", file=sys.stderr)
            return 0
        (wheel,) = Path(place).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if not name.startswith(INSIDE) or name.endswith("/"):
                    continue
                target = folder / name.removeprefix(INSIDE)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(archive.read(name))
    mark.touch()
    return 0


if __name__ == "__main__":
    sys.exit(main())
