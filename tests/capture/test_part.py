"""The part directory: what stops a measurement before it starts, and what happens to an earlier one's remains."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from leadline._package import read_part
from leadline.capture.config import Options
from leadline.capture.errors import ProfileError
from leadline.capture.part import PartDirectory, check_output, default_output, move_aside, process_identity


def create(output: Path) -> PartDirectory:
    return PartDirectory.create(output, ["train.py", "--lr", "3"], Options(), None)


def test_the_session_file_says_what_was_asked(tmp_path: Path) -> None:
    part = create(tmp_path / "a.leadline")
    session = read_part(part.directory).session
    assert part.directory == tmp_path / "a.leadline.part"
    assert session["argv"] == ["train.py", "--lr", "3"]
    assert session["output"] == str(tmp_path / "a.leadline")
    assert session["asked"]["memory"] is True
    assert session["supervisor_pid"] is None


def test_the_end_of_the_session_is_noted(tmp_path: Path) -> None:
    part = create(tmp_path / "a.leadline")
    part.end_session({"code": 3})
    session = read_part(part.directory).session
    assert session["exit"] == {"code": 3}
    assert session["ended_at_ns"] >= session["started_at_ns"]
    assert session["argv"] == ["train.py", "--lr", "3"]


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="does not exist"):
        create(tmp_path / "missing" / "a.leadline")


def test_an_output_that_is_a_folder(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="is a folder"):
        create(tmp_path)


def test_a_folder_where_nothing_can_be_made() -> None:
    with pytest.raises(ProfileError, match="Cannot write"):
        create(Path("/proc/a.leadline"))


def test_somebody_elses_file_is_not_replaced(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("print()")
    with pytest.raises(ProfileError, match="not a profile"):
        create(script)
    assert script.read_text() == "print()"


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04rest"])
def test_a_profile_may_be_replaced(tmp_path: Path, content: bytes) -> None:
    output = tmp_path / "a.leadline"
    output.write_bytes(content)
    check_output(output)


def test_a_full_disk_is_said_before_anything_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leadline.capture.part.free_space_bytes", lambda folder: 1000)
    with pytest.raises(ProfileError, match="make room"):
        create(tmp_path / "a.leadline")
    assert list(tmp_path.iterdir()) == []


def test_names_that_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ProfileError, match="File name too long"):
        create(tmp_path / ("x" * 300))
    with pytest.raises(ProfileError, match="not UTF-8"):
        create(tmp_path / "\udcff.leadline")
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(ProfileError, match="working directory is gone"):
        create(Path("a.leadline"))


def test_a_running_measurement_keeps_its_file(tmp_path: Path) -> None:
    output = tmp_path / "a.leadline"
    create(output)
    with pytest.raises(ProfileError, match="Another measurement"):
        move_aside(output)


def test_the_remains_of_a_dead_one_are_kept_beside(tmp_path: Path) -> None:
    output = tmp_path / "a.leadline"
    part = create(output)
    make_owner_dead(part)
    assert move_aside(output) == tmp_path / "a-1.leadline.part"
    assert not part.exists
    make_owner_dead(create(output))
    assert move_aside(output) == tmp_path / "a-2.leadline.part"
    assert move_aside(output) is None


def test_a_part_directory_without_a_session_file_is_moved_too(tmp_path: Path) -> None:
    (tmp_path / "a.leadline.part").mkdir()
    assert move_aside(tmp_path / "a.leadline") == tmp_path / "a-1.leadline.part"


def test_a_process_number_used_again_is_another_process() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    alive = process_identity(child.pid)
    child.communicate(b"\n")
    assert alive.startswith(f"{child.pid}-")
    assert process_identity(child.pid) == f"{child.pid}-gone"
    assert process_identity(os.getpid()) == process_identity(os.getpid())


def test_one_claim_per_session(tmp_path: Path) -> None:
    part = create(tmp_path / "a.leadline")
    assert [part.claim("first"), part.claim("first"), part.claim("other")] == [True, False, True]


def test_joining_a_session_that_has_ended(tmp_path: Path) -> None:
    part = create(tmp_path / "a.leadline")
    assert PartDirectory.join(part.directory, part.output) == part
    part.remove()
    assert PartDirectory.join(part.directory, part.output) is None


@pytest.mark.parametrize(
    ("argv", "name"),
    [
        (["train.py", "--lr"], "train.leadline"),
        (["some/folder/train.py"], "train.leadline"),
        (["-m"], "python.leadline"),
        ([], "python.leadline"),
        (["torchrun"], "torchrun.leadline"),
    ],
)
def test_the_default_name_is_the_scripts(argv: list[str], name: str) -> None:
    assert default_output(argv) == Path(name)


def make_owner_dead(part: PartDirectory) -> None:
    path = part.directory / "session.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "owner": "1-1"}))
