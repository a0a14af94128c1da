"""The plugin itself: a file that contradicts itself fails the test that left it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.truth.invariants import contradictions
from tests.truth.plugin import complaints
from tests.truth.shares import shares_wrong, told_wrong

from leadline.profiles import write_profile
from leadline.profiles.build import build

GOOD = """
process p
  thread main | wall_ns=100 operator_ns=60 cpu_ns=90
    operator outer | time=20 call_time=60
      operator inner | time=40 call_time=40
"""


@pytest.mark.untrue(reason="it makes files that are wrong, to see them found")
def test_a_measured_file_that_contradicts_itself_is_found_once(tmp_path: Path) -> None:
    profile = build(GOOD.replace("wall_ns=100", "wall_ns=59"))
    write_profile(tmp_path / "drawn.leadline", profile)
    assert complaints([tmp_path]) == [], "drawn profiles are left alone"
    profile.meta["leadline"] = "0.1.0"
    write_profile(tmp_path / "measured.leadline", profile)
    assert any("main spent 60 ns of the 59 ns" in one for one in complaints([tmp_path]))
    assert complaints([tmp_path]) == []


@pytest.mark.parametrize(
    ("good", "bad", "said"),
    [
        ("", "", ""),
        ("inner | time=40", "inner | time=41", "operator outer (node 3) was called for 60 ns and holds 61 ns"),
        ("outer | time=20", "outer | time=19", "holds 59 ns"),
        ("cpu_ns=90", "cpu_ns=60000", "ran 60000 ns in 100 ns"),
        ("operator_ns=60", "operator_ns=101", "operators 101 and data 0 ns of 100 ns"),
        ("time=40 call_time=40", "time=40 call_time=40 free_bytes=8", "8 bytes were freed of 0 allocated"),
        (
            "operator inner | time=40 call_time=40",
            "api cudaDeviceSynchronize | time=40 call_time=40 sync_running_time=30000",
            "cudaDeviceSynchronize (node 4) waited 40 ns and spun 30000 ns",
        ),
        ("time=40 call_time=40", "time=40 call_time=40 sync_running_time=30000", "spun 30000 ns of the 90 ns"),
        (
            "time=40 call_time=40",
            "time=40 call_time=40 alloc_bytes=8 peak_live_bytes=9",
            "a peak of 9 bytes, with 8 allocated",
        ),
    ],
)
def test_every_invariant_can_fail(good: str, bad: str, said: str) -> None:
    found = contradictions(build(GOOD.replace(good, bad) if good else GOOD))
    assert any(said in one for one in found) if said else found == []


ROLLED = """
process p
  thread main | wall_ns=100 cpu_ns=50000
    region work | time=90 call_time=90000 running_time=RAN
"""


@pytest.mark.parametrize(("ran", "said"), [(89_000, ""), (300_000, "main ran 300000 ns in regions")])
def test_a_region_that_was_open_at_the_border_of_a_file_counts_whole_where_it_ends(ran: int, said: str) -> None:
    profile = build(ROLLED.replace("RAN", str(ran)))
    profile.meta["rolled"] = {"run_started_at_ns": 1}
    found = [one for one in contradictions(profile) if "in regions" in one]
    assert any(said in one for one in found) if said else found == []
    del profile.meta["rolled"]
    assert any("in regions" in one for one in contradictions(profile))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Phases  shares of 3 ms in all\n  forward  60.0%\n  backward  40.0%\nNext  130 of 100", ""),
        ("Time  shares of each thread's wall time\n  main thread  104.2%", "more than everything: main thread  104.2%"),
        ("Hottest call paths by time\n  1  20.4%  35.3 ms  a.py:1 f", "shares of what: Hottest call paths by time"),
        ("Phases  shares of 3 ms in all\n  compile  60.0%\n  inductor  40.2%", "phases hold more than everything"),
    ],
)
def test_a_share_of_nothing_or_of_more_than_everything_is_found(text: str, said: str) -> None:
    found = list(told_wrong(text))
    assert any(said in one for one in found) if said else found == []


def test_a_report_of_a_true_profile_stands_on_its_bases() -> None:
    assert list(shares_wrong(build(GOOD))) == []


OUTLIVES = """
process p
  thread main | wall_ns=100 operator_ns=60 cpu_ns=90
    python enter @ /a/context.py:1
      operator dynamo
        operator before | time=15 call_time=15
    python use @ /a/t.py:2
      operator dynamo | time=20 call_time=60
        operator after | time=25 call_time=25
"""


def test_the_times_of_an_operator_that_outlives_its_frame_add_up_over_its_places() -> None:
    assert contradictions(build(OUTLIVES)) == []
    for taken in (14, 16):
        own = f"before | time={taken} call_time={taken}"
        found = contradictions(build(OUTLIVES.replace("before | time=15 call_time=15", own)))
        assert any(
            f"operator dynamo was called for 60 ns and holds {45 + taken} ns in 2 places" in one for one in found
        )


def test_a_pause_that_a_thread_was_seen_in_is_found() -> None:
    profile = build(GOOD.replace("wall_ns=100", "wall_ns=90000"))
    (process,) = profile.processes
    profile.meta["processes"] = [{"pid": process.pid, "wall_ns": 100_000, "paused_ns": 10_000}]
    assert contradictions(profile) == []
    profile.meta["processes"][0]["paused_ns"] = 40_000
    (sentence,) = contradictions(profile)
    assert "main was seen 90000 ns of 100000 ns with pauses of 40000 ns" in sentence


def test_events_that_cross_are_found() -> None:
    events = "kind node start_ns duration_ns thread\noperator a 10 10 0\noperator a 15 10 0"
    (sentence,) = contradictions(build("operator a #a", events=events))
    assert "ends 5 ns after the one it began in" in sentence
