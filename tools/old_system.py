"""The C library that wheels are linked against, older than that of the machine that builds them.

A symbol's version is chosen when a library is linked: here it is that of Debian 11 (glibc 2.31), so that a wheel runs
there and on Ubuntu 20.04. It is compiled with this machine's headers, whose ABI is the same; what the C++ library wants
of a newer glibc stands in native/base/portable.c. auditwheel says at the end what a wheel needs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from debian import unpack
from test_pythons import ROOT

SUITE = "bullseye"
PACKAGES = ("libc6", "libc6-dev", "libgcc-s1")
FOLDER = ROOT / "build/old-system"


def definitions(processor: str) -> dict[str, str]:
    """What CMake is to be told; empty, with a sentence, where the packages are not to be had."""
    try:
        system = _system(processor)
    except (OSError, ValueError) as error:
        print(f"Linking against this machine's glibc, since Debian's older one is not here: {error}", file=sys.stderr)
        return {}
    folders = [system / part / f"{processor}-linux-gnu" for part in ("usr/lib", "lib")]
    flags = " ".join([f"--sysroot={system}", *(f"-L{folder}" for folder in folders)])
    # Parts of libc since 2.34; needed also where only the C++ library, which comes last, wants them.
    libraries = "-Wl,--push-state,--no-as-needed -lpthread -lrt -ldl -Wl,--pop-state"
    return {
        "CMAKE_SHARED_LINKER_FLAGS": flags,
        "CMAKE_MODULE_LINKER_FLAGS": flags,
        "CMAKE_C_STANDARD_LIBRARIES": libraries,
        "CMAKE_CXX_STANDARD_LIBRARIES": libraries,
    }


def missing(wheel: Path) -> str:
    """What a wheel for this processor wants and the older system lacks, as that system's own loader says; '' where it
    has all. Raises OSError where the packages are not to be had. What an interpreter brings is left out."""
    processor = os.uname().machine
    system = _system(processor)
    folder = system / f"lib/{processor}-linux-gnu"
    (loader,) = folder.glob("ld-2.*.so")
    said: list[str] = []
    with tempfile.TemporaryDirectory() as unpacked:
        zipfile.ZipFile(wheel).extractall(unpacked)
        for library in sorted(Path(unpacked).rglob("*.so")):
            done = subprocess.run(
                [str(loader), "--library-path", str(folder), str(library)],
                env={"LD_TRACE_LOADED_OBJECTS": "1", "LD_BIND_NOW": "1", "LD_WARN": "yes"},
                capture_output=True,
                text=True,
                check=False,
            )
            for line in (done.stdout + done.stderr).splitlines():
                symbol = line.partition("undefined symbol: ")[2]
                if "not found" in line or (symbol and not symbol.startswith(("Py", "_Py"))):
                    said.append(f"{library.name}: {line.strip().replace(unpacked, '')}")
    return "\n".join(said)


def _system(processor: str) -> Path:
    system = FOLDER / processor
    if (system / "complete").exists():
        return system
    for package in PACKAGES:
        unpack(SUITE, processor, package, system)
    for link in system.rglob("*"):
        if link.is_symlink() and (target := link.readlink()).is_absolute():  # it would lead to this machine's
            link.unlink()
            link.symlink_to(system / target.relative_to("/"))
    (system / "complete").touch()
    return system
