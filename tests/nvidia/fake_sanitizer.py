"""The fake Compute Sanitizer (native/testing/sanitizer), compiled for tests and rehearsals."""

from __future__ import annotations

import subprocess
from pathlib import Path

LIBRARY = "libsanitizer-public.so"
SOURCES = ("fake_device.cpp", "fake_driver.cpp", "fake_run.cpp", "fake_sanitizer.cpp", "fake_scenario.cpp")


def build(folder: Path, compiler: str) -> Path:
    """Compile it into a folder; its path. Raises CalledProcessError."""
    from tests import vendor_fakes  # programs that stand beside this file import it without the package

    vendor_fakes.build(folder, compiler, "sanitizer", {LIBRARY: (SOURCES, ())}, "-O1", "-fvisibility=hidden", "-ldl")
    return folder / LIBRARY


def build_patches(folder: Path, compiler: str) -> Path:
    """The functions of the device's text for the host, written simply; its path."""
    from tests import vendor_fakes

    name = "fake_patches.so"
    vendor_fakes.build(
        folder, compiler, "sanitizer", {name: (("plain_patches.cpp",), ())}, "-O1", "-fvisibility=hidden"
    )
    return folder / name


def build_text(folder: Path, compiler: str, text: str) -> Path:
    """The device's text itself, as leadline.tools.device_text.source() puts it together, for the stand-in of a device
    (native/testing/simt), which runs threads in warps; its path."""
    from tests import vendor_fakes

    source = folder / "text.cpp"
    source.write_text(f'#include "testing/simt/simt.h"\n{text}')
    sources = (source, *(vendor_fakes.NATIVE / "testing" / "simt" / name for name in ("fake_run.cpp", "simt.cpp")))
    made = folder / "fake_text.so"
    command = [compiler, *vendor_fakes.FLAGS, "-O1", *map(str, sources), "-o", str(made), "-lpthread"]
    subprocess.run(command, check=True)
    return made
