"""What a report says of its ranges is what the published tables of measured pairs hold."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from leadline.whatif.coverage import ON_CPU, ON_GPU, coverage

RESULTS = Path(__file__).parents[2] / "bench" / "results"
WORDS = {
    "used": "fused_optimizer", "batch x2": "batch_size", "checkpointing": "activation_checkpointing",
    "threads": "cpu_threads", "loader": "data_loading",
}  # fmt: skip
RANGES = (7, 11)
"""Columns of the table, of both recorders."""


def test_cpu_pairs() -> None:
    held: Counter[str] = Counter()
    pairs: Counter[str] = Counter()
    for line in (RESULTS / "whatif-cpu-pairs.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        scenario = next((name for word, name in WORDS.items() if word in cells[0]), None)
        if len(cells) <= RANGES[1] or scenario is None:
            continue
        for column in RANGES:
            pairs[scenario] += 1
            held[scenario] += "(outside)" not in cells[column]
    assert {name: (held[name], pairs[name]) for name in pairs} == ON_CPU


def test_gpu_pairs() -> None:
    rows = [json.loads(path.read_text(encoding="utf-8")) for path in RESULTS.glob("gpu_round*.json")]
    found: list[dict[str, object]] = []

    def look(value: object) -> None:
        if isinstance(value, dict):
            found.extend(value.get("pairs", ()))
        for inside in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            look(inside)

    look(rows)
    counted: dict[str, tuple[int, int]] = {}
    for one in found:
        name = {"AMP (bf16)": "amp", "fused Adam": "fused_optimizer"}.get(str(one["pair"]).partition(": ")[2])
        if name is not None and "after_s" in one:
            held, pairs = counted.get(name, (0, 0))
            counted[name] = (held + bool(one["within_range"]), pairs + 1)
    assert counted == ON_GPU


def test_a_sentence_for_what_was_asked() -> None:
    assert coverage([], has_device=False) == ""
    one = coverage(["fused_optimizer", "amp"], has_device=False)
    assert "of fused_optimizer in 28 of 34 measured pairs of CPU programs" in one
    assert one.endswith("those of the others are not validated on hardware.")
    assert "of amp in 2 of 7 measured pairs on an H100 and an H200." in coverage(["amp"], has_device=True)
    assert "not validated" in coverage(["cuda_graphs"], has_device=True)
