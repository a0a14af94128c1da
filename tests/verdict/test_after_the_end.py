"""What the interpreter calls when a program has ended is no part of its steps."""

from __future__ import annotations

from leadline.profiles.build import build

MS = 1_000_000


def test_finalizers_are_no_place_of_a_step() -> None:
    lib = "/usr/lib/python3.11"
    profile = build(
        f"""
process train.py | pid=5
  thread MainThread | tid=5 wall_ns={130 * MS}
    python <module> @ /home/ada/train.py:42 | cpu_sample={20 * MS}/20
      operator aten::mm | time={60 * MS}/10 call_time={60 * MS}/10
    python <module> @ /home/ada/train.py:44
      phase optimizer | time={10 * MS}/10 call_time={10 * MS}/10
    phase step | call_time={90 * MS}/9
    python finalize._exitfunc @ {lib}/weakref.py:666
      python _del_library @ {lib}/site-packages/torch/library.py:665 | cpu_sample={40 * MS}/40
""".strip("\n")
    )
    verdict = profile.verdict
    told = " ".join((verdict.sentence, *verdict.because, repr(verdict.account)))
    assert "library.py" not in told and "_del_library" not in told
    assert "train.py:42" in told
