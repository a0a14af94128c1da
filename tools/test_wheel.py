#!/usr/bin/env python3
"""Install a wheel of dist/ where there is no compiler, no checkout and no build tool, and use it as a new user would.

    python tools/test_wheel.py [VERSION...]    an empty environment of each interpreter found, PATH with nothing else
    python tools/test_wheel.py --bare          Debian's smallest system in build/bare (debootstrap; root), its Python

A program without PyTorch is run under `leadline run`, and its report must show the program's own region. The loader of
glibc 2.31 must find all that a wheel for it wants. Exit code 1
where one fails, and where nothing could be tested.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from old_system import missing
from test_pythons import ROOT, find_interpreters

DIST = ROOT / "dist"
BARE = ROOT / "build/bare"
PROGRAM = """
import leadline

with leadline.region("my region"):
    print("the program's output", sum(range(100_000)))
"""


def wheel_for(version: str) -> Path | None:
    """The newest wheel for one minor version such as 3.11."""
    tag = f"cp{version.replace('.', '')}"
    found = sorted(DIST.glob(f"leadline-*-{tag}-{tag}-manylinux*.whl"), key=lambda path: path.stat().st_mtime_ns)
    return found[-1] if found else None


def use(python: list[str], folder: str, environment: dict[str, str]) -> str:
    """Empty when the installed command does what the README promises, else what went wrong; `folder` as it sees it."""
    leadline = [*python, "-m", "leadline"]
    for arguments, expected in (
        ([*leadline, "run", "-o", f"{folder}/out.leadline", f"{folder}/program.py"], "the program's output 4999950000"),
        ([*leadline, "report", f"{folder}/out.leadline"], "my region"),
        ([*leadline, "export", f"{folder}/out.leadline", "--format", "collapsed", "-o", f"{folder}/out.txt"], ""),
    ):
        done = subprocess.run(arguments, env=environment, capture_output=True, text=True, timeout=300, check=False)
        if done.returncode != 0 or expected not in done.stdout:
            return f"{' '.join(arguments)} ended with {done.returncode} and printed:\n{done.stdout}{done.stderr}"
    return ""


def test_empty_environment(version: str, interpreter: Path, wheel: Path) -> str:
    """As `use`, in a fresh virtual environment whose PATH holds nothing but itself."""
    with tempfile.TemporaryDirectory(prefix="leadline-wheel-") as folder:
        home = Path(folder) / "env"
        subprocess.run([str(interpreter), "-m", "venv", str(home)], check=True)
        environment = {"PATH": str(home / "bin"), "HOME": folder, "LANG": "C.UTF-8"}
        pip = [
            str(home / "bin/python"),
            "-m",
            "pip",
            "--disable-pip-version-check",
            "-q",
            "install",
            "--only-binary",
            ":all:",
        ]
        installing = {**os.environ, "PATH": environment["PATH"]}
        if subprocess.run([*pip, str(wheel)], cwd=folder, env=installing, check=False).returncode != 0:
            return f"{wheel.name} does not install on Python {version}."
        (Path(folder) / "program.py").write_text(PROGRAM)
        return use([str(home / "bin/python")], folder, environment)


def test_bare_system() -> str:
    """As `use`, inside Debian's smallest system with Python and pip: no compiler, no git, nothing of ours."""
    if not (BARE / "usr/bin/pip").exists():
        if shutil.which("debootstrap") is None:
            return "debootstrap is not installed; `apt-get install debootstrap` and run this as root."
        packages = "--include=python3,python3-pip,python3-venv,ca-certificates"
        command = ["debootstrap", "--variant=minbase", packages, "bookworm", str(BARE)]
        if subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode != 0:
            return "debootstrap failed; its log is build/bare/debootstrap/debootstrap.log."
    wheel = wheel_for("3.11")
    if wheel is None:
        return "There is no wheel for Python 3.11 in dist/; run `make wheel`."
    if (BARE / "usr/bin/gcc").exists():
        return "The bare system has a compiler, so it proves nothing; remove build/bare and run this again."
    work = BARE / "srv/leadline"
    shutil.rmtree(work, ignore_errors=True)
    (work / "wheels").mkdir(parents=True)
    shutil.copy(wheel, work / "wheels")
    (work / "program.py").write_text(PROGRAM)
    download = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", "download", "--only-binary", ":all:"]
    download += ["--python-version", "3.11", "--implementation", "cp", "-d", str(work / "wheels"), str(wheel)]
    subprocess.run(download, check=True)
    environment = {"PATH": "/usr/bin:/bin", "HOME": "/root", "LANG": "C.UTF-8"}
    inside = [shutil.which("chroot") or "/usr/sbin/chroot", str(BARE), "/usr/bin/python3"]
    pip = [*inside, "-m", "pip", "-q", "install", "--break-system-packages", "--root-user-action", "ignore"]
    pip += ["--force-reinstall", "--no-index", "--find-links", "/srv/leadline/wheels", "leadline"]
    if subprocess.run(pip, env=environment, check=False).returncode != 0:
        return f"{wheel.name} does not install in the bare system."
    return use(inside, "/srv/leadline", environment)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Use a built wheel as a new user would.")
    parser.add_argument("versions", nargs="*")
    parser.add_argument("--bare", action="store_true", help="in Debian's smallest system, by debootstrap")
    arguments = parser.parse_args(argv)
    problems: dict[str, str] = {}
    if arguments.bare:
        problems["bare system"] = test_bare_system()
    else:
        interpreters = find_interpreters()
        for version in arguments.versions or sorted(interpreters):
            wheel = wheel_for(version)
            if wheel is None or version not in interpreters:
                print(f"Python {version}: no wheel in dist/, or no interpreter here; not tested")
                continue
            problems[f"Python {version}, {wheel.name}"] = test_empty_environment(version, interpreters[version], wheel)
            if "manylinux_2_31_" not in wheel.name:  # as --here makes it: it claims no older glibc than this machine's
                continue
            try:
                problems[f"{wheel.name}, by the loader of glibc 2.31"] = missing(wheel)
            except OSError as error:
                print(f"{wheel.name}: whether glibc 2.31 is enough is not known: {error}")
    for what, problem in problems.items():
        print(f"{what}: {problem or 'works'}")
    return 0 if problems and not any(problems.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
