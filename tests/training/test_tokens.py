"""How many tokens a step has, where the program does not say: the look-ups of the table that is looked up most."""

from __future__ import annotations

import json

import numpy as np
import pytest

from leadline.analysis.efficiency import _tokens
from leadline.profiles.build import build


def looked_up(*tables: tuple[list[int], list[int]]) -> tuple[float, float]:
    """Tokens and sequence length of one step that looks `indices` up in tables of these shapes."""
    lines = [
        f"operator aten::embedding | time=1 call_time=1 detail={json.dumps({'shapes': [table, indices]}).replace(' ', '')}"
        for table, indices in tables
    ]
    profile = build("\n".join(lines))
    counts = profile.tree.exclusive("call_time").count.astype(np.float64)
    return _tokens(profile, counts, np.zeros(len(counts), np.bool_))


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        ([([50257, 64], [8, 32]), ([1024, 64], [1, 32])], (256, 32)),  # GPT-2: words and positions
        ([([200, 64], [8, 32]), ([512, 64], [1, 32])], (256, 32)),  # fewer words than positions
        ([([200, 64], [8, 32]), ([512, 64], [1, 32]), ([2, 64], [8, 32])], (256, 32)),  # BERT: kinds of tokens, too
        ([([100, 64], [8, 32]), ([100, 64], [8, 16])], (384, 32)),  # one table for encoder and decoder
        ([], (0, 0)),
    ],
)
def test_tokens_are_the_lookups_of_the_busiest_table(tables, expected) -> None:
    assert looked_up(*tables) == expected
