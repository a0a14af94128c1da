"""Sentences of pages have at most 25 words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MOST_WORDS = 25
GENERATED_OR_LISTS = {"docs/schema.md", "docs/tool-events.md", "docs/faults.md", "docs/README.md"}
FOR_DEVELOPERS = {"rules", "upstream", "why"}
_ITEM = re.compile(r" *([-*]|\d+\.) ")
_END = re.compile(r"(?<=[.?!:;])\s+(?=[A-Za-z`*\[(])")


def blocks(text: str) -> Iterator[str]:
    """Paragraphs and items of lists; without code, tables, headings and pictures."""
    found: list[str] = []
    for line in [*re.sub(r"```.*?```", "", text, flags=re.DOTALL).splitlines(), ""]:
        apart = not line.strip() or line.startswith(("|", "#", "<", "!["))
        if found and (apart or _ITEM.match(line)):
            yield " ".join(found)
            found = []
        if not apart:
            found.append(line.strip())


def long_sentences(text: str) -> list[str]:
    """What stands in parentheses does not count, and code and a link are one word or their text."""
    found = []
    for block in blocks(text):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", block)
        plain = re.sub(r"\([^()]*\)", "", re.sub(r"`[^`]*`", "X", plain))
        found += [one for one in _END.split(plain) if len(one.split()) > MOST_WORDS]
    return found


def test_a_long_sentence_is_seen() -> None:
    words = " ".join(["word"] * MOST_WORDS)
    assert not long_sentences(f"{words}. {words}.\n\n| {words} {words} |\n")
    assert long_sentences(f"- {words}\n  more.") == [f"- {words} more."]


def test_no_page_has_a_long_sentence() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    found = {
        name: long
        for page in pages
        if (name := str(page.relative_to(ROOT))) not in GENERATED_OR_LISTS and page.parent.name not in FOR_DEVELOPERS
        if (long := long_sentences(page.read_text(encoding="utf-8")))
    }
    assert not found
