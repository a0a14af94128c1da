"""Pages are read in one sitting: at most 250 lines of at most 120 characters. What is longer is listed and may only
shrink; pictures, which are one link, and pages made from the schema are left out."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LINES = 250
CHARACTERS = 120
GENERATED = {"docs/schema.md", "docs/tool-events.md"}
LONG_LINES = {
    "README.md": 1,
    "docs/cases/input-map.md": 3,
    "docs/cases/strided-convolution.md": 2,
    "docs/dump.md": 1,
    "docs/faults.md": 93,
    "docs/foreign-programs.table.md": 2,
}
"""Output of the program that is shown as it is, and tables that have not been made shorter yet."""


def pages() -> dict[str, list[str]]:
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    texts = {str(page.relative_to(ROOT)): page.read_text(encoding="utf-8") for page in found}
    return {name: text.splitlines() for name, text in texts.items() if name not in GENERATED}


def test_no_page_is_longer_than_250_lines() -> None:
    assert not {name: len(lines) for name, lines in pages().items() if len(lines) > LINES}


def test_no_page_has_more_long_lines_than_it_had() -> None:
    long = {
        name: [number for number, line in enumerate(lines, 1) if len(line) > CHARACTERS and not line.startswith("![")]
        for name, lines in pages().items()
    }
    assert not {name: numbers for name, numbers in long.items() if len(numbers) > LONG_LINES.get(name, 0)}
    assert not {name for name, number in LONG_LINES.items() if len(long[name]) < number}, (
        "write the smaller number down"
    )
