"""Text from a profile inside GitHub-flavoured Markdown: never markup, never HTML, never a link."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from leadline.report.source import visible

_SPECIAL = re.compile(r"[\\`*_\[\]<>#|~&$]|:(?=//)")


def escaped(text: str) -> str:
    """`text` as plain words of one table cell: no markup, no HTML, no link; a joiner keeps @ from mentioning anyone."""
    return _SPECIAL.sub(r"\\\g<0>", visible(text)).replace("@", "@\u2060")


def code(text: str) -> str:
    """`text` in a code span, within which a table still ends at |."""
    shown = visible(text).replace("|", "\\|")
    fence = "`" * (max((len(run) for run in re.findall("`+", shown)), default=0) + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{pad}{shown}{pad}{fence}" if shown else ""


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; the first column is text, the others are numbers."""
    lines = [f"| {' | '.join(heads)} |", "|" + "|".join([" --- "] + [" ---: "] * (len(heads) - 1)) + "|"]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows])
