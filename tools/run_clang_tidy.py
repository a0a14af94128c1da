#!/usr/bin/env python3
"""Run clang-tidy on the sources of some folders, several at a time; exit 1 when any warns.

    python tools/run_clang_tidy.py [--deep] BUILD_DIR JOBS FOLDER...

BUILD_DIR holds compile_commands.json. A source whose text, headers' text and configuration have passed before is not
checked again: the proof is kept in BUILD_DIR/tidy-passed. --deep: the static analyzer follows calls, which takes three
times as long as all other checks together (`make lint-deep`); without it looks at each function by itself.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHALLOW = [f"--extra-arg={word}" for word in ("-Xclang", "-analyzer-config", "-Xclang", "mode=shallow")]


def sources(build: Path, folders: list[Path]) -> list[Path]:
    """The compiled files below the folders, from the compilation database; no tests, where brevity beats speed."""
    commands = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    files = {Path(command["file"]).resolve() for command in commands if not command["file"].endswith("_test.cpp")}
    wanted = [folder.resolve() for folder in folders]
    return sorted(file for file in files if any(folder in file.parents for folder in wanted))


def state(file: Path, headers: bytes) -> str:
    return hashlib.sha256(headers + file.read_bytes()).hexdigest()


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
    shared = [ROOT / ".clang-tidy", ROOT / "requirements/test-constraints.txt", *sorted((ROOT / "native").rglob("*.h"))]
    headers = hashlib.sha256(" ".join(command).encode() + b"".join(path.read_bytes() for path in shared)).digest()
    passed_file = build / "tidy-passed"
    passed = set(passed_file.read_text(encoding="utf-8").split()) if passed_file.exists() else set()
    todo = [file for file in files if state(file, headers) not in passed]
    failed = 0
    with ThreadPoolExecutor(jobs) as pool:
        for file, warnings in pool.map(lambda file: check(command, file), todo):
            if warnings:
                failed += 1
                print(warnings)
            else:
                passed.add(state(file, headers))
    passed_file.write_text("\n".join(sorted(passed)), encoding="utf-8")
    print(
        f"clang-tidy: {len(files)} files, {len(files) - len(todo)} unchanged since they passed, {failed} with warnings"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
