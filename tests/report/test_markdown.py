"""Markdown to paste into a pull request: tables stay tables, names stay names."""

from __future__ import annotations

import subprocess
import sys

import pytest
from drawings import hostile, training
from markdown_it import MarkdownIt

from leadline.report import ReportOptions, build_report
from leadline.report.markdown import render_markdown
from leadline.report.markup import code, escaped


def tokens(text):
    return MarkdownIt("commonmark", {"html": True}).enable("table").parse(text)


def test_report():
    text = render_markdown(build_report(training(), ReportOptions(merge_layers=True), "run.leadline"))
    assert text.startswith("## Leadline: `train.py --steps 2`\n")
    assert (
        "| `model/gpt.py:12 Block.forward`<br>`model.h.* (Block, 2 modules) › aten::linear` | 52 % | 2.60 ms | 4 |"
        in text
    )
    assert "### Hottest call paths by time\n\nShares of 5.00 ms in all.\n" in text
    assert "| `model.h.*` Block | 4.20 ms | 2.60 ms | 1.60 ms | 4.20 ms |" in text
    assert "- 1 × provider\\_unavailable: CUPTI is held by nsys." in text
    assert text.endswith("```\n")


def test_hostile_names_make_no_markup():
    parsed = tokens(render_markdown(build_report(hostile())))
    inline = [child for token in parsed for child in token.children or []]
    assert {child.content for child in inline if child.type == "html_inline"} == {"<br>"}
    assert not [token for token in parsed if token.type == "html_block"]
    assert not [child for child in inline if child.type in ("link_open", "image")]
    texts = [child.content for child in inline if child.type == "text"]
    assert not [text for text in texts if "@user" in text], "outside code @user would mention somebody"


def test_every_row_of_a_table_has_as_many_cells_as_its_head():
    parsed = tokens(render_markdown(build_report(hostile())))
    counts = []
    for token in parsed:
        if token.type == "tr_open":
            counts.append(0)
        elif token.type in ("td_open", "th_open"):
            counts[-1] += 1
        elif token.type == "table_close":
            assert len(set(counts)) == 1, counts
            counts = []


def test_escapes():
    assert escaped("a|b @user http://x <b>") == "a\\|b @\u2060user http\\://x \\<b\\>"
    assert code("a`b|c") == "``a`b\\|c``"
    assert code("") == ""
    assert code("`x`") == "`` `x` ``"


@pytest.mark.parametrize("module", ["markdown", "comparison", "findings", "text", "html", "summary"])
def test_every_part_of_the_report_can_be_imported_first(module):
    subprocess.run([sys.executable, "-c", f"import leadline.report.{module}"], check=True, timeout=60)
