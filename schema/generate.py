#!/usr/bin/env python3
"""Write the C++ header, the Python module, the reference page and (where ui/model exists) the TypeScript types.

    python schema/generate.py            write every output that differs
    python schema/generate.py --check    write nothing; exit 1 and name the outputs that are out of date

The outputs are committed, so building and using Leadline never needs this script. It needs the standard library of
Python 3.11, or the package `tomli` on 3.10.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from model import Schema, SchemaError, load
from outputs import cpp, markdown, python, typescript
from tool_events import load_events, markdown_events, python_events

ROOT = Path(__file__).resolve().parent.parent


def outputs(root: Path) -> dict[Path, Callable[[Schema], str]]:
    """Every file to generate below `root`, with the function that gives its text."""
    files: dict[Path, Callable[[Schema], str]] = {
        root / "native/base/schema_generated.h": cpp,
        root / "python/leadline/schema.py": python,
        root / "docs/schema.md": markdown,
    }
    if (root / "ui/model").is_dir():
        files[root / "ui/model/schema.generated.ts"] = typescript
    events = root / "schema/tool_events.toml"
    if events.is_file():
        files[root / "python/leadline/tools/events.py"] = lambda _: python_events(load_events(events))
        files[root / "docs/tool-events.md"] = lambda _: markdown_events(load_events(events))
    return files


def stale(root: Path, schema: Schema) -> dict[Path, str]:
    """The outputs whose text on disk is not what the schema gives, with the text they should have."""
    wanted = {path: make(schema) for path, make in outputs(root).items()}
    return {
        path: text for path, text in wanted.items() if not path.is_file() or path.read_text(encoding="utf-8") != text
    }


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Generate code from schema/leadline.toml.")
    parser.add_argument("--check", action="store_true", help="only say whether the generated files are up to date")
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    try:
        changed = stale(args.root, load(args.root / "schema/leadline.toml"))
    except SchemaError as error:
        print(f"schema/leadline.toml: {error}", file=sys.stderr)
        return 1
    for path, text in changed.items():
        name = path.relative_to(args.root)
        if args.check:
            print(f"{name} does not match schema/leadline.toml; run `python schema/generate.py`.", file=sys.stderr)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"wrote {name}")
    return 1 if args.check and changed else 0


if __name__ == "__main__":
    sys.exit(main())
