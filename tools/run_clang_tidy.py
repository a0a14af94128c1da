#!/usr/bin/env python3
"""Run clang-tidy on the sources of some folders, several at a time; exit 1 when any warns.

    python tools/run_clang_tidy.py [--deep] BUILD_DIR JOBS FOLDER...

BUILD_DIR holds compile_commands.json. A source that has passed on this machine with the same text, text of the headers
that it includes, and configuration is not checked again (proven.py says where that is kept).
--deep: the static analyzer follows calls, which takes three times as long as all other checks together
(`make lint-deep`); without it looks at each function by itself.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import proven

ROOT = Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
SHALLOW = [f"--extra-arg={word}" for word in ("-Xclang", "-analyzer-config", "-Xclang", "mode=shallow")]


def sources(build: Path, folders: list[Path]) -> list[Path]:
    """The compiled files below the folders, from the compilation database; no tests, where brevity beats speed."""
    commands = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    files = {Path(command["file"]).resolve() for command in commands if not command["file"].endswith("_test.cpp")}
    wanted = [folder.resolve() for folder in folders]
    return sorted(file for file in files if any(folder in file.parents for folder in wanted))


class Texts:
    """What a source consists of: its text and that of every header of native/ that it includes, directly or not."""

    def __init__(self, settings: bytes) -> None:
        self._settings = settings
        self._closures: dict[Path, frozenset[Path]] = {}

    def _included(self, file: Path) -> list[Path]:
        names = INCLUDE.findall(file.read_text(encoding="utf-8"))
        places = [file.parent, ROOT / "native", ROOT / "native" / "include"]
        return [place / name for name in names for place in places if (place / name).is_file()]

    def closure(self, file: Path) -> frozenset[Path]:
        """The file and all headers below it."""
        if file not in self._closures:
            found, todo = {file}, [file]
            while todo:
                new = {one.resolve() for one in self._included(todo.pop())} - found
                found |= new
                todo += new
            self._closures[file] = frozenset(found)
        return self._closures[file]

    def state(self, file: Path) -> str:
        """The hash of all that decides what clang-tidy says of a file; hexadecimal."""
        found = hashlib.sha256(self._settings)
        for path in sorted(self.closure(file)):
            found.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
        return found.hexdigest()


def check(command: list[str], file: Path) -> tuple[Path, str]:
    """The warnings of one file, empty where there are none."""
    done = subprocess.run([*command, str(file)], capture_output=True, text=True, cwd=ROOT, check=False)
    return file, "" if done.returncode == 0 else done.stdout + done.stderr


def main(argv: list[str]) -> int:
    deep = argv[:1] == ["--deep"]
    build, jobs, *names = argv[deep:]
    return run(Path(build), int(jobs), [ROOT / name for name in names], deep)


def run(build: Path, jobs: int, folders: list[Path], deep: bool) -> int:
    files = sources(build, folders)
    command = [
        str(Path(sys.executable).with_name("clang-tidy")),
        "-quiet",
        "-p",
        str(build),
        *([] if deep else SHALLOW),
    ]
    settings = " ".join(["clang-tidy", *command[1:2], *([] if deep else SHALLOW)]).encode() + b"".join(
        (ROOT / name).read_bytes() for name in (".clang-tidy", "requirements/test-constraints.txt", "CMakeLists.txt")
    )
    texts = Texts(settings)
    passed_file = proven.folder("clang-tidy") / "passed"
    again = bool(os.environ.get("LEADLINE_PROVE_AGAIN"))
    passed = set(passed_file.read_text(encoding="utf-8").split()) if passed_file.exists() else set()
    todo = [file for file in files if again or texts.state(file) not in passed]
    failed = 0
    with ThreadPoolExecutor(jobs) as pool:
        for file, warnings in pool.map(lambda file: check(command, file), todo):
            if warnings:
                failed += 1
                print(warnings)
            else:
                passed.add(texts.state(file))
    passed_file.parent.mkdir(parents=True, exist_ok=True)
    passed_file.write_text("\n".join(sorted(passed)), encoding="utf-8")
    print(
        f"clang-tidy: {len(files)} files, {len(files) - len(todo)} unchanged since they passed, {failed} with warnings"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
