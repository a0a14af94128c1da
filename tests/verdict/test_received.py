"""What is missing is said first: a source that lost more than one in a hundred, and a step that nothing explains."""

from __future__ import annotations

import pytest
from tests.verdict.test_account import MS, STEPS, drawn, operator, python

from leadline.profiles.build import build
from leadline.verdict.judge import judge
from leadline.verdict.text import as_lines


@pytest.mark.parametrize(
    ("kind", "lost", "said"),
    [
        ("samples_dropped", 100, "only 67 % of the CPU samples arrived (200 of 300)"),
        ("samples_dropped", 1, ""),
        ("memory_events_dropped", 20, "only 50 % of the allocations arrived (20 of 40)"),
        ("free_unknown", 500, ""),
        ("operator_end_unmatched", 10, "only 67 % of the operators arrived (20 of 30)"),
        ("events_dropped", 1000, ""),
    ],
)
def test_what_did_not_arrive_is_the_first_fact(kind: str, lost: int, said: str) -> None:
    text = f"""
        process train.py | pid=5
          thread MainThread | tid=5 wall_ns={10 * MS * STEPS}
            phase step | call_time={10 * MS * (STEPS - 1)}/{STEPS - 1}
            python main @ /home/ada/train.py:43 | cpu_sample={8 * MS * STEPS}/200
              operator aten::mm | time={MS * STEPS}/{STEPS} call_time={MS * STEPS}/{STEPS} alloc_bytes={9 * STEPS}/{STEPS}
            python main @ /home/ada/train.py:44
              phase optimizer | time={STEPS}/{STEPS} call_time={STEPS}/{STEPS}
    """
    verdict = judge(build(text, losses=[(kind, lost, "")]))
    counted = {one.source: one for one in verdict.received}
    assert counted["CPU samples"].arrived == 200
    assert sum(one.expected - one.arrived for one in verdict.received) == (lost if kind != "free_unknown" else 0)
    first = verdict.because[0] if verdict.because else ""
    assert len(set(verdict.because)) == len(verdict.because)
    assert first.startswith(said) if said else "arrived" not in " ".join(verdict.because)
    if said:
        assert any("arrived" in line for line in as_lines(verdict, 200)[:3])


@pytest.mark.parametrize(("known_ms", "kind"), [(3.0, "cannot_tell"), (4.2, "cannot_tell"), (5.6, "compute")])
def test_no_class_is_named_where_more_is_explained_by_nothing(known_ms: float, kind: str) -> None:
    """10 ms a step: a sentence that names a part which is smaller than what nothing explains contradicts its file."""
    verdict = judge(drawn(*operator("aten::mm", known_ms), *python("look", 0.3, 12)))
    assert verdict.kind == kind
