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
}
DEVELOPERS = {"docs/faults.md", "docs/rules.md"}  # names of tests; generated
"""Pages that only developers read, or that are made of the code."""


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


def found(text: str) -> list[str]:
    return [
        f"{match.group(0)!r}: write {instead!r}"
        for pattern, instead in INSTEAD.items()
        for match in re.finditer(pattern, text, re.IGNORECASE)
    ]


def test_pages_use_the_words_of_the_field() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    wrong = [
        f"{page.relative_to(ROOT)}:{number}: {one}"
        for page in pages
        if str(page.relative_to(ROOT)) not in DEVELOPERS and page.parent.name != "rules"
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1)
        for one in found(re.sub(r"`[^`]*`", "", line))  # keys and names of code stay what they are
    ]
    assert not wrong, "\n".join(wrong)


def test_what_is_printed_uses_the_words_of_the_field() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {one}"
        for path in sorted((ROOT / "python/leadline").rglob("*.py"))
        for line, text in sentences(path)
        for one in found(text)
    ]
    assert not wrong, "\n".join(wrong)
