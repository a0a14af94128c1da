"""From part directory to package, with segments made by hand: one process here; several need the merge."""

import io
import json
import zipfile
from pathlib import Path

import numpy
import pytest

from leadline._package import FORMAT_VERSION, PackageError, build_meta, pack_single, read_part, sum_cost, write_package


def make_part(folder: Path, *, complete: bool = True) -> Path:
    directory = folder / "a.leadline.part"
    directory.mkdir()
    (directory / "session.json").write_text(
        json.dumps({"format": 1, "output": "a", "argv": ["train.py"], "started_at_ns": 100, "ended_at_ns": 350})
    )
    add_process(directory, "10-100", complete=complete)
    return directory


def add_process(directory: Path, stem: str, *, complete: bool = True) -> None:
    with zipfile.ZipFile(directory / f"{stem}.segment", "w") as segment:
        column = io.BytesIO()
        numpy.save(column, numpy.arange(5, dtype=numpy.int32))
        segment.writestr("nodes.parent.npy", column.getvalue())
    record = {
        "pid": int(stem.split("-")[0]),
        "complete": complete,
        "wall_ns": 200,
        "cost": {"callbacks_ns": 4, "events": 7, "held_bytes": 1000},
        "clock": {"monotonic_ns": 1, "realtime_ns": 2, "uncertainty_ns": 3},
        "program": {"python": "3.11"},
        "available": {"torch": {"ok": True}},
    }
    (directory / f"{stem}.json").write_text(json.dumps(record))


def test_one_process_becomes_the_file(tmp_path: Path) -> None:
    output = tmp_path / "a.leadline"
    part = read_part(make_part(tmp_path))
    assert part.single
    pack_single(part, output)
    with zipfile.ZipFile(output) as package:
        assert package.namelist() == ["meta.json", "nodes.parent.npy"]
        assert package.getinfo("nodes.parent.npy").compress_type == zipfile.ZIP_DEFLATED
        column = numpy.load(io.BytesIO(package.read("nodes.parent.npy")), allow_pickle=False)
        meta = json.loads(package.read("meta.json"))
    assert column.tolist() == [0, 1, 2, 3, 4]
    assert meta["format"] == {"name": "leadline", "version": FORMAT_VERSION}
    assert meta["program"] == {"argv": ["train.py"], "python": "3.11"}
    assert meta["wall_ns"] == 250
    assert meta["complete"] is True
    assert meta["cost"] == {"callbacks_ns": 4, "flush_ns": 0, "events": 7, "held_bytes": 1000, "percent": 2.0}
    assert [process["pid"] for process in meta["processes"]] == [10]


def test_the_same_measurement_gives_the_same_bytes(tmp_path: Path) -> None:
    part = read_part(make_part(tmp_path))
    pack_single(part, tmp_path / "a.leadline")
    pack_single(part, tmp_path / "b.leadline")
    assert (tmp_path / "a.leadline").read_bytes() == (tmp_path / "b.leadline").read_bytes()


def test_a_killed_process_needs_the_merge(tmp_path: Path) -> None:
    part = read_part(make_part(tmp_path, complete=False))
    assert not part.single
    assert build_meta(part)["complete"] is False
    with pytest.raises(PackageError):
        pack_single(part, tmp_path / "a.leadline")


def test_processes_come_in_the_order_they_began(tmp_path: Path) -> None:
    directory = make_part(tmp_path)
    add_process(directory, "9-1000")
    add_process(directory, "11-99")
    part = read_part(directory)
    assert [process.stem for process in part.processes] == ["11-99", "10-100", "9-1000"]
    assert not part.single


def test_damaged_side_files_are_empty_ones(tmp_path: Path) -> None:
    directory = make_part(tmp_path)
    (directory / "10-100.json").write_text('["not an object"')
    (directory / "session.json").write_bytes(b"\xff\xfe")
    part = read_part(directory)
    assert part.session == {}
    assert part.processes[0].record == {}
    assert not part.processes[0].complete
    assert build_meta(part)["complete"] is False


def test_a_side_file_without_a_segment_is_kept(tmp_path: Path) -> None:
    directory = make_part(tmp_path)
    (directory / "12-300.json").write_text('{"not_measured": "no native part."}')
    part = read_part(directory)
    assert part.processes[1].segment is None
    assert part.processes[1].record["not_measured"] == "no native part."


@pytest.mark.parametrize("content", [None, b"not a segment"])
def test_what_is_no_part_directory(tmp_path: Path, content: bytes | None) -> None:
    directory = tmp_path / "x"
    if content is not None:
        directory.mkdir()
        (directory / "notes.txt").write_bytes(content)
    with pytest.raises(PackageError, match="part directory"):
        read_part(directory)


def test_a_damaged_segment_leaves_no_file(tmp_path: Path) -> None:
    directory = make_part(tmp_path)
    (directory / "10-100.segment").write_bytes(b"PK not a zip")
    with pytest.raises(PackageError, match="Cannot write"):
        pack_single(read_part(directory), tmp_path / "a.leadline")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.leadline.part"]


def test_an_error_while_filling_keeps_the_old_file(tmp_path: Path) -> None:
    output = tmp_path / "a.leadline"
    output.write_bytes(b"old")

    def fail(package: zipfile.ZipFile) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(PackageError, match="No space left"):
        write_package(output, {}, fail, force=True)
    assert output.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [output]


def test_cost_of_nothing_is_not_zero_percent() -> None:
    assert sum_cost([{}])["percent"] is None
