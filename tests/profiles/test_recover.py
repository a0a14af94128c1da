"""Part directories of runs that ended in every way become one file, and the file says what is missing."""

import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from tests.profiles.archives import members_of, packed

from leadline.cli import recover as verb
from leadline.cli.main import main
from leadline.profiles import Profile, ProfileFileError, open_profile
from leadline.profiles.build import build
from leadline.profiles.draw import draw
from leadline.profiles.recover import default_output, recover_part, write_recovered
from leadline.schema import LossKind

pytestmark = pytest.mark.untrue(reason="the segments are drawn, with times of threads that nobody ran")


def worker(pid: int, time: int) -> Profile:
    return build(
        f"""
        process train.py | pid={pid} complete=0
          thread MainThread
            operator aten::add | time={time}
        """
    )


def traced(pid: int, more: str = "") -> Profile:
    return build(
        f"""
        process train.py | pid={pid} complete=0
          thread MainThread
            operator aten::add #add | time=5
            {more}
        """,
        events="""
        start_ns duration_ns kind     node thread
        10       5           operator add  0
        """,
    )


def leave(part: Path, pid: int, *, time: int = 1, complete: bool = True, segment: bytes | None = None) -> None:
    """What one process leaves behind; an empty `segment` is none."""
    part.mkdir(exist_ok=True)
    record = {
        "pid": pid,
        "parent_pid": 1,
        "complete": complete,
        "program": {"argv": ["python", "train.py"]},
        "wall_ns": 5,
    }
    (part / f"{pid}-{pid}000.json").write_text(json.dumps(record))
    data = packed(members_of(worker(pid, time), meta=False), zipfile.ZIP_STORED) if segment is None else segment
    if data:
        (part / f"{pid}-{pid}000.segment").write_bytes(data)


def leave_events_beside(part: Path, pid: int) -> None:
    """Move the events of the process's segment into the file beside it."""
    segment = part / f"{pid}-{pid}000.segment"
    with zipfile.ZipFile(segment) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    events = {name: data for name, data in members.items() if name.startswith("events.")}
    assert events
    segment.write_bytes(
        packed({name: data for name, data in members.items() if name not in events}, zipfile.ZIP_STORED)
    )
    segment.with_suffix(".events").write_bytes(packed(events, zipfile.ZIP_STORED))


@pytest.fixture
def part(tmp_path: Path) -> Path:
    folder = tmp_path / "run.leadline.part"
    folder.mkdir()
    session = {"format": 1, "output": str(tmp_path / "run.leadline"), "argv": ["train.py"], "started_at_ns": 7}
    (folder / "session.json").write_text(json.dumps(session))
    return folder


def incomplete(profile: Profile) -> dict[int, str]:
    return {
        profile.processes[loss.process].pid: loss.detail
        for loss in profile.losses
        if loss.kind == LossKind.PROCESS_INCOMPLETE
    }


def test_processes_that_stopped_in_order_are_merged_without_a_loss(part: Path) -> None:
    leave(part, 11, time=5)
    leave(part, 12, time=7)
    done = recover_part(part)
    assert (done.complete, done.partial, done.missing) == (2, 0, 0)
    assert draw(done.profile, ["time"]) == (
        "process train.py\n  thread MainThread\n    operator aten::add | time=5\n"
        "process train.py\n  thread MainThread\n    operator aten::add | time=7\n"
    )
    assert [process.complete for process in done.profile.processes] == [True, True]
    assert done.profile.losses == []
    assert done.profile.meta["complete"] is True
    assert done.profile.meta["program"]["argv"] == ["train.py"]


def test_a_killed_process_is_taken_from_its_last_segment_and_says_so(part: Path) -> None:
    leave(part, 11)
    leave(part, 12, complete=False)
    done = recover_part(part)
    assert (done.complete, done.partial, done.missing) == (1, 1, 0)
    assert {process.pid: process.complete for process in done.profile.processes} == {11: True, 12: False}
    assert list(incomplete(done.profile)) == [12]
    assert "ended without stopping" in incomplete(done.profile)[12]
    assert done.profile.meta["complete"] is False


