"""Words that readers had to translate stay out of pages and of what the program prints; the word of the field is given."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INSTEAD = {
    r"\bverbs?\b": "subcommand",
    r"\b(stand|hang)s? below\b": "is below, is a child of",
    r"\blawful(ly)?\b": "expected difference",
    r"\bturns? of the loop\b": "iteration",
    r"\bdid not end in order\b": "was killed or crashed",
    r"\bby causes alone\b": "without recorded gaps",
    r"\bleast / most\b": "min / max",
    r"\btold twice\b": "reported twice",
    r"\broom for at least\b": "is at least",
    r"\blet sources rest\b": "pause data sources",
    r"\bdear(er|est)?\b": "expensive",
    r"\bin vain\b": "without use",
    r"\b(stands?|stood|standing) in line\b|\bin line for a core\b": "waits for a core",
    r"\bruns? dry\b": "has no work",
    r"\bas ever\b": "as usual",
    r"\b(no|some)body\b|\bwhoever\b": "name the subject: no process, no rank, the caller",
    r"\banew\b": "again",
    r"\bmend(s|ed|ing)?\b": "fix",
    r"\bkept whole\b|\bas it (is|was)\b": "unchanged",
    r"\bmade again\b": "rebuilt, computed again",
    r"\bof (its|their|one's|our|yours|mine) own\b": "its own",
    r"(?<!left )(?<!hidden )(?<!is )(?<!are )(?<!be )\bbehind\b": "after, below",
    r"\btold\b": "known from, recorded, distinguished",
    r"\bthrown away\b": "discarded",
    r"(?<!there )\bis no (address|file|folder|number|option|profile|program|terminal|trace)\b": "is not a",
    r"\bspares?\b": "saves, avoids",
    r"\bharms? nobody\b": "harmless",
    r"\bstretch(es)?\b": "interval",
    r"\bleast (and|or|to) most\b": "minimum and maximum",
    r"\bupon\b": "on",
    r"\bshall\b": "must, will",
    r"\blaid (over|beside)\b": "aligned with, joined with",
    r"\ball the same\b": "still",
    r"\bjudged:": "estimate:",
    r"\bfor want of\b": "because there is no",
    r"\bfrom there on\b": "above this, after that",
    r"\bas far as\b": "if, where",
    r"\b(in|takes?) turns\b": "alternate, in alternating runs",
    r"\bof itself\b|\bof which nothing is known\b": "say what is known",
    r"\btells? of\b": "report, record",
    r"\bin 19 (of 20 cases|cases of 20)\b": "95 % interval",
    r"\bequal to the bit\b": "bitwise identical",
    r"\b(rests|rested)\b": "is based on, pauses",
    r"\bstands? (still|in place of|at the|before the|above)\b": "is stalled, replaces, is",
}
OUTSIDE_OF_THE_SCHEMA = {
    r"\blook(s|ed|ing)? (at|through)\b": "inspect, examine, read",
    r"\bgo(es)? on\b|\bgone on\b": "continue",
    r"\bbeside\b": "next to, with, compared with",
}
SCHEMA = {"docs/schema.md", "python/leadline/schema.py", "python/leadline/demo/text.py"}
"""Descriptions of the file format, which still have these words, and the text that the demo trains on."""
DEVELOPERS = {
    "docs/faults.md",  # names of tests
    "docs/foreign-programs.table.md",
}
"""Pages that only developers read, or that are made of the code."""
DEVELOPERS_FOLDERS = {"rules", "upstream", "why"}  # the first is generated


def sentences(path: Path) -> Iterator[tuple[int, str]]:
    """String literals of a module with their lines; docstrings are no output."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    notes = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        notes |= {id(one.value) for one in (body if isinstance(body, list) else ()) if isinstance(one, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in notes:
            if node.value.isidentifier():
                continue  # a key of JSON, which stays what it is
            yield node.lineno, node.value


def found(text: str, path: Path) -> list[str]:
    of_the_schema = str(path.relative_to(ROOT)) in SCHEMA
    return [
        f"{match.group(0)!r}: write {instead!r}"
        for pattern, instead in (INSTEAD if of_the_schema else INSTEAD | OUTSIDE_OF_THE_SCHEMA).items()
        for match in re.finditer(pattern, text, re.IGNORECASE)
    ]


def test_pages_use_the_words_of_the_field() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    wrong = [
        f"{page.relative_to(ROOT)}:{number}: {one}"
        for page in pages
        if str(page.relative_to(ROOT)) not in DEVELOPERS and page.parent.name not in DEVELOPERS_FOLDERS
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1)
        for one in found(re.sub(r"`[^`]*`", "", line), page)  # keys and names of code stay what they are
    ]
    assert not wrong, "\n".join(wrong)


def test_what_is_printed_uses_the_words_of_the_field() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {one}"
        for path in sorted((ROOT / "python/leadline").rglob("*.py"))
        for line, text in sentences(path)
        for one in found(text, path)
    ]
    assert not wrong, "\n".join(wrong)
