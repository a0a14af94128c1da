#!/usr/bin/env python3
"""What a release consists of, in dist/, and whether it may go out: `make release` builds the wheels before this.

    python tools/release.py

Makes the sdist and the notes (the section of CHANGELOG.md), has twine check the metadata, looks at sizes and at what
`import leadline` takes, installs every wheel that an interpreter here can run in an empty environment and uses it, and
runs the demo from the wheel of this Python. Publishing is the command that it prints at the end. Exits with 1 where
something is wrong, and says what.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from build_wheels import DIST, WORK
from test_pythons import ROOT, SUPPORTED, find_interpreters
from test_wheel import test_empty_environment, wheel_for

MOST_BYTES = 10_000_000
MOST_IMPORT_S = 0.020
PROCESSORS = ("x86_64", "aarch64")


def version() -> str:
    """Of this checkout."""
    text = (ROOT / "python/leadline/_version.py").read_text(encoding="utf-8")
    found = re.search(r'__version__ = "(.+)"', text)
    if found is None:
        raise SystemExit("python/leadline/_version.py names no version.")
    return found[1]


def target_of(wheel: Path) -> str:
    """`3.11-aarch64`."""
    _, _, tag, _, platforms = wheel.stem.split("-")
    (processor,) = (one for one in PROCESSORS if platforms.endswith(one))
    return f"{tag[2]}.{tag[3:]}-{processor}"


def make_sdist() -> Path:
    """By the build backend itself, in an environment that has it."""
    code = "import sys; from scikit_build_core.build import build_sdist; print(build_sdist(sys.argv[1]))"
    done = subprocess.run([sys.executable, "-c", code, str(DIST)], cwd=ROOT, capture_output=True, text=True, check=True)
    return DIST / done.stdout.split()[-1]


def make_notes(of: str) -> str:
    """dist/NOTES.md; the sentence that says what is wrong with the changelog, or ''."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    found = re.search(rf"^## {re.escape(of)}\b(.*)\n((?:(?!## ).*\n)*)", text, re.MULTILINE)
    if found is None or not found[2].strip():
        return f"CHANGELOG.md has no section for {of}."
    (DIST / "NOTES.md").write_text(f"# Leadline {of}\n\n{found[2].strip()}\n", encoding="utf-8")
    return f"CHANGELOG.md still calls {of} unreleased." if "unreleased" in found[1] else ""


def check_metadata(files: list[Path]) -> str:
    """What twine finds; it has an environment of its own."""
    home = WORK / "env-twine"
    python = home / "bin/python"
    if not (home / "bin/twine").exists():
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        subprocess.run([str(python), "-m", "pip", "--disable-pip-version-check", "-q", "install", "twine"], check=True)
    check = [str(python), "-m", "twine", "check", "--strict", *map(str, files)]
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def import_seconds(interpreter: Path, wheel: Path) -> float:
    """CPU time of `import leadline` from the wheel, the least of ten processes."""
    with tempfile.TemporaryDirectory(prefix="leadline-import-") as folder:
        unpack = [sys.executable, "-m", "zipfile", "-e", str(wheel), folder]
        subprocess.run(unpack, check=True)
        environment = {"PYTHONPATH": folder, "PATH": "/usr/bin:/bin"}
        code = "import time; began = time.process_time(); import leadline; print(time.process_time() - began)"
        command = [str(interpreter), "-c", code]
        run = [subprocess.run(command, env=environment, capture_output=True, text=True, check=True) for _ in range(10)]
        return min(float(one.stdout) for one in run)


def run_demo(interpreter: Path, wheel: Path) -> str:
    """The demo in an empty folder, from the wheel, with PyTorch of the environment that runs this; '' where it went."""
    import numpy

    with tempfile.TemporaryDirectory(prefix="leadline-demo-") as folder:
        home = Path(folder) / "env"
        subprocess.run([str(interpreter), "-m", "venv", str(home)], check=True)
        python = str(home / "bin/python")
        pip = [python, "-m", "pip", "--disable-pip-version-check", "-q", "install", "--no-deps", str(wheel)]
        subprocess.run(pip, check=True)
        (packages,) = (home / "lib").glob("python*/site-packages")
        # A plain line: the editable install that is there, too, is not followed.
        (packages / "frameworks.pth").write_text(f"{Path(numpy.__file__).parents[1]}\n", encoding="utf-8")
        command = [python, "-m", "leadline", "demo", "--steps", "20"]
        environment = {"PATH": os.environ["PATH"], "HOME": folder, "LANG": "C.UTF-8"}
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=1800, check=False
        )
        page = Path(folder) / "demo.html"
        if done.returncode != 0 or not page.exists() or page.stat().st_size < 10_000:
            return f"`leadline demo` ended with {done.returncode} and printed:\n{done.stdout}{done.stderr}"
    return ""


def main() -> int:
    of, here = version(), f"{sys.version_info[0]}.{sys.version_info[1]}"
    problems: list[str] = []

    def told(what: str, problem: str) -> None:
        print(f"{what}: {problem or 'good'}", flush=True)
        if problem:
            problems.append(what)

    began = time.monotonic()
    wheels = sorted(DIST.glob(f"leadline-{of}-*.whl"))
    tags = {f"{python}-{processor}" for python in SUPPORTED for processor in PROCESSORS}
    there = {target_of(one) for one in wheels}
    told("wheels", f"missing for {', '.join(sorted(tags - there))}" if tags - there else "")
    files = [*wheels, make_sdist()]
    for one in files:
        size = one.stat().st_size
        told(f"{one.name}, {size / 1e6:.1f} MB", "" if size < MOST_BYTES else f"more than {MOST_BYTES / 1e6:.0f} MB")
    told("notes", make_notes(of))
    told("metadata", check_metadata(files))
    interpreters = find_interpreters()
    for python, interpreter in sorted(interpreters.items()):
        wheel = wheel_for(python)
        if wheel is None:
            continue
        told(f"Python {python}: installed and used", test_empty_environment(python, interpreter, wheel))
        seconds = import_seconds(interpreter, wheel)
        slow = f"more than {MOST_IMPORT_S * 1e3:.0f} ms" if seconds > MOST_IMPORT_S else ""
        told(f"Python {python}: `import leadline` takes {seconds * 1e3:.1f} ms", slow)
    own = wheel_for(here)
    told("demo", "there is no wheel for this Python" if own is None else run_demo(Path(sys.executable), own))
    print(f"{time.monotonic() - began:.0f} s")
    if problems:
        print(f"Not ready: {'; '.join(problems)}.")
        return 1
    twine = WORK.relative_to(ROOT) / "env-twine/bin/twine"
    print(f"Ready. Publish with: {twine} upload {' '.join(f'dist/{one.name}' for one in files)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
