#!/usr/bin/env python3
"""The pages that are made from the code (rules, command line, options, JSON keys), and the folder of the site.

    python tools/reference.py                write docs/rules/ and the list in docs/rules.md
    python tools/reference.py --check        write nothing; exit 1 and name what is out of date
    python tools/reference.py --site FOLDER  write a copy of docs/ with all pages that are made from the code

Pages of rules are committed: findings refer to them. The command line and the options exist in the site only; elsewhere
`--help-all` and docstrings say the same. A rule's page in the site shows the finding of the drawn problem that
tests/analysis/test_every_rule.py checks.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import itertools
import json
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
MARK = "<!-- The list below is made by tools/reference.py. -->\n"
WIDTH = 120
_TYPES = {"string": "text", "boolean": "true or false"}
Schema: TypeAlias = dict[str, Any]
"""A JSON schema, or a part of one."""
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")


def wrapped(text: str, indent: str = "") -> str:
    return textwrap.fill(text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def programs() -> dict[str, list[tuple[str, str]]]:
    """By rule: folders of programs with the problem and without it, and what is said about each."""
    found: dict[str, list[tuple[str, str]]] = {}
    for path in sorted(ROOT.glob("examples/*/problems.json")):
        for name, about in json.loads(path.read_text(encoding="utf-8")).items():
            folder = path.parent / name
            if about.get("rule") and (folder / "fixed.py").is_file():
                found.setdefault(about["rule"], []).append((f"{folder.relative_to(ROOT)}", name.replace("_", " ")))
    return found


def rule_pages() -> dict[Path, str]:
    """Every committed page: one for each rule, and the list of all."""
    from leadline.analysis.rules import RULES

    pairs = programs()
    pages: dict[Path, str] = {}
    for rule in RULES:
        lines = [f"# {rule.name}", "", wrapped(rule.asks), ""]
        lines += ["```sh", f"leadline analyze FILE --rule {rule.name}", "```", ""]
        if rule.options:
            lines += [f"Options, for `--set {rule.name}.NAME=VALUE`:", ""]
            for one in rule.options:
                unit = "" if one.unit == "1" else f" {one.unit}"
                lines.append(wrapped(f"- `{one.name}` (default {one.default:g}{unit}): {one.reason}", "  "))
            lines.append("")
        if rule.name in pairs:
            lines += ["Programs with the problem and without it:", ""]
            lines += [
                f"- {name}: [with](../../{folder}/problem.py),\n  [without](../../{folder}/fixed.py)"
                for folder, name in pairs[rule.name]
            ]
        else:
            lines.append("No program with this problem is among the examples. A drawn profile tests the rule.")
        lines += ["", "[All rules](../rules.md)", ""]
        pages[DOCS / "rules" / f"{rule.name}.md"] = "\n".join(lines)
    before = (DOCS / "rules.md").read_text(encoding="utf-8").partition(MARK)[0]
    listed = [wrapped(f"- [{rule.name}](rules/{rule.name}.md): {rule.asks}", "  ") for rule in RULES]
    pages[DOCS / "rules.md"] = before + MARK + "\n" + "\n".join(listed) + "\n"
    return pages


def finding_of(rule: str) -> str:
    """What the rule says about its drawn problem."""
    from leadline.analysis.analyze import analyze

    pair = importlib.import_module("tests.analysis.test_every_rule").PAIRS[rule]
    (found,) = analyze(pair.problem(), [rule], pair.settings)
    where = f"{found.lines[0].file.rpartition('/')[2]}:{found.lines[0].line}" if found.lines else ""
    parts = [found.title + (f"  {where}" if where else ""), *found.evidence, found.remedy]
    shown = "\n".join(textwrap.fill(part, 100, subsequent_indent="    ") for part in parts)
    return (
        "\n## What it says\n\nThe finding of a profile with the problem: title, evidence, fix.\n\n"
        f"```text\n{shown}\n```\n\n"
        "It says nothing about the same profile without the problem. `tests/analysis/test_every_rule.py` checks both.\n"
    )


def parsers() -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Every subcommand and mode with its parser, all options shown."""
    from leadline.cli.subcommands import SUBCOMMANDS

    for one in SUBCOMMANDS:
        for word, module, about in ((None, one.module, one.help), *((m.word, m.module, m.help) for m in one.modes)):
            name = f"{one.name} {word}" if word else one.name
            parser = argparse.ArgumentParser(prog=f"leadline {name}", description=about[:1].upper() + about[1:] + ".")
            parser.set_defaults(help_all=True)
            importlib.import_module(module).add_arguments(parser)
            yield name, parser


def cli_page() -> str:
    os.environ["COLUMNS"] = "100"
    parts = ["# Command line\n\nWhat `leadline SUBCOMMAND --help-all` prints.\n"]
    parts += [f"## {name}\n\n```text\n{parser.format_help().rstrip()}\n```\n" for name, parser in parsers()]
    return "\n".join(parts)


