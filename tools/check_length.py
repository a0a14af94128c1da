#!/usr/bin/env python3
"""A ratchet on file length: files should be read in one sitting.

    python tools/check_length.py                 check every hand-written source file under version control
    python tools/check_length.py --record PATH   accept this file at its present length (never above the limit)

A file fails above 800 lines. Above 400 it must be recorded in tools/lengths.json and fails when it grows past the
length recorded there. A recorded file that has shrunk should be recorded again; that is a hint, not a failure.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMIT = 800
LOOK_TWICE = 400
SUFFIXES = {".py", ".h", ".c", ".cc", ".cpp", ".ts", ".tsx", ".js", ".css", ".html", ".cmake", ".sh"}
GENERATED = {
    "native/base/schema_generated.h",
    "python/leadline/schema.py",
    "python/leadline/tools/events.py",
    "ui/model/schema.generated.ts",
    "python/leadline/report/assets/page.js",
    "python/leadline/report/assets/page.css",
}


def source_files(root: Path) -> list[str]:
    """Hand-written files known to git (or not yet added, but not ignored), relative to the root."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=root, capture_output=True, text=True, check=True,
    ).stdout.split("\0")  # fmt: skip
    return sorted(
        name for name in listed if Path(name).suffix in SUFFIXES and name not in GENERATED and (root / name).is_file()
    )


def length(path: Path) -> int:
    return len(path.read_bytes().splitlines())


def problems(lengths: dict[str, int], recorded: dict[str, int]) -> list[str]:
    """One sentence per file that breaks the rule."""
    found = []
    for name, lines in lengths.items():
        allowed = recorded.get(name)
        if lines > LIMIT:
            found.append(f"{name} has {lines} lines, more than {LIMIT}; split it.")
        elif lines > LOOK_TWICE and allowed is None:
            found.append(
                f"{name} has {lines} lines, more than {LOOK_TWICE}; split it, or record it with --record {name}."
            )
        elif lines > LOOK_TWICE and allowed is not None and lines > allowed:
            found.append(f"{name} grew from {allowed} to {lines} lines; split it.")
    return found


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Check the length of source files.")
    parser.add_argument("--record", action="append", default=[], metavar="PATH")
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    record_file = args.root / "tools/lengths.json"
    recorded: dict[str, int] = json.loads(record_file.read_text(encoding="utf-8")) if record_file.exists() else {}
    lengths = {name: length(args.root / name) for name in source_files(args.root)}
    if args.record:
        recorded |= {name: lengths[name] for name in args.record}
        recorded = {name: lines for name, lines in recorded.items() if lengths.get(name, 0) > LOOK_TWICE}
        record_file.write_text(json.dumps(recorded, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    found = problems(lengths, recorded)
    for problem in found:
        print(problem, file=sys.stderr)
    print(f"lengths: {len(lengths)} files, longest {max(lengths.values(), default=0)} lines, {len(found)} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