def test_where_nobody_saw_the_end_the_last_segment_ends_the_run(part: Path) -> None:
    (part / "11-11000.segment").write_bytes(
        segment_of(
            build(
                """
        process train.py | pid=11 complete=0 start_ns=8 end_ns=97
          thread MainThread | wall_ns=85
            operator aten::add | time=5
        """
            )
        )
    )
    done = recover_part(part)
    assert done.profile.meta["wall_ns"] == 97 - 7  # the session began at 7
    assert done.profile.meta["complete"] is False


def segment_of(profile: Profile) -> bytes:
    return packed(members_of(profile, meta=False), zipfile.ZIP_STORED)


def test_events_beside_the_segment_are_found(part: Path) -> None:
    leave(part, 11, complete=False, segment=segment_of(traced(11)))
    leave_events_beside(part, 11)
    profile = recover_part(part).profile
    assert profile.table("events")["start_ns"].tolist() == [10]
    assert profile.tree.node(int(profile.table("events")["node"][0])).name == "aten::add"


def test_a_process_killed_between_segment_and_events_keeps_the_earlier_events(part: Path) -> None:
    leave(part, 11, complete=False, segment=segment_of(traced(11)))
    leave_events_beside(part, 11)
    later = segment_of(traced(11, more="operator aten::mm | time=7"))
    with zipfile.ZipFile(io.BytesIO(later)) as archive:
        kept = {name: archive.read(name) for name in archive.namelist() if not name.startswith("events.")}
    (part / "11-11000.segment").write_bytes(packed(kept, zipfile.ZIP_STORED))
    profile = recover_part(part).profile
    assert len(profile.tree.find(name="aten::mm")) == 1
    assert profile.tree.node(int(profile.table("events")["node"][0])).name == "aten::add"


def test_events_that_a_whole_segment_has_itself_are_not_counted_twice(part: Path) -> None:
    leave(part, 11, segment=segment_of(traced(11)))
    whole = (part / "11-11000.segment").read_bytes()
    leave_events_beside(part, 11)
    (part / "11-11000.segment").write_bytes(whole)
    assert recover_part(part).profile.table("events")["start_ns"].tolist() == [10]


def test_events_that_cannot_be_read_cost_a_loss_and_nothing_else(part: Path) -> None:
    leave(part, 11, segment=segment_of(traced(11)))
    leave_events_beside(part, 11)
    (part / "11-11000.events").write_bytes(b"PK")
    profile = recover_part(part).profile
    assert len(profile.tree.find(name="aten::add")) == 1
    assert [(loss.kind, loss.count) for loss in profile.losses] == [(LossKind.EVENTS_DROPPED, 1)]
    assert "is cut off" in profile.losses[0].detail


def test_a_process_without_a_side_file_is_not_lost(part: Path) -> None:
    leave(part, 11)
    (part / "11-11000.json").unlink()
    done = recover_part(part)
    assert (done.partial, len(done.profile.tree.find(name="aten::add"))) == (1, 1)


@pytest.mark.parametrize(
    ("segment", "sentence"),
    [
        (b"", "ended before it had written anything"),
        (b"PK", "is cut off"),
        (packed(members_of(worker(12, 1), meta=False))[:-500], "is cut off"),
        (packed({**members_of(worker(12, 1), meta=False), "nodes.parent.npy": b"x"}), "ends within its header"),
    ],
)
def test_a_segment_that_cannot_be_read_leaves_the_others_and_a_loss(part: Path, segment: bytes, sentence: str) -> None:
    leave(part, 11)
    leave(part, 12, segment=segment)
    done = recover_part(part)
    assert (done.complete, done.missing) == (1, 1)
    assert sentence in incomplete(done.profile)[12]
    assert [process.name for process in done.profile.processes] == ["train.py", "python train.py"]
    assert done.profile.meta["complete"] is False


def test_what_holds_nothing_is_refused(tmp_path: Path, part: Path) -> None:
    with pytest.raises(ProfileFileError, match="holds no segment"):
        recover_part(part)
    leave(part, 12, segment=b"PK")
    with pytest.raises(ProfileFileError, match="Nothing can be recovered"):
        recover_part(part)
    with pytest.raises(ProfileFileError, match="part directory"):
        recover_part(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ProfileFileError, match="is not a part directory"):
        recover_part(tmp_path / "empty")