def options_page() -> str:
    """The fields of `leadline.Options`, with the sentence below each."""
    source = ROOT / "python/leadline/capture/config.py"
    classes = [one for one in ast.parse(source.read_text(encoding="utf-8")).body if isinstance(one, ast.ClassDef)]
    body = next(one for one in classes if one.name == "Options").body
    parts = [
        "# Options in Python\n\n`leadline.profile(path, NAME=VALUE, ...)` and `leadline.start(path, NAME=VALUE, ...)` "
        "take these names.\n"
    ]
    for field, note in itertools.pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(note, ast.Expr) and isinstance(note.value, ast.Constant):
            default = ast.unparse(field.value) if field.value else "none"
            sentence = " ".join(str(note.value.value).split())
            parts.append(f"## {ast.unparse(field.target)}\n\n{sentence}\n\nDefault: `{default}`\n")
    return "\n".join(parts)


def json_page() -> str:
    """Every key of the JSON report with its type, from the schema that tests check reports against."""
    schema = json.loads((DOCS / "json-report.schema.json").read_text(encoding="utf-8"))
    rows = [f"| `{path}` | {kind} |" for path, kind in keys_of(schema, schema, "")]
    return "\n".join(
        [
            "# Keys of the JSON report",
            "",
            "Every key with its type. [The JSON report](json-report.md) says what they mean. `[]` is an element of a "
            "list, `*` any name.",
            "",
            "| key | type |",
            "|---|---|",
            *rows,
            "",
        ]
    )


def keys_of(schema: Schema, part: Schema, path: str) -> Iterator[tuple[str, str]]:
    """Paths of keys below `part`, outermost first, each with its type in words."""
    part = resolved(schema, part)
    for name, inner in part.get("properties", {}).items():
        below = f"{path}.{name}" if path else name
        yield below, type_of(schema, inner)
        yield from keys_of(schema, inner, below)
    if isinstance(anything := part.get("additionalProperties"), dict):
        yield f"{path}.*", type_of(schema, anything)
        yield from keys_of(schema, anything, f"{path}.*")
    if isinstance(items := part.get("items"), dict):
        yield from keys_of(schema, items, f"{path}[]")
    for one in part.get("anyOf", ()):
        yield from keys_of(schema, one, path)


def resolved(schema: Schema, part: Schema) -> Schema:
    """What a `$ref` to a definition of the schema means."""
    found: Schema = part
    for name in part.get("$ref", "#").split("/")[1:]:
        found = (schema if found is part else found)[name]
    return found


def type_of(schema: Schema, part: Schema) -> str:
    part = resolved(schema, part)
    if "anyOf" in part:
        return " or ".join(type_of(schema, one) for one in part["anyOf"])
    if "const" in part:
        return f"`{json.dumps(part['const'])}`"
    if "enum" in part:
        return ", ".join(f"`{one}`" for one in part["enum"])
    if part.get("type") == "array":
        items = part.get("items")
        return f"list of {type_of(schema, items)}" if isinstance(items, dict) else "list"
    names = part.get("type", "anything")
    return " or ".join(_TYPES.get(one, one) for one in ([names] if isinstance(names, str) else names))


def inside(page: Path, docs: Path) -> Callable[[re.Match[str]], str]:
    """Links to files beside docs/ become their paths: the site does not hold them."""

    def change(match: re.Match[str]) -> str:
        picture, text, target = match.groups()
        path = (page.parent / target.partition("#")[0]).resolve()
        if "://" in target or target.startswith("#") or path.is_relative_to(docs):
            return match[0]
        return f"{picture and 'picture: '}{text} (`{path.relative_to(ROOT)}`)"

    return change


def site(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(DOCS, folder)
    for page in DOCS.rglob("*.md"):
        text = LINK.sub(inside(page, DOCS), page.read_text(encoding="utf-8"))
        if page.parent == DOCS / "rules":
            text += finding_of(page.stem)
        (folder / page.relative_to(DOCS)).write_text(text, encoding="utf-8")
    (folder / "cli.md").write_text(cli_page(), encoding="utf-8")
    (folder / "options.md").write_text(options_page(), encoding="utf-8")
    (folder / "json-keys.md").write_text(json_page(), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description="Make pages of the docs from the code.")
    parser.add_argument("--check", action="store_true", help="only say what is out of date")
    parser.add_argument("--site", metavar="FOLDER", type=Path, help="write everything that the site is built of")
    arguments = parser.parse_args()
    sys.path[:0] = [str(ROOT / "python"), str(ROOT)]
    if arguments.site:
        site(arguments.site.resolve())
        return 0
    pages = rule_pages()
    stale = [one for one, text in pages.items() if not one.is_file() or one.read_text(encoding="utf-8") != text]
    gone = [one for one in (DOCS / "rules").glob("*.md") if one not in pages]
    for path in (*stale, *gone):
        print(f"{path.relative_to(ROOT)}: {'out of date' if arguments.check else 'written'}")
    if not arguments.check:
        (DOCS / "rules").mkdir(exist_ok=True)
        for path in stale:
            path.write_text(pages[path], encoding="utf-8")
        for path in gone:
            path.unlink()
    return 1 if arguments.check and (stale or gone) else 0


if __name__ == "__main__":
    raise SystemExit(main())
