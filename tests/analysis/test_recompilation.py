"""What to do where a function is compiled again, by what is known of the reason."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from leadline.analysis.analyze import analyze
from leadline.profiles.build import build
from leadline.profiles.profile import Profile

MS = 1_000_000
SAME = "the same shapes of arguments: other static arguments, another function of this name, or other settings"


def compiled(change: str, file: str = "/home/ada/train.py", function: str = "update", **habits: object) -> Profile:
    """Ten steps, in each of which a function is compiled."""
    detail, again = (
        json.dumps(one, separators=(",", ":")).replace(" ", "\\u0020")
        for one in ({"function": function, "of": "jax"}, {"function": function, "change": change})
    )
    profile = build(
        f"""
process train.py | pid=5
  thread main | tid=5
    python main @ {file}:1
      phase compile | time={900 * MS}/10 call_time={900 * MS}/10 detail={detail}
        phase compiled again | call_time=0/9 detail={again}
      operator jit({function}) | time={90 * MS}/10 call_time={90 * MS}/10
    phase step | call_time={999 * MS}/10
""".lstrip("\n")
    )
    profile.meta["available"] = {"jax": {"ok": True, "habits": habits}}
    return profile


def first_fix(profile: Profile) -> str:
    return next(one.do for one in profile.verdict.fixes if one.rule == "recompilation")


@pytest.mark.parametrize(
    ("change", "begins", "pads"),
    [
        (SAME, "Take arguments with another value each time out of static_argnames", False),
        ("args[0]: f32[2,2], was f32[7,2]", "Pad to few sizes", True),
        ("", "Take numbers out of static_argnames", True),
    ],
)
def test_sizes_are_padded_only_where_shapes_may_differ(change: str, begins: str, pads: bool) -> None:
    fix = first_fix(compiled(change))
    assert fix.startswith(begins)
    assert ("ad to few sizes" in fix) is pads


def test_a_noted_argument_is_named_in_the_title_and_in_what_to_do() -> None:
    reason = {"function": "update", "kind": "static", "text": "beta: 0.0275, was 0.025", "times": 9}
    profile = compiled(SAME, recompiled=[reason])
    (found,) = analyze(profile, ["recompilation"])
    assert found.title.endswith("of the run (beta: 0.0275, was 0.025)")
    assert first_fix(profile).startswith("Take beta out of static_argnums and static_argnames")


@pytest.mark.parametrize(
    ("source", "begins"), [("def update(x):", "Take arguments"), ("def main():", "Put what calls it")]
)
def test_no_argument_of_a_function_of_jax_itself_is_to_be_taken_out(tmp_path: Path, source: str, begins: str) -> None:
    (tmp_path / "train.py").write_text(f"{source}\n    pass\n")
    assert first_fix(compiled(SAME, f"{tmp_path}/train.py")).startswith(begins)


def test_without_the_source_a_private_name_is_of_jax_itself() -> None:
    assert first_fix(compiled(SAME, function="_normal")).startswith("Put what calls it")