@pytest.mark.parametrize(
    "record", [b"", b"[", b"[1]", b"[" * 50_000, b'{"program": 3, "cost": [], "pid": "x", "exit": 1}']
)
def test_a_side_file_that_makes_no_sense_does_not_stop_it(part: Path, record: bytes) -> None:
    leave(part, 11)
    leave(part, 12)
    (part / "12-12000.json").write_bytes(record)
    (part / "session.json").write_bytes(record)
    write_recovered(part, part.with_name("out.leadline"))
    assert len(open_profile(part.with_name("out.leadline")).tree.find(name="aten::add")) == 2


def test_the_verb_makes_the_file_beside_the_directory(part: Path, capsys: pytest.CaptureFixture[str]) -> None:
    leave(part, 11)
    leave(part, 12, complete=False)
    assert main(["recover", str(part)]) == 0
    output = part.with_name("run.leadline")
    assert len(open_profile(output).processes) == 2
    said = capsys.readouterr().out
    assert f"Wrote {output}: processes: 1 complete, 1 up to its last segment." in said
    assert part.is_dir()


def test_the_verb_names_a_file_that_the_terminal_cannot_write(part: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    leave(part, 11)
    terminal = io.TextIOWrapper(io.BytesIO(), "latin-1")
    monkeypatch.setattr(sys, "stdout", terminal)
    assert main(["recover", str(part), "-o", str(part.with_name("漢.leadline"))]) == 0
    terminal.flush()
    assert b"?.leadline: processes: 1 complete" in terminal.buffer.getvalue()
    assert part.with_name("漢.leadline").exists()


def test_the_verb_says_why_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verb.__doc__
    assert main(["recover", str(tmp_path), "-o", str(tmp_path / "x.leadline")]) == 2
    assert "is not a part directory" in capsys.readouterr().err
    assert not (tmp_path / "x.leadline").exists()


@pytest.mark.parametrize(
    ("directory", "output"),
    [
        ("a.leadline.part", "a.leadline"),
        ("a.leadline.part/", "a.leadline"),
        ("a-1.part", "a-1.leadline"),
        ("x", "x.leadline"),
    ],
)
def test_the_default_output_is_beside_the_directory(directory: str, output: str) -> None:
    assert default_output(directory) == Path(output)


def finish(part: Path, output: Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "leadline.profiles.finish", str(part), str(output)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_finish_is_a_program_of_its_own(part: Path) -> None:
    leave(part, 11)
    leave(part, 12)
    output = part.with_name("out.leadline")
    done = finish(part, output)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert len(open_profile(output).processes) == 2


def test_finish_fails_with_one_sentence(part: Path) -> None:
    done = finish(part, part.with_name("out.leadline"))
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    leave(part, 11)
    done = finish(part, part / "missing" / "out.leadline")
    assert (done.returncode, done.stderr.startswith("Cannot write")) == (2, True)


def test_a_damaged_byte_costs_its_own_process_only(tmp_path: Path) -> None:
    """Any byte of one segment, among them those of the table of contents that zipfile decodes as text."""
    part = tmp_path / "a.leadline.part"
    for pid in (10, 20, 30):
        leave(part, pid)
    segment = part / "20-20000.segment"
    whole = segment.read_bytes()
    directory = whole.rfind(b"PK\x01\x02", 0, whole.find(b"PK\x01\x02") + 5)
    places = [*range(directory, directory + 120), *range(0, len(whole), 997), *range(len(whole) - 22, len(whole))]
    for place in places:
        for value in (0xFF, 0x80, 0):
            damaged = bytearray(whole)
            damaged[place] = value
            segment.write_bytes(damaged)
            found = recover_part(part)
            assert {10, 30} <= {one.pid for one in found.profile.processes}
            assert found.complete + found.partial + found.missing == 3


def test_what_a_run_leaves_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    code = (
        "import os, leadline\n"
        "with leadline.profile('out.leadline'):\n"
        "    leadline.region('a').__enter__()\n"
        "    for folder, _, files in os.walk('out.leadline.part'):\n"
        "        for name in ('.', *files):\n"
        "            print(oct(os.stat(os.path.join(folder, name)).st_mode & 0o777))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"import os; os.umask(0)\n{code}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    folders = [line for line in done.stdout.splitlines() if line == "0o700"]
    assert len(folders) >= 2, done.stdout + done.stderr
