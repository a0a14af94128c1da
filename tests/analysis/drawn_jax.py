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
            f"process train.py | pid=5 start_ns=0 end_ns={4 * 10**18}",
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


def turns(number: int) -> int:
    """For the lines of a loop: notes of one that JAX has unrolled name them."""
    total = 0
    for turn in range(number):
        total += turn
    return total


_LOOP = turns.__code__.co_firstlineno + 3
_COMPILED = f'phase compile | time={2000 * MS}/1 call_time={2000 * MS}/1 detail={{"function":"step"}}'


def unrolled(line: int) -> list[dict[str, object]]:
    group = {"turns": 200, "operations": 400, "primitive": "add", "frames": [[__file__, line, "turns"]]}
    return [{"function": "step", "operations": 500, "groups": [group]}]


def constant(size: int) -> list[dict[str, object]]:
    return [{"function": "step", "bytes": size, "shape": "float32[9,9]", "frames": [["/home/ada/train.py", 7, "step"]]}]


def doubles(promoted: bool) -> list[dict[str, object]]:
    frames = [["/home/ada/train.py", 5, "step"]]
    note = {"function": "step", "operations": 2, "of": 10, "arguments": ["x"], "promoted": promoted, "frames": frames}
    return [note]


def kept(size: int) -> list[dict[str, object]]:
    return [{"function": "step", "bytes": size, "places": [0, 1], "arguments": ["params", "state"]}]


def copied(size: int, detail: str) -> tuple[str, ...]:
    return (f"operator NumPy array to the device | time={MS}/10 call_time={MS}/10 copy_bytes={size}/10{detail}",)


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
    "captured_constants": (
        stepped(*step(), _COMPILED, constants=constant(8 << 20)),
        stepped(*step(), _COMPILED, constants=constant(1 << 20)),
        "jit(step) holds 8.00 MiB of arrays as constants",
        7,
    ),
    "unrolled_loop": (
        stepped(*step(), _COMPILED, unrolled=unrolled(_LOOP + 1)),
        stepped(*step(), _COMPILED, unrolled=unrolled(_LOOP - 2)),  # no loop in sight
        "A loop of 200 iterations is unrolled into jit(step): 400 of its 500 operations",
        _LOOP,
    ),
    "double_precision": (
        stepped(*step(), doubles=doubles(True)),
        stepped(*step(), doubles=doubles(False)),
        "jit(step) computes in double precision, 10 % of the step: numbers of single precision are turned into doubles",
        5,
    ),
    "donation": (
        stepped(*step(), donatable=kept(32 << 20)),
        stepped(*step(), donatable=kept(1 << 20)),
        "jit(step) keeps 32.0 MiB of old arguments while it makes new ones",
        43,
    ),
    "host_copies": (
        stepped(*step(), *copied(40 << 20, ' detail={"again":true}')),
        stepped(*step(), *copied(40 << 20, "")),
        "The same NumPy data is copied to the device once a step, 4.00 MiB",
        43,
    ),
}
"""By rule: the problem, its twin, words of the finding's title, and the line that it names."""
