"""What products attain, by arithmetic from their sizes and a machine whose rate is known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.verdict.test_account import MS, STEPS, drawn

from leadline.analysis.case import Case
from leadline.analysis.devicerates import with_threads
from leadline.profiles.profile import Profile
from leadline.verdict.attained import attained
from leadline.verdict.judge import judge

HOST = {"hostname": "here", "cpus": 2}
SIZE = 500
FLOPS = 2 * SIZE**3


def product(ms: float, kind: str = "float") -> Profile:
    ns = int(ms * MS) * STEPS
    shape = f'detail={{"shapes":[[{SIZE},{SIZE}],[{SIZE},{SIZE}]],"types":["{kind}","{kind}"]}}'
    profile = drawn(
        "python main @ /home/ada/train.py:42",
        f"  operator aten::mm | time={ns}/{STEPS} call_time={ns}/{STEPS} {shape}",
    )
    profile.meta["host"] = HOST
    profile.meta["available"] = {"torch": {"habits": {"threads": {"threads": 2, "cores": 2}}}}
    return profile


@pytest.fixture(autouse=True)
def rates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """100 GFLOP/s with two threads."""
    path = tmp_path / "rates.json"
    path.write_text(json.dumps({"rates": {with_threads(HOST, 2): {"fp32": 100e9}}}))
    monkeypatch.setenv("LEADLINE_RATES", str(path))


@pytest.mark.parametrize("share", [1.0, 0.5, 0.1])
def test_a_product_of_known_size_attains_what_arithmetic_says(share: float) -> None:
    found = attained(Case(product(FLOPS / 100e9 * 1e3 / share)))
    assert found is not None
    assert found.share == pytest.approx(share, rel=0.02)


def test_more_than_the_machine_can_do_is_not_said() -> None:
    """Then the rate is of another machine, or was measured beside other work."""
    assert attained(Case(product(FLOPS / 100e9 * 1e3 / 1.5))) is None


def test_a_type_or_a_number_of_threads_without_a_rate_says_nothing() -> None:
    assert attained(Case(product(8, "double"))) is None
    other = product(8)
    other.meta["available"]["torch"]["habits"]["threads"]["threads"] = 1
    assert attained(Case(other)) is None


def test_the_verdict_says_it() -> None:
    verdict = judge(product(9))
    assert verdict.kind == "compute"
    assert any("of the rate that large ones reach" in fact for fact in verdict.because)


def test_it_is_no_gain_and_known_causes_come_first() -> None:
    """A product of few rows is bound by reading its weights: no change of the program gives it the rate of large
    ones."""
    *first, last = judge(product(9)).because
    assert "of the rate that large ones reach" in last and first
    assert not any("gained" in fact for fact in (*first, last))
