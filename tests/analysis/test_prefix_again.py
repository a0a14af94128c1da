"""Text that is generated without a cache: each token computes all before it again."""

from __future__ import annotations

import pytest
from tests.analysis.test_findings import MS, training

from leadline.analysis.analyze import analyze

GENERATE = "python generate @ /usr/lib/python3.11/site-packages/transformers/generation/utils.py:9"


def found(lengths: dict[int, int], *above: str, trained: bool = False):
    """Of embeddings of 4 rows, so often of each length."""
    inside = ["python main @ /home/ada/serve.py:43", *above, "module model [Net]"]
    lines = [f"{'  ' * at}{one}" for at, one in enumerate(inside)]
    indent = "  " * len(inside)
    for length, calls in lengths.items():
        detail = f'detail={{"shapes":[[4000,192],[4,{length}]]}}'
        lines.append(
            f"{indent}operator aten::embedding | time={100 * calls}/{calls} call_time={100 * calls}/{calls} {detail}"
        )
    lines.append(f"{indent}operator aten::linear | time={80 * MS}/100 call_time={80 * MS}/100")
    if trained:
        lines += [f"{indent}  phase backward", f"{indent}    operator MmBackward0 | time={MS}/10 call_time={MS}/10"]
    return [one for one in analyze(training(*lines), ["redundant_work"]) if "whole sequence again" in one.title]


GROWS = dict.fromkeys(range(20, 40), 10)


@pytest.mark.parametrize(
    ("lengths", "above", "told"),
    [
        (GROWS, (), True),
        ({20: 10, 1: 190}, (), False),  # with a cache
        ({20: 31, 21: 24, 22: 27, 23: 40, 24: 22, 25: 35, 26: 29, 27: 33, 28: 21, 29: 30}, (), False),  # any lengths
        (dict.fromkeys(range(20, 40, 3), 10), (), False),
        (dict.fromkeys(range(20, 40), 1), (), False),  # each once: sorted by length
        (
            {20: 31, 21: 24, 25: 27, 26: 40, 29: 22, 31: 35, 33: 29, 36: 33},
            (GENERATE,),
            True,
        ),  # of prompts of any length
        ({20: 10, 25: 10, 31: 10, 1: 600}, (GENERATE,), False),
    ],
)
def test_sequences_that_grow_by_one_are_told(lengths: dict[int, int], above: tuple[str, ...], told: bool) -> None:
    assert bool(found(lengths, *above)) == told


def test_batches_of_training_are_none() -> None:
    assert not found(GROWS, trained=True)
    (one,) = found(GROWS)
    assert one.remedy.startswith("Keep the keys and values") and one.lines[0].line == 43
    assert one.gain.expected_ns > 0
