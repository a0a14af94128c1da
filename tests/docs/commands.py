"""Commands on pages: the lines of their blocks for a shell, what is in backticks, and the words of each `leadline`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from leadline._dataclass import dataclass

ROOT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_INLINE = re.compile(r"(?<!`)`(leadline\s[^`]+)`(?!`)")
_INSIDE = re.compile(r"\$\((leadline [^)]*)\)")
_ENDS = re.compile(r"[;|&()]+")
_REDIRECTS = re.compile(r"[<>]+")
_FIRST = {"do", "then", "else", "time"}
"""Words of the shell that come before a command."""


@dataclass(frozen=True)
class Block:
    """A block of a page: the page's path below the repository, the number of its first line, language and lines."""

    page: str
    number: int
    language: str
    lines: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.page}:{self.number}"


def pages() -> list[Path]:
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks() -> list[Block]:
    found = []
    for page in pages():
        text = page.read_text(encoding="utf-8")
        for match in _BLOCK.finditer(text):
            number = text.count("\n", 0, match.start()) + 1
            found.append(Block(str(page.relative_to(ROOT)), number, match[1], tuple(match[2].splitlines())))
    return found


def shell_lines(block: Block) -> list[str]:
    """Commands of the block, without comments and empty lines; a line that ends in a backslash goes on."""
    text = "\n".join(block.lines).replace("\\\n", " ")
    return [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]


def inline(text: str) -> Iterator[str]:
    """`leadline ...` in backticks, in a text or a page."""
    for found in _INLINE.findall(re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)):
        yield " ".join(found.split())


def commands(line: str) -> list[list[str]]:
    """The words of each simple command of a line, without redirections and what is set before it."""
    reader = shlex.shlex(line, posix=True, punctuation_chars=";|&()<>")
    reader.whitespace_split = True
    reader.commenters = "#"
    found: list[list[str]] = [[]]
    of_file = False
    for word in reader:
        if of_file:
            of_file = False
        elif _REDIRECTS.fullmatch(word):
            of_file = True
        elif _ENDS.fullmatch(word):
            found.append([])
        elif found[-1] or not (word in _FIRST or re.match(r"\w+=", word)):
            found[-1].append(word)
    return [words for words in found if words]


def invocations(line: str) -> list[list[str]]:
    """The arguments of each `leadline` on the line, also where another program starts it."""
    inside = [part for text in _INSIDE.findall(line) for part in invocations(text)]
    return inside + [words[words.index("leadline") + 1 :] for words in commands(line) if "leadline" in words]
