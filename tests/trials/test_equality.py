"""What is equal, equal within the baseline's own spread, or different: runs written by hand, with known answers."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
import pytest

from leadline._dataclass import replace
from leadline.remedies.compared import of_tensors
from leadline.trials.equality import Spread, equality
from leadline.trials.model import DIFFERENT, EQUAL, UNKNOWN, WITHIN_SPREAD
from leadline.trials.run import Run

_LOSSES = [2.0 * 0.9**step for step in range(30)]


def _run(losses: Sequence[float], end: Sequence[float] = (1.0, 2.0), digest: str = "a", variant: str = "x") -> Run:
    record = {
        "values": [[step + 1, value] for step, value in enumerate(losses)],
        "digest": digest,
        "steps": len(losses),
    }
    return Run(variant, 0, record, begin=array("d", [0.0, 0.0]), end=array("d", end))


_BASE = _run(_LOSSES)
_ROUNDED = _run([one * (1 + 1e-6 * step) for step, one in enumerate(_LOSSES)], (1.0 + 1e-6, 2.0), "b", "float32")
_COARSE = _run([one * (1 + 1e-3) for one in _LOSSES], (1.02, 2.0), "c", "bfloat16")


def _kind(other: Run, spread: Spread, precision: str = "float32") -> str:
    return equality(_BASE, other, spread, precision).kind


def test_equal_to_the_bit() -> None:
    assert _kind(_run(_LOSSES), Spread()) == EQUAL


def test_other_bits_of_parameters_alone_are_seen() -> None:
    assert _kind(_run(_LOSSES, (1.0 + 1e-7, 2.0), "b"), Spread(rounded=(_ROUNDED,))) == WITHIN_SPREAD
    assert _kind(_run(_LOSSES, (1.5, 2.0), "b"), Spread(rounded=(_ROUNDED,))) == DIFFERENT


def test_rounding_is_within_the_spread_and_a_larger_learning_rate_is_not() -> None:
    reordered = _run([one * (1 + 2e-6 * step) for step, one in enumerate(_LOSSES)], (1.0, 2.0 + 2e-6), "d")
    assert _kind(reordered, Spread(rounded=(_ROUNDED,))) == WITHIN_SPREAD
    faster = _run([2.0 * 0.89**step for step in range(30)], (1.1, 2.2), "e")
    found = equality(_BASE, faster, Spread(rounded=(_ROUNDED,)), "float32")
    assert found.kind == DIFFERENT
    assert found.first_step == 2
    assert "a different loss from step 2 on" in found.sentence


def test_a_coarse_type_has_the_coarse_types_spread_only_where_it_is_used() -> None:
    coarse = _run([one * (1 + 2e-3) for one in _LOSSES], (1.03, 2.0), "d")
    spread = Spread(rounded=(_ROUNDED, _COARSE))
    assert _kind(coarse, spread, "bfloat16") == WITHIN_SPREAD
    assert _kind(coarse, spread) == DIFFERENT


def test_other_random_numbers_are_no_difference_and_a_longer_way_is() -> None:
    random = np.random.default_rng(0)
    drawn = [_run([one + random.normal(0, 0.02) for one in _LOSSES], (1.1, 2.0), str(at)) for at in range(2)]
    other = _run([one + random.normal(0, 0.01) for one in _LOSSES], (1.05, 2.0), "z")
    spread = Spread(rounded=(_ROUNDED,), redrawn=tuple(drawn))
    assert _kind(other, spread) == WITHIN_SPREAD
    assert _kind(other, Spread(rounded=(_ROUNDED,))) == DIFFERENT
    far = _run([one + 0.5 for one in _LOSSES], (1.05, 2.0), "z")
    assert _kind(far, spread) == DIFFERENT
    twice_as_far = _run([one + random.normal(0, 0.01) for one in _LOSSES], (1.4, 2.4), "z")
    assert _kind(twice_as_far, spread) == DIFFERENT


def test_not_a_number_is_different_unless_the_baseline_has_it_too() -> None:
    broken = [*_LOSSES[:10], *[float("nan")] * 20]
    assert _kind(_run(broken, digest="n"), Spread(rounded=(_ROUNDED,))) == DIFFERENT
    both = equality(_run(broken, digest="n"), _run(broken, digest="n"), Spread(), "float32")
    assert both.kind == EQUAL


def test_another_number_of_backward_passes_is_different() -> None:
    assert _kind(_run(_LOSSES[:15]), Spread()) == DIFFERENT


def test_without_values_nothing_is_said() -> None:
    found = equality(_run([], digest=""), _run([], digest=""), Spread(), "float32")
    assert found.kind == UNKNOWN


def test_parameters_too_large_to_compare_whole_are_compared_by_their_norms_too() -> None:
    def large(norm: float) -> Run:
        run = _run(_LOSSES)
        facts = {"norms": [1.0, norm], "compared": 1000, "parameters": 7_000_000_000, "bytes": 28_000_000_000}
        return replace(run, record={**run.record, **facts})

    equal = equality(large(3.0), large(3.0 * (1 + 1e-13)), Spread(), "float32")
    assert equal.kind == EQUAL
    assert "1,000 of 7,000,000,000 parameters, and in the norm of each" in equal.sentence
    assert equality(large(3.0), large(3.01), Spread(), "float32").kind != EQUAL


def test_results_of_which_only_a_digest_is_known_are_not_called_near() -> None:
    def only(digest: str) -> Run:
        return Run("x", 0, {"values": [], "digest": digest, "steps": 30})

    assert equality(only("a"), only("b"), Spread(), "float32").kind == UNKNOWN


def test_without_a_run_that_shows_what_rounding_does_a_small_difference_is_no_verdict() -> None:
    near, far = (_run([one * (1 + by) for one in _LOSSES], digest="z") for by in (1e-4, 0.1))
    assert _kind(near, Spread()) == UNKNOWN
    assert _kind(far, Spread()) == DIFFERENT


@pytest.mark.torch
def test_a_number_that_is_not_sampled_changes_the_norm() -> None:
    torch = pytest.importorskip("torch")
    weights = torch.ones(1_000_000)
    whole = of_tensors([weights], 1 << 30)
    before = of_tensors([weights], 1000)
    weights[1] = 5.0  # every third number or so is sampled, from the first on
    after = of_tensors([weights], 1000)
    assert "norms" not in whole
    assert before["digest"] == after["digest"]
    assert before["norms"] != after["norms"]
    assert before["compared"] < 1_000_000
    assert before["bytes"] == 4_000_000
