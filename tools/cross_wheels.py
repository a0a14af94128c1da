#!/usr/bin/env python3
"""Build manylinux wheels for interpreters that cannot run here: another processor, or a CPython that is not installed.

    python tools/cross_wheels.py [VERSION-PROCESSOR...]     such as 3.11-aarch64 3.14-x86_64; all of TARGETS by default

An extension module needs the headers of its interpreter and nothing else. They are taken from Debian's packages
(LEADLINE_DEBIAN names a mirror) and checked against the index; the C++ is built with this machine's compiler or its
cross compiler; the Python files and the metadata are those of any wheel that is in dist/ already (`make wheel`). Exits
with 1 when one could not be made.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from build_wheels import DIST, WORK
from debian import unpack
from old_system import definitions
from test_pythons import ROOT, SUPPORTED, find_interpreters

SUITES = {"3.11": "bookworm", "3.13": "trixie", "3.14": "sid", "3.15": "sid"}
"""Which release of Debian has the headers of which CPython. No suite had 3.10 or 3.12: see `headers_here`."""
TARGETS = (*(f"{version}-aarch64" for version in SUPPORTED), "3.14-x86_64", "3.15-x86_64")


@dataclass(frozen=True)
class Target:
    """`3.11-aarch64`."""

    version: str
    processor: str

    @classmethod
    def parse(cls, text: str) -> Target:
        """Raises SystemExit with one sentence where Debian has no headers for it."""
        version, _, processor = text.partition("-")
        if f"{version}-{processor}" not in TARGETS:
            raise SystemExit(f"There are no headers for {text}; known are {', '.join(TARGETS)}.")
        return cls(version, processor)

    @property
    def tag(self) -> str:
        """`cp311`."""
        return f"cp{self.version.replace('.', '')}"

    @property
    def soabi(self) -> str:
        """What stands in the names of its extension modules."""
        return f"cpython-{self.tag[2:]}-{self.processor}-linux-gnu"

    @property
    def name(self) -> str:
        """As it was written."""
        return f"{self.version}-{self.processor}"


def headers(target: Target) -> Path:
    """A folder with Python.h and the pyconfig.h of the target. Raises SystemExit where there is none."""
    if target.version not in SUITES:
        return headers_here(target)
    folder = WORK / f"headers-{target.name}"
    include = folder / "usr/include" / f"python{target.version}"
    if (include / "Python.h").exists():
        return include
    unpack(SUITES[target.version], target.processor, f"libpython{target.version}-dev", folder)
    # Debian's own chooses one by the processor, from a folder that a compiler here would not look into.
    own = folder / f"usr/include/{target.processor}-linux-gnu/python{target.version}/pyconfig.h"
    shutil.copy(own, include / "pyconfig.h")
    return include


def headers_here(target: Target) -> Path:
    """Those of an interpreter that is installed here: what extension modules see of pyconfig.h is the same on both
    processors, which are 64 bits wide, little-endian, with the same C library."""
    interpreter = find_interpreters().get(target.version)
    if interpreter is None:
        raise SystemExit(f"Neither Debian nor this machine has headers of Python {target.version}.")
    question = "import sysconfig; print(sysconfig.get_path('include'))"
    done = subprocess.run([interpreter, "-c", question], capture_output=True, text=True, check=True)
    include = Path(done.stdout.strip())
    if not (include / "Python.h").exists():
        raise SystemExit(f"{interpreter} has no headers.")
    return include


def compile_native(target: Target) -> Path | None:
    """The folder into which the native parts were installed, or None where a step failed, whose output is printed."""
    build, stage = WORK / f"build-{target.name}", WORK / f"stage-{target.name}"
    shutil.rmtree(stage, ignore_errors=True)
    configure = ["cmake", "-S", str(ROOT), "-B", str(build), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"]
    configure += ["-DLEADLINE_PORTABLE=ON", f"-DLEADLINE_PYTHON_HEADERS={headers(target)}"]
    configure += [f"-DLEADLINE_PYTHON_SOABI={target.soabi}", f"-DPython_EXECUTABLE={sys.executable}"]
    if target.processor == os.uname().machine:
        configure += [f"-D{name}={value}" for name, value in definitions(target.processor).items()]
    else:
        configure.append(f"-DCMAKE_TOOLCHAIN_FILE={ROOT}/cmake/{target.processor}-linux-gnu.cmake")
    commands = [
        configure,
        ["cmake", "--build", str(build)],
        ["cmake", "--install", str(build), "--strip", "--prefix", str(stage)],
    ]
    for command in commands:
        done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
        if done.returncode != 0:
            print(done.stdout[-4000:], done.stderr[-4000:], sep="\n", file=sys.stderr)
            return None
    return stage


def pack(target: Target, stage: Path) -> Path | None:
    """The wheel in dist/: the Python files of one that is there, with these native parts; None where there is none."""
    from auditwheel.wheeltools import InWheelCtx

    pattern = sorted(DIST.glob("leadline-*-manylinux*_x86_64.whl"), key=lambda path: path.stat().st_mtime_ns)
    if not pattern:
        print("There is no wheel in dist/ to take the Python files from; run `make wheel` first.", file=sys.stderr)
        return None
    version = pattern[-1].name.split("-")[1]
    tag = f"{target.tag}-{target.tag}-linux_{target.processor}"
    raw = WORK / f"raw-{target.name}" / f"leadline-{version}-{tag}.whl"
    raw.parent.mkdir(parents=True, exist_ok=True)
    with InWheelCtx(pattern[-1], raw) as wheel:
        root = Path(wheel.path)
        for native in (root / "leadline").glob("*.so"):
            native.unlink()
        for native in (stage / "leadline").glob("*.so"):
            shutil.copy(native, root / "leadline")
        facts = root / f"leadline-{version}.dist-info/WHEEL"
        kept = [line for line in facts.read_text(encoding="utf-8").splitlines() if not line.startswith("Tag:")]
        facts.write_text("\n".join([*(line for line in kept if line), f"Tag: {tag}", ""]), encoding="utf-8")
    repair = [sys.executable, "-m", "auditwheel", "repair", "-w", str(DIST), str(raw)]
    tools = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    done = subprocess.run(repair, env=tools, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(done.stderr, file=sys.stderr)
        return None
    made = DIST.glob(f"leadline-{version}-{target.tag}-{target.tag}-manylinux*_{target.processor}.whl")
    return max(made, key=lambda path: path.stat().st_mtime_ns)


def main(argv: list[str]) -> int:
    targets = [Target.parse(text) for text in argv or TARGETS]
    failed = 0
    for target in targets:
        stage = compile_native(target)
        wheel = pack(target, stage) if stage is not None else None
        failed += wheel is None
        print(f"{target.name}: {wheel.relative_to(ROOT) if wheel else 'FAILED'}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
