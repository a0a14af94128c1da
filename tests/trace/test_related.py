"""Windows of machines that are related by messages: events lie where they were, and what was not compared is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from leadline.cli.main import main
from leadline.profiles import Profile, open_profile, write_profile
from leadline.profiles.builder import ProfileBuilder, synthetic_meta
from leadline.trace.clock_sync import Compared, on_related_clocks, read_relations
from leadline.trace.importers import import_traces
from leadline.trace.tables import TraceError

OURS, THEIRS = "11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"
OFFSET, DRIFT, REFERENCE = 5_000_000_000_000, 40e-6, 1_000_000_000
REALTIME = 1_700_000_000 * 10**9


def shown_by_theirs(ours_ns: int) -> int:
    since = ours_ns - REFERENCE
    return ours_ns + OFFSET + round(DRIFT * since)


def machine(pid: int, boot: str, begins: list[int], realtime_less_monotonic: int) -> Profile:
    """A process with an operator of 1 ms at each of these times of its own clock."""
    builder = ProfileBuilder()
    process = builder.process(f"rank {pid}", pid=pid, start_ns=REALTIME + pid)
    thread = builder.thread(process, "main", tid=pid)
    node = builder.child(builder.node_of_thread(thread), builder.frame("operator", f"op{pid}"))
    for begin in begins:
        builder.event("operator", node, begin, 1_000_000, thread=thread)
    builder.kernel_event("switch_in", begins[0], tid=pid, cpu=0, process=process)
    meta = synthetic_meta()
    clock = {"monotonic_ns": 1_000, "realtime_ns": 1_000 + realtime_less_monotonic, "uncertainty_ns": 50}
    record = {"pid": pid, "identity": f"{boot}.{pid}", "started_at_ns": REALTIME + pid, "boot_id": boot, "clock": clock}
    meta["processes"] = [record]
    return builder.profile(meta)


TIMES = [2_000_000_000, 2_500_000_000, 60_000_000_000]


def two() -> tuple[Profile, Profile]:
    """The same moments on both; the second machine's CLOCK_REALTIME is 3 s wrong."""
    first = machine(1, OURS, TIMES, REALTIME)
    second = machine(2, THEIRS, [shown_by_theirs(one) for one in TIMES], REALTIME - OFFSET + 3_000_000_000)
    return first, second


RELATION = Compared(OURS, THEIRS, REFERENCE, float(OFFSET), DRIFT, 20_000.0)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_the_same_moments_lie_together_in_spite_of_drift_and_a_wrong_wall_clock(tmp_path: Path, order) -> None:
    profiles = two()
    paths = []
    for number in order:
        paths.append(tmp_path / f"node{number}.leadline")
        write_profile(paths[-1], profiles[number])
    together = import_traces(paths, [RELATION])
    starts = together.events["start_ns"].reshape(-1, 2)
    assert np.abs(starts[:, 0] - starts[:, 1]).max() <= 2, "to the rounding"
    by_wall_clock = import_traces(paths).events["start_ns"]
    assert np.ptp(by_wall_clock[:2]) > 400_000_000, "which CLOCK_REALTIME alone does not give"
    assert np.ptp(together.table("kernel_events")["time_ns"]) <= 2
    assert sorted(together.window.clocks["method"].tolist()) == ["readings", "udp messages"]


def test_a_machine_that_was_not_compared_is_refused() -> None:
    first, second = two()
    other = machine(3, "33333333-3333-3333-3333-333333333333", TIMES, REALTIME)
    with pytest.raises(TraceError, match="was not compared with the others"):
        on_related_clocks([first, second, other], [RELATION])
    with pytest.raises(TraceError, match="no profile is of the machine that the others were compared with"):
        on_related_clocks([second, other], [RELATION])


def test_what_was_moved_before_is_refused() -> None:
    first, second = on_related_clocks(two(), [RELATION])
    with pytest.raises(TraceError, match="aligned with other machines already"):
        on_related_clocks([first, second], [RELATION])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is empty; write it with"),
        ("{}", "line 1 of clocks.json is not an output of leadline clock-sync --format json"),
        ("nonsense", "line 1 of clocks.json is not an output"),
        (
            json.dumps(
                {"our_boot_id": "a", "boot_id": "b", "reference_ns": 0, "offset_ns": 0, "drift": 2, "half_width_ns": 1}
            ),
            "do not drift by 2",
        ),
    ],
)
def test_files_that_are_no_comparison_are_refused(text: str, sentence: str) -> None:
    with pytest.raises(TraceError, match=sentence):
        read_relations(text, "clocks.json")


def test_the_verb_reads_what_the_other_verb_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number, profile in enumerate(two()):
        write_profile(tmp_path / f"{number}.leadline", profile)
    line = {"our_boot_id": OURS, "boot_id": THEIRS, "reference_ns": REFERENCE, "offset_ns": OFFSET, "drift": DRIFT}
    (tmp_path / "clocks.json").write_text(
        json.dumps({**line, "half_width_ns": 20_000.0, "pairs": 9}) + "\n", encoding="utf-8"
    )
    files = [str(tmp_path / f"{number}.leadline") for number in (0, 1)]
    assert (
        main(["import", *files, "--clocks", str(tmp_path / "clocks.json"), "-o", str(tmp_path / "job.leadline")]) == 0
    )
    assert len(open_profile(tmp_path / "job.leadline").events["start_ns"]) == 6
    assert main(["import", *files, "--clocks", str(tmp_path / "none"), "-o", str(tmp_path / "job.leadline")]) == 2
    assert "Cannot read" in capsys.readouterr().err
