"""Rules that the page has too: Python's side of `rules.json`; ui/model/rules.test.ts is the other."""

from __future__ import annotations

import json
from pathlib import Path

from leadline.analysis.layers import merged_layers
from leadline.analysis.origin import origin
from leadline.names import bare, below, cut
from leadline.profiles.makers import in_amds_words
from leadline.report.phrases import operator_text
from leadline.report.source import short_names
from leadline.units import change, duration, number, share, size

RULES = json.loads((Path(__file__).parent / "rules.json").read_text(encoding="utf-8"))


def test_numbers_read_the_same():
    for name, say in (("duration", duration), ("size", size), ("number", number), ("change", change)):
        assert [say(value) for value, _ in RULES[name]] == [text for _, text in RULES[name]]
    assert [share(part, whole) for part, whole, _ in RULES["share"]] == [text for *_, text in RULES["share"]]


def test_amds_words_are_the_same():
    assert [in_amds_words(text) for text, _ in RULES["amd"]] == [said for _, said in RULES["amd"]]


def test_names_read_the_same():
    assert [int(origin(file)) for file, _ in RULES["origin"]] == [of for _, of in RULES["origin"]]
    assert [merged_layers(name) for name, _ in RULES["folded"]] == [text for _, text in RULES["folded"]]
    assert [operator_text(name) for name, _ in RULES["operator"]] == [text for _, text in RULES["operator"]]
    assert [bare(name) for name, _ in RULES["bare"]] == [text for _, text in RULES["bare"]]
    assert [below(name, parent) for name, parent, _ in RULES["below"]] == [text for *_, text in RULES["below"]]
    assert [cut(name, most) for name, most, _ in RULES["cut"]] == [text for *_, text in RULES["cut"]]
    for case in RULES["short"]:
        names = short_names(case["files"], case["base"])
        assert [names[file] for file in case["files"]] == case["names"]
