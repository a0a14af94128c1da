"""Pages of the reference that people write name everything that the code has."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from leadline.profiles.build import build
from leadline.profiles.meta import complete_meta
from leadline.query.columns import NUMBER_FIELDS, STATS
from leadline.query.expressions import EVENT_FIELDS
from leadline.query.scanner import UNITS
from leadline.query.syntax import CLAUSES, TEXT_FIELDS
from leadline.query.views import VIEWS
from leadline.schema import FrameKind
from leadline.verdict.judge import judge
from leadline.verdict.text import as_lines

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def named(page: str) -> set[str]:
    """Words that stand in code on the page."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return {
        word for code in re.findall(r"```.*?```|`[^`]+`", text, re.DOTALL) for word in re.findall(r"[\w%*-]+", code)
    }


@pytest.mark.parametrize(
    "words",
    [
        [kind.name.lower() for kind in FrameKind if kind.name not in ("ROOT", "GRAFT")],
        [*TEXT_FIELDS, *NUMBER_FIELDS],
        [*EVENT_FIELDS],
        [one for one in STATS if one != "sum"],
        [*CLAUSES],
        [unit for unit in UNITS if unit],
        [*VIEWS],
    ],
    ids=["kinds", "fields", "event fields", "statistics", "clauses", "units", "views"],
)
def test_the_query_page_names_all_words_of_the_language(words: list[str]) -> None:
    assert set(words) <= named("query.md")


def test_the_json_page_names_every_key_at_the_top() -> None:
    schema: dict[str, Any] = json.loads((DOCS / "json-report.schema.json").read_text(encoding="utf-8"))
    assert set(schema["properties"]) <= named("json-report.md")


def test_the_page_of_the_format_names_every_key_that_a_reader_counts_on() -> None:
    assert set(complete_meta({})) <= named("file-format.md")


def test_the_example_of_the_readme_looks_as_the_program_prints_it() -> None:
    profile = build(
        """
        process train.py
          thread main
            python main @ train.py:3
              operator aten::mm | time=9000000,9000000
              phase optimizer
                operator aten::add_ | time=1000000,1000000
        """
    )
    printed = as_lines(judge(profile), 100)
    shown = re.search(
        r"```\n\$ leadline why .*?\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL
    )
    assert shown is not None
    head, sentence, *rest = shown[1].splitlines()
    assert re.fullmatch(r"\S+\.leadline   [\d,]+ steps, \S+ m?s each", head)
    assert sentence[0].isalpha()
    starts = {line[:10].strip() for line in rest} - {""}
    assert starts == {"because", "try", "trust"}
    assert {line[:10].strip() for line in printed[1:]} - {""} <= {"because", "try", "then", "trust"}
    assert all(line.startswith(" " * 10) or line[:10].strip() in starts for line in rest)
