#!/usr/bin/env python3
"""Run a check unless it has passed on this machine with the same inputs: `proven.py NAME PATH... -- COMMAND...`.

The inputs are the text of every file below the PATHs that git knows or would add, the command, the compilers and this
Python. What passed is remembered by their hash alone, outside of the checkout, so a fresh clone on the same machine
does not compile and test again what has not changed; on a new machine everything runs. A failure is never remembered.
`LEADLINE_PROVE_AGAIN=1` runs the check whatever is remembered (`make nightly` sets it).
"""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COMPILERS = ("g++", "aarch64-linux-gnu-g++", "cmake", "node")


def folder(name: str) -> Path:
    """Where what passed is remembered: XDG_CACHE_HOME/leadline/proven/NAME."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "leadline" / "proven" / name


def _version(program: str) -> bytes:
    try:
        return subprocess.run([program, "--version"], capture_output=True, check=False).stdout
    except OSError:
        return b"none"


def hash_of(paths: list[str], command: list[str]) -> str:
    """The hash of all inputs; hexadecimal."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *paths],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout
    found = hashlib.sha256("\0".join([*command, platform.machine(), sys.version]).encode())
    for program in COMPILERS:
        found.update(_version(program))
    for name in sorted(set(filter(None, listed.split(b"\0")))):
        path = ROOT / os.fsdecode(name)
        if path.is_file():
            found.update(name + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()


def main(words: list[str]) -> int:
    split = words.index("--") if "--" in words else 0
    if split < 2 or split + 1 == len(words):
        print("usage: proven.py NAME PATH... -- COMMAND...", file=sys.stderr)
        return 2
    name, paths, command = words[0], words[1:split], words[split + 1 :]
    proof = folder(name) / hash_of(paths, command)
    if proof.exists() and not os.environ.get("LEADLINE_PROVE_AGAIN"):
        print(f"{name}: passed with these inputs on this machine before ({proof.read_text(encoding='utf-8').strip()}).")
        return 0
    begin = time.monotonic()
    status = subprocess.run(command, cwd=ROOT, check=False).returncode
    if status == 0:
        proof.parent.mkdir(parents=True, exist_ok=True)
        proof.write_text(f"{time.strftime('%Y-%m-%d')}, in {time.monotonic() - begin:.0f} s\n", encoding="utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
