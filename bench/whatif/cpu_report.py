"""What the CPU pairs found, as rows that are kept between runs, as JSON and as a table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from common import machine_text, markdown_table

LIMIT = 0.10
"""A prediction counts as right within ten percent."""
HELD_OUT = "held out, "
"""What the names of pairs begin with whose models no factor was chosen with, though ranges were mended with them."""
UNSEEN = "unseen, "
"""The same, of families that neither factors nor ranges were chosen with."""
STEM = "whatif-cpu-pairs"


@dataclass(frozen=True)
class Predicted:
    """What one trace said. Seconds per step; `recording` is the traced step over the unrecorded one, minus one."""

    expected_s: float
    low_s: float
    high_s: float
    replay_error: float
    recording: float


@dataclass(frozen=True)
class Row:
    """One pair. `noise`: copies of one program differ by this much (A/A), slowest over fastest minus one. `lost`: share
    of time that other processes took from its most disturbed turn or recording. `unrecorded_s`: step time before of
    the process that recorded each source's trace."""

    pair: str
    before_s: float
    after_s: float
    noise: float
    lost: float
    unrecorded_s: Mapping[str, float]
    by_source: Mapping[str, Predicted]

    def error(self, source: str) -> float:
        """Signed: predicted over measured, minus one."""
        return self.by_source[source].expected_s / self.after_s - 1

    def in_range(self, source: str) -> bool:
        """Whether the range holds the measured value, with no allowance for the noise of either."""
        found = self.by_source[source]
        return found.low_s <= self.after_s <= found.high_s


def read_rows(folder: Path) -> dict[str, Row]:
    """The rows of earlier runs by pair; none where there was none."""
    path = folder / f"{STEM}.json"
    if not path.exists():
        return {}
    found = {}
    for item in json.loads(path.read_text(encoding="utf-8"))["pairs"]:
        sources = {
            source: Predicted(**{name: value[name] for name in Predicted.__dataclass_fields__})
            for source, value in item["by_source"].items()
        }
        plain = {name: item[name] for name in Row.__dataclass_fields__ if name != "by_source"}
        found[item["pair"]] = Row(**plain, by_source=sources)
    return found


def write_rows(folder: Path, facts: Mapping[str, Any], rows: Sequence[Row]) -> str:
    """Writes the JSON and the Markdown; returns the latter."""
    folder.mkdir(parents=True, exist_ok=True)
    pairs = [
        {
            **asdict(row),
            "by_source": {
                source: {**asdict(found), "error": row.error(source), "in_range": row.in_range(source)}
                for source, found in row.by_source.items()
            },
        }
        for row in rows
    ]
    document = {"script": "bench/whatif/cpu_pairs.py", "machine": dict(facts), "limit": LIMIT, "pairs": pairs}
    (folder / f"{STEM}.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    text = (
        "# What-if predictions on a CPU\n\nMade by `python bench/whatif/cpu_pairs.py`.\n"
        f"{machine_text(dict(facts))}.\n\n{_table(rows)}\n{_summary(rows)}"
    )
    (folder / f"{STEM}.md").write_text(text, encoding="utf-8")
    return text


def _table(rows: Sequence[Row]) -> str:
    sources = sorted({source for row in rows for source in row.by_source})
    head = ["change", "before ms", "noise", "lost to others", "after ms", "gain"]
    for source in sources:
        head += [f"{source}: predicted ms", "range ms", "error", "recording costs"]
    lines = []
    for row in rows:
        cells = [
            row.pair, f"{row.before_s * 1e3:.2f}", f"{row.noise:.1%}", f"{row.lost:.1%}", f"{row.after_s * 1e3:.2f}",
            f"{row.before_s / row.after_s:.2f}x",
        ]  # fmt: skip
        for source in sources:
            found = row.by_source.get(source)
            if found is None:
                cells += ["", "", "", ""]
                continue
            outside = "" if row.in_range(source) else " (outside)"
            error = f"{row.error(source):+.1%}"
            cells += [
                f"{found.expected_s * 1e3:.2f}", f"{found.low_s * 1e3:.2f} to {found.high_s * 1e3:.2f}{outside}",
                error if abs(row.error(source)) <= LIMIT else f"**{error}**", f"{found.recording:+.0%}",
            ]  # fmt: skip
        lines.append(cells)
    return markdown_table(head, lines)


def _summary(rows: Sequence[Row]) -> str:
    lines = []
    sources = sorted({source for row in rows for source in row.by_source})
    parts = [
        (f"{source}{which}", source, [row for row in rows if source in row.by_source and keep(row)])
        for which, keep in (
            ("", lambda row: True),
            (", held out", lambda row: row.pair.startswith(HELD_OUT)),
            (", unseen", lambda row: row.pair.startswith(UNSEEN)),
        )
        for source in sources
    ]
    for name, source, asked in parts:
        if not asked:
            continue
        right = sum(abs(row.error(source)) <= LIMIT for row in asked)
        covered = sum(row.in_range(source) for row in asked)
        typical = sorted(abs(row.error(source)) for row in asked)[len(asked) // 2]
        lines.append(
            f"- {name}: {right} of {len(asked)} predictions within {LIMIT:.0%}, typical error {typical:.1%}; "
            f"{covered} of {len(asked)} ranges hold the measured value."
        )
    lines += [
        "- noise: slowest over fastest of the copies of one program, minus one; no error below it means anything,",
        "  and a range counts as right only when it holds the measured value.",
        "- lost to others: CPU time that other processes took from the most disturbed turn or recording of the pair.",
        "- recording costs: the traced step over the step without a recorder, minus one.",
    ]
    return "\n".join(lines) + "\n"
