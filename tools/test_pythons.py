#!/usr/bin/env python3
"""Build Leadline for every CPython found here and run the tests that need no torch.

    python tools/test_pythons.py [VERSION...]     such as 3.10 3.13; all that are found by default

Interpreters are looked for on PATH and in pyenv. Each gets its own environment under build/pythons/. Exits with 1 when
one fails, and always says which versions were tested and which were not found.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SUPPORTED = ("3.10", "3.11", "3.12", "3.13", "3.14", "3.15")
SMOKE = "import leadline, leadline._native, sys; print('leadline', leadline.__version__, 'on', sys.version.split()[0])"


def find_interpreters() -> dict[str, Path]:
    """The first interpreter found for each supported minor version."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    folders += sorted(pyenv.glob("*/bin"), reverse=True)
    found: dict[str, Path] = {}
    for folder in folders:
        for version in SUPPORTED:
            candidate = folder / f"python{version}"
            if version not in found and candidate.exists() and _answers(candidate, version):
                found[version] = candidate
    return found


def _answers(interpreter: Path, version: str) -> bool:
    """Whether it really is this CPython; a pyenv shim stands for versions that are not active too."""
    question = "import sys; print(sys.implementation.name, '%d.%d' % sys.version_info[:2])"
    done = subprocess.run([interpreter, "-c", question], capture_output=True, text=True, check=False)
    return done.returncode == 0 and done.stdout.split() == ["cpython", version]


def test(version: str, interpreter: Path) -> bool:
    """Build, install and test in a fresh environment; prints what it does and returns whether all went well."""
    print(f"== Python {version}", flush=True)
    environment = ROOT / "build/pythons" / version
    python = str(environment / "bin/python")
    pip = [python, "-m", "pip", "--disable-pip-version-check", "-q", "install"]
    constraints = ["-r", "requirements/torch-free.txt", "-c", "requirements/test-constraints.txt"]
    commands = [
        [str(interpreter), "-m", "venv", "--clear", str(environment)],
        [*pip, *constraints],
        [*pip, "--no-build-isolation", "--no-deps", "--force-reinstall", "."],
        [python, "-c", SMOKE],
        [python, "-m", "pytest", "-q", "-m", "not slow", "-p", "no:cacheprovider"],
    ]
    return all(subprocess.run(command, cwd=ROOT, check=False).returncode == 0 for command in commands)


def main(argv: list[str]) -> int:
    found = find_interpreters()
    wanted = argv or list(SUPPORTED)
    results = {version: test(version, found[version]) for version in wanted if version in found}
    for version in wanted:
        words = {True: "passed", False: "FAILED"}
        print(f"Python {version}: {words[results[version]] if version in results else 'not found here, not tested'}")
    return 0 if results and all(results.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
