"""CTF of other machines and damaged CTF: read, or a counted loss, or one sentence; never a wrong picture in silence."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.importers.ctf_files import Machine, Packet, begin, end, switch, waking, write

from leadline.cli.main import main
from leadline.profiles import Profile
from leadline.schema import LossKind
from leadline.trace.importers import import_traces
from leadline.trace.tables import TraceError

IDLE, MAIN, HOG = ("swapper/0", 0), ("main", 100), ("hog", 900)
SWITCHES = [
    switch(1_000, IDLE, 0, MAIN),
    switch(3_000, MAIN, 0, HOG),
    switch(7_000, HOG, 0, MAIN),
    switch(8_000, MAIN, 1, IDLE),
    waking(9_500, *MAIN),
    switch(10_000, IDLE, 0, MAIN),
]
CALLS = [begin(1_000, "outer"), begin(2_000, "inner"), end(3_000), end(9_000)]
OTHER = "1f2f7b4e-7a3a-4b0e-9a52-6f1d2c3b4a59"
HOUR = 3_600 * 10**9


@pytest.fixture(autouse=True)
def _needs_the_reader() -> None:
    if shutil.which("babeltrace2") is None:
        pytest.skip("reading CTF needs the program babeltrace2 (Debian: babeltrace2)")


def kernel(folder: Path, *packets: Packet, machine: Machine | None = None) -> Path:
    return write(folder, machine or Machine(), [packets])


def user(folder: Path, *packets: Packet, **about: object) -> Path:
    return write(folder, Machine(domain="ust", **about), [packets or [Packet(CALLS)]])  # type: ignore[arg-type]


def sentences(profile: Profile) -> str:
    return "; ".join(profile.meta["kernel"]["sentences"])


def spans(profile: Profile) -> list[tuple[int, int]]:
    events = profile.events
    return list(zip(events["start_ns"].tolist(), events["duration_ns"].tolist(), strict=True))


@pytest.mark.parametrize("order", ["le", "be"])
@pytest.mark.parametrize("word", [32, 64])
def test_every_byte_order_and_width_of_words_says_the_same(tmp_path: Path, order: str, word: int) -> None:
    states = import_traces([kernel(tmp_path / "a", Packet(SWITCHES), machine=Machine(order, word))]).window.states
    mine = states["tid"] == 100
    assert list(zip(states["state"][mine], states["duration_ns"][mine].tolist(), strict=True)) == [
        ("running", 2_000),
        ("runnable", 4_000),
        ("running", 1_000),
        ("blocked", 1_500),
        ("runnable", 500),
    ]
    assert states["other_name"][mine][1] == "hog"
    called = import_traces([user(tmp_path / "b", order=order, word=word)])
    assert spans(called) == [(0, 8_000), (1_000, 1_000)]


# ---------------------------------------------------------------------- what was lost


def test_discarded_events_are_a_counted_loss(tmp_path: Path) -> None:
    packets = Packet(SWITCHES[:3]), Packet(SWITCHES[3:], discarded=500, number=1)
    losses = import_traces([kernel(tmp_path / "a", *packets)]).losses
    assert [(loss.kind, loss.count) for loss in losses] == [(LossKind.KERNEL_EVENTS_DROPPED, 500)]


def test_a_counter_of_32_bits_that_begins_anew_counts_on(tmp_path: Path) -> None:
    packets = Packet(SWITCHES[:3], discarded=(1 << 32) - 10), Packet(SWITCHES[3:], discarded=90, number=1)
    losses = import_traces([kernel(tmp_path / "a", *packets, machine=Machine(word=32))]).losses
    assert [loss.count for loss in losses] == [100]


def test_lost_packets_are_told_of_kernels_and_of_programs(tmp_path: Path) -> None:
    found = import_traces([kernel(tmp_path / "a", Packet(SWITCHES[:3]), Packet(SWITCHES[3:], number=4))])
    assert "lost 3 packets of events" in sentences(found)
    assert [loss.kind for loss in found.losses] == [LossKind.KERNEL_UNSEEN]
    called = import_traces([user(tmp_path / "b", Packet(CALLS[:2]), Packet(CALLS[2:], number=2))])
    assert ["lost 1 packets of events" in loss.detail for loss in called.losses] == [True]
    assert spans(called) == [(0, 8_000), (1_000, 1_000)], "what is there is read"


def test_an_end_that_was_lost_is_told(tmp_path: Path) -> None:
    called = import_traces([user(tmp_path / "a", Packet(CALLS[:2]), Packet(CALLS[3:], discarded=1, number=1))])
    told = " ".join(loss.detail for loss in called.losses)
    assert "discarded 1 events" in told
    assert "1 events have no end" in told


def test_a_cut_stream_is_read_up_to_there_or_refused_in_a_sentence(tmp_path: Path, capsys) -> None:
    folder = user(tmp_path / "a", Packet(CALLS), Packet([begin(10_000 + at, "more") for at in range(50)], number=1))
    whole = (folder / "stream_0").read_bytes()
    for length in (10, 60, len(whole) // 2, len(whole) - 3):
        (folder / "stream_0").write_bytes(whole[:length])
        assert main(["import", str(folder), "-o", str(tmp_path / "x.leadline")]) == 2
        said = capsys.readouterr().err
        assert "a stream is cut off in the middle of a packet" in said
        assert len(said.strip().splitlines()) == 1


@pytest.mark.parametrize("domain", ["ust", "kernel"])
def test_a_trace_without_events_is_refused(tmp_path: Path, domain: str) -> None:
    with pytest.raises(TraceError, match="holds no"):
        import_traces([write(tmp_path / "a", Machine(domain=domain), [[Packet([])]])])


def test_a_trace_with_nothing_that_is_known_names_what_it_has(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"it has sched_switch, sched_waking"):
        import_traces([user(tmp_path / "a", Packet(SWITCHES))])
    with pytest.raises(TraceError, match="holds no event of the scheduler"):
        import_traces([kernel(tmp_path / "b", Packet(CALLS))])


# ---------------------------------------------------------------------- clocks


@pytest.mark.parametrize("within", [True, False])
def test_a_clock_that_goes_back_ends_the_trace_and_says_so(tmp_path: Path, within: bool) -> None:
    back = switch(500, MAIN, 1, IDLE)
    packets = [Packet([*SWITCHES, back])] if within else [Packet(SWITCHES), Packet([back], number=1)]
    found = import_traces([kernel(tmp_path / "a", *packets)])
    assert "its clock goes back" in sentences(found)
    assert len(found.table("kernel_events")["time_ns"]) == len(SWITCHES), "what came before is kept"


def test_a_clock_that_jumps_ahead_is_told(tmp_path: Path) -> None:
    found = import_traces([kernel(tmp_path / "a", Packet([*SWITCHES, switch(HOUR, MAIN, 1, IDLE)]))])
    assert "nothing was recorded for 3,600 s" in sentences(found)
    called = import_traces([user(tmp_path / "b", Packet([*CALLS, begin(HOUR, "late"), end(HOUR + 1_000)]))])
    assert any("nothing was recorded for 3,600 s" in loss.detail for loss in called.losses)


def test_an_idle_minute_among_others_is_no_jump(tmp_path: Path) -> None:
    minutes = [one for at in range(1, 40) for one in (begin(at * HOUR // 60, "a"), end(at * HOUR // 60 + 1_000))]
    assert not import_traces([user(tmp_path / "a", Packet(minutes))]).losses


def test_two_hosts_without_a_date_are_refused(tmp_path: Path, capsys) -> None:
    ours, theirs = user(tmp_path / "a", offset_ns=None), user(tmp_path / "b", offset_ns=None, boot_id=OTHER)
    assert main(["import", str(ours), str(theirs), "-o", str(tmp_path / "x.leadline")]) == 2
    assert "has no date for its clock" in capsys.readouterr().err
    assert not (tmp_path / "x.leadline").exists()
    with pytest.raises(TraceError, match="no date"):
        import_traces([user(tmp_path / "c"), theirs])
    again = user(tmp_path / "d", Packet([begin(5_000, "later"), end(6_000)]), offset_ns=None)
    one = import_traces([ours, again])
    assert spans(one) == [(1_000, 8_000), (2_000, 1_000), (5_000, 1_000)], "one machine has one clock"


def test_hosts_of_which_one_began_later_lie_apart_by_that(tmp_path: Path) -> None:
    """Also where both began within a minute, which tells processes of ours that they are of one machine."""
    later = [begin(1_000, "late"), end(2_000)]
    found = import_traces(
        [user(tmp_path / "a"), user(tmp_path / "b", Packet(later), boot_id=OTHER, offset_ns=10**18 + 5 * 10**9)]
    )
    starts = found.events["start_ns"].tolist()
    assert starts[2] - starts[0] == 5 * 10**9


def test_ranks_whose_traces_began_apart_stay_apart(tmp_path: Path) -> None:
    for rank, late in ((0, 0), (1, 5_000_000)):
        rows = [
            {"ph": "X", "cat": "cpu_op", "name": f"op{at}", "pid": rank, "tid": 1, "ts": 1.7e15 + late + at, "dur": 1}
            for at in range(3)
        ]
        told = {"schemaVersion": 1, "distributedInfo": {"rank": rank, "world_size": 2}, "traceEvents": rows}
        (tmp_path / f"{rank}.json").write_text(json.dumps(told), encoding="utf-8")
    found = import_traces([tmp_path / "0.json", tmp_path / "1.json"])
    starts = found.events["start_ns"].tolist()
    assert starts[3] - starts[0] == 5 * 10**9


def test_the_kernel_of_another_machine_is_refused_beside_a_program(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="of another machine"):
        import_traces([user(tmp_path / "a"), kernel(tmp_path / "b", Packet(SWITCHES), machine=Machine(boot_id=OTHER))])
    both = import_traces([user(tmp_path / "c"), kernel(tmp_path / "d", Packet(SWITCHES))])
    assert len(both.table("kernel_events")["time_ns"]) == len(SWITCHES)
