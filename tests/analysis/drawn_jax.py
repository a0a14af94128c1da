"""Drawn profiles of JAX's programs, a problem and its twin for each rule that is about them."""

from __future__ import annotations

from collections.abc import Callable

from leadline.profiles.build import build
from leadline.profiles.profile import Profile

MS = 1_000_000


def stepped(*lines: str, **habits: object) -> Callable[[], Profile]:
    """Ten marked steps of 10 ms; `lines` stand below line 43, `habits` is what the JAX provider noted."""

    def made() -> Profile:
        text = [
            "process train.py | pid=5",
            "  thread main | tid=5",
            "    python main @ /home/ada/train.py:43",
            *("      " + line for line in lines),
            f"    phase step | call_time={90 * MS}/9",
        ]
        profile = build("\n".join(text))
        profile.meta["available"] = {"jax": {"ok": True, "habits": habits}}
        return profile

    return made


def one_by_one(number: int) -> tuple[str, ...]:
    """Operations that JAX runs by itself, of two kinds."""
    return tuple(
        line
        for name in ("add", "multiply")
        for line in (
            f'phase compile | time={MS}/1 call_time={MS}/1 detail={{"function":"{name}","of":"jax"}}',
            f"operator jit({name}) | call_time={MS}/{number}",
            '  phase on another thread | detail={"pool":"XLA"}',
            f"    operator {name} | time={MS}/{number} call_time={MS}/{number}",
        )
    )


def step(*inside: str) -> tuple[str, ...]:
    """A program that is compiled from a function of the user's, with what its line 5 does beside a product."""
    return (
        f"operator jit(step) | call_time={20 * MS}/10",
        '  phase on another thread | detail={"pool":"XLA"}',
        "    python step @ /home/ada/train.py:5",
        f"      operator dot_general | time={50 * MS}/10 call_time={50 * MS}/10",
        *("      " + line for line in inside),
    )


PAIRS: dict[str, tuple[Callable[[], Profile], Callable[[], Profile], str, int]] = {
    "op_by_op": (
        stepped(*one_by_one(100), *step()),
        stepped(*one_by_one(20), *step()),
        "main runs 20 operations of JAX a step one by one",
        43,
    ),
    "host_callbacks": (
        stepped(*step(f"operator pure_callback | time={20 * MS}/10 call_time={20 * MS}/10")),
        stepped(*step(f"operator tanh | time={20 * MS}/10 call_time={20 * MS}/10")),
        "calls back into Python once a step (pure_callback), 20 % of the step",
        5,
    ),
}
"""By rule: the problem, its twin, words of the finding's title, and the line that it names."""
