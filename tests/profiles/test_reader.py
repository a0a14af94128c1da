"""A file from someone else gets one sentence, whatever is in it, and a good one opens to what was written."""

import json
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.profiles.archives import Members, column, directory_entry, members_of, packed, sample, with_header

from leadline import __version__
from leadline.cli.main import main
from leadline.profiles import ProfileFileError, open_profile, write_profile
from leadline.profiles.archive import Limits
from leadline.profiles.draw import draw
from leadline.profiles.formats import Format, RawProfile, upgraded
from leadline.profiles.reader import open_segment
from leadline.schema import TABLES, EventKind, MetricKind

NODES = 9
PARENTS = "nodes.parent.npy"


def read_bytes(folder: Path, data: bytes, **limits: int) -> None:
    path = folder / "x.leadline"
    path.write_bytes(data)
    open_profile(path, Limits(**limits) if limits else None)


def refused(folder: Path, data: bytes, **limits: int) -> str:
    with pytest.raises(ProfileFileError) as caught:
        read_bytes(folder, data, **limits)
    sentence = str(caught.value)
    assert sentence.endswith(".")
    assert "\n" not in sentence
    return sentence.replace(str(folder / "x.leadline"), "x.leadline")


def with_member(name: str, data: bytes | None) -> Callable[[Members], None]:
    def change(members: Members) -> None:
        if data is None:
            del members[name]
        else:
            members[name] = data

    return change


def meta_with(**changes: object) -> Callable[[Members], None]:
    return with_member("meta.json", json.dumps({**sample().meta, **changes}).encode())


def test_what_was_written_is_what_is_read(tmp_path: Path) -> None:
    profile = sample()
    write_profile(tmp_path / "x.leadline", profile)
    opened = open_profile(tmp_path / "x.leadline")
    assert opened.meta == profile.meta
    assert draw(opened, MetricKind, facts=True, devices=True) == draw(profile, MetricKind, facts=True, devices=True)
    for name, table in TABLES.items():
        for one in table.columns:
            np.testing.assert_array_equal(opened.table(name)[one.name], profile.table(name)[one.name])
            assert opened.table(name)[one.name].dtype.str == one.dtype


def test_numpy_itself_can_open_a_profile(tmp_path: Path) -> None:
    write_profile(tmp_path / "x.leadline", sample())
    with np.load(tmp_path / "x.leadline", allow_pickle=False) as columns:
        assert columns["nodes.parent"].tolist() == sample().table("nodes")["parent"].tolist()


def test_the_same_profile_gives_the_same_columns_and_no_leftovers(tmp_path: Path) -> None:
    write_profile(tmp_path / "a.leadline", sample())
    write_profile(tmp_path / "b.leadline", sample())
    assert (tmp_path / "a.leadline").read_bytes() == (tmp_path / "b.leadline").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.leadline", "b.leadline"]


def test_what_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ProfileFileError, match="Cannot write"):
        write_profile(tmp_path / "missing" / "x.leadline", sample())


def test_a_segment_is_the_same_without_meta(tmp_path: Path) -> None:
    path = tmp_path / "7-1.segment"
    path.write_bytes(packed(members_of(sample(), meta=False), zipfile.ZIP_STORED))
    assert open_segment(path).rows("nodes") == NODES
    with pytest.raises(ProfileFileError, match=r"no meta\.json"):
        open_profile(path)


def test_events_may_be_absent_as_a_whole_only(tmp_path: Path) -> None:
    members = {name: data for name, data in members_of(sample()).items() if not name.startswith("events.")}
    read_bytes(tmp_path, packed(members))
    assert "events.start_ns.npy is missing" in refused(
        tmp_path, packed({**members, "events.step.npy": members_of(sample())["events.step.npy"]})
    )


def test_columns_that_are_not_known_are_not_even_unpacked(tmp_path: Path) -> None:
    read_bytes(tmp_path, packed({**members_of(sample()), "nodes.colour.npy": b"not an array"}))


def test_text_that_is_not_utf8_is_shown_with_replacements(tmp_path: Path) -> None:
    members = members_of(sample())
    members["strings.bytes.npy"] = members["strings.bytes.npy"].replace(b"sgemm", b"sg\xffmm")
    (tmp_path / "x.leadline").write_bytes(packed(members))
    assert [node.name for node in open_profile(tmp_path / "x.leadline").tree.find(kind="kernel")] == ["sg\ufffdmm"]


def test_keys_that_meta_lacks_are_there_and_empty(tmp_path: Path) -> None:
    members = members_of(sample())
    members["meta.json"] = b'{"format": {"name": "leadline", "version": 1}, "host": null, "note": "\\ud800"}'
    (tmp_path / "x.leadline").write_bytes(packed(members))
    meta = open_profile(tmp_path / "x.leadline").meta
    assert (meta["cost"], meta["host"], meta["processes"], meta["complete"]) == ({}, {}, [], False)
    assert meta["note"] == "?"


def test_half_a_clock_relation_is_none(tmp_path: Path) -> None:
    members = members_of(sample())
    whole = {"monotonic_ns": 1, "realtime_ns": 2}
    meta_with(clock={"monotonic_ns": 1}, processes=[{"clock": {"realtime_ns": 1}}, {"clock": whole}])(members)
    (tmp_path / "x.leadline").write_bytes(packed(members))
    meta = open_profile(tmp_path / "x.leadline").meta
    assert (meta["clock"], [record["clock"] for record in meta["processes"]]) == ({}, [{}, whole])


def test_places_that_are_no_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(ProfileFileError, match="No such file"):
        open_profile(tmp_path / "none.leadline")
    with pytest.raises(ProfileFileError, match=r"is a directory.*leadline recover"):
        open_profile(tmp_path)
    with pytest.raises(ProfileFileError, match="cannot be opened"):
        open_profile("a\0b")


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "x.leadline is empty"),
        (b"hello", "not a Leadline profile or is cut off"),
        (b"PK\x05\x06" + bytes(18), "not a Leadline profile: it has no meta.json"),
        (packed({"word/document.xml": b"<x/>"}), "a part named 'word/document.xml', which no Leadline profile has"),
        (packed({"../../etc/passwd": b""}), "a part named '../../etc/passwd'"),
        (packed({"/etc/passwd": b""}), "a part named '/etc/passwd'"),
        (packed({"evil\x1b[31m\n.npy": b""}), "a part named 'evil?[31m?.npy'"),
        (packed({f"a.{'b' * number}.npy": b"" for number in range(1, 300)}), "it has 299 parts"),
        (packed({"meta.json": b"{}"}, zipfile.ZIP_BZIP2), "packed by a method that profiles do not use"),
        (packed({"meta.json": b"[1]"}), "meta.json is not a JSON object"),
        (packed({"meta.json": b"{"}), "meta.json is not JSON"),
        (packed({"meta.json": b"[" * 100_000}), "meta.json is not JSON"),
        (packed({"meta.json": b'{"a":' + b"[" * 70 + b"]" * 70 + b"}"}), "nested more than 64 levels"),
        (packed({"meta.json": b'{"a": NaN}'}), "has the number NaN"),
        (packed({"meta.json": b'{"a": 1e999}'}), "a number that is not finite"),
        (packed({"meta.json": b'{"a": 9223372036854775808}'}), "a number beyond 64 bits"),
        (packed({"meta.json": b"{}"}), "does not say format leadline"),
        (packed({"meta.json": b'{"format": {"name": "leadline", "version": true}}'}), "does not say format leadline"),
        (packed({"meta.json": b'{"format": {"name": "leadline", "version": 0}}'}), "does not say format leadline"),
        (packed({"meta.json": b" " * (17 << 20)}), "meta.json is larger than"),
    ],
)
def test_what_is_not_a_profile_is_refused(tmp_path: Path, data: bytes, sentence: str) -> None:
    assert sentence in refused(tmp_path, data)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (meta_with(wall_ns=True), "meta.json has a wall_ns that is not of type int"),
        (meta_with(program=[]), "meta.json has a program that is not of type dict"),
        (meta_with(cost={"events": "many"}), "meta.json has a cost.events that is not a number"),
        (meta_with(processes=[1]), "meta.json has a process that is not a JSON object"),
        (meta_with(processes=[{"cost": 1}]), "meta.json has a processes.cost that is not of type dict"),
        (with_member(PARENTS, None), "its part nodes.parent.npy is missing"),
        (with_member(PARENTS, b""), "nodes.parent.npy ends within its header"),
        (with_member(PARENTS, b"\x93NUMPY\x01\x00\xff\xff"), "has a header of 65535 bytes"),
        (with_member(PARENTS, b"\x93NUMPY\x09\x00\x00\x00"), "is not a NumPy array of a known version"),
        (with_member(PARENTS, column([None] * NODES, "O")), "holds values of type '|O' instead of '<i4'"),
        (with_member(PARENTS, column([0] * NODES, "<i8")), "holds values of type '<i8' instead of '<i4'"),
        (with_member(PARENTS, column([0] * NODES, ">i4")), "holds values of type '>i4' instead of '<i4'"),
        (with_member(PARENTS, column([[0]] * NODES, "<i4")), "is not a one-dimensional NumPy array"),
        (
            with_member(
                PARENTS, with_header("{'descr': '<i4', 'fortran_order': False, 'shape': (1000000000000,), }\n", b"")
            ),
            "declares 1000000000000 values of 4 bytes but has 0 bytes",
        ),
        (
            with_member(PARENTS, with_header("{'descr': '<i4', 'fortran_order': False, 'shape': (-1,), }\n", b"")),
            "is not a one-dimensional NumPy array",
        ),
        (
            with_member(PARENTS, with_header("__import__('os').system('true')\n", b"")),
            "is not a one-dimensional NumPy array",
        ),
        (with_member(PARENTS, column([-1] * NODES, "<i4")), "a node that does not come after its parent"),
        (with_member(PARENTS, column([-1, 0, 1, 2, 4, 3, 5, 2, 7], "<i4")), "does not come after its parent"),
        (with_member(PARENTS, column([0, 0, 1, 2, 3, 4, 5, 2, 7], "<i4")), "does not begin with a root"),
        (with_member(PARENTS, column([-1, 0], "<i4")), "the columns of its table nodes differ in length"),
        (with_member("nodes.frame.npy", column([0] * 8 + [99], "<u4")), "nodes.frame holds 99 where there are 9 rows"),
        (with_member("threads.process.npy", column([1], "<u4")), "threads.process holds 1 where there are 1 rows"),
        (with_member("metrics.device.npy", column([-1] * 4 + [-2], "<i2")), "metrics.device holds -2"),
        (with_member("metrics.count.npy", column([2**48 + 1] * 5, "<u8")), "more than can have been counted"),
        (with_member("metrics.min.npy", column([10**9] * 5, "<i8")), "a minimum above its maximum"),
        (with_member("events.start_ns.npy", column([2, 1], "<i8")), "its events are not ordered"),
        (with_member("events.duration_ns.npy", column([1, 2**62], "<i8")), "times that no clock can have"),
        (
            with_member("events.thread.npy", column([-1, -1], "<i4")),
            "an operator, region, phase, step, API call, module or Python frame without",
        ),
        (with_member("strings.offsets.npy", column([0], "<u8")), "does not begin with the empty string"),
        (with_member("strings.offsets.npy", column([0, 0, 2**63], "<u8")), "points outside its text"),
        (with_member("strings.offsets.npy", column([0, 0, 9, 3], "<u8")), "points outside its text"),
    ],
)
def test_a_contradiction_is_named(tmp_path: Path, change: Callable[[Members], None], sentence: str) -> None:
    members = members_of(sample())
    change(members)
    assert sentence in refused(tmp_path, packed(members))


def test_a_newer_format_names_the_release_that_reads_it(tmp_path: Path) -> None:
    newer = {"format": {"name": "leadline", "version": 3}, "leadline": "7.1.0"}
    members = {**members_of(sample()), "some.thing_new.npy": b""}
    meta_with(**newer)(members)
    assert refused(tmp_path, packed(members)) == (
        f"x.leadline is of format 3, written by leadline 7.1.0; this is leadline {__version__}, which reads formats up "
        "to 2: install leadline 7.1.0 or later to read it."
    )
    meta_with(**{**newer, "leadline": 3})(members)
    assert "install a newer leadline to read it" in refused(tmp_path, packed(members))


def test_kinds_of_newer_releases_are_shown_by_their_number(tmp_path: Path) -> None:
    members = members_of(sample())
    for member, dtype, kinds in (
        ("frames.kind", "|u1", [0] + [200] * 8),
        ("metrics.metric", "|u1", [0] * 4 + [201]),
        ("events.kind", "|u1", [202, 202]),
    ):
        with_member(f"{member}.npy", column(kinds, dtype))(members)
    path = tmp_path / "x.leadline"
    path.write_bytes(packed(members))
    profile = open_profile(path)
    assert profile.tree.node(1).kind == "kind 200"
    assert [node.kind for node in profile.tree.find(kind="kind 200")] == ["kind 200"] * 8
    newest = profile.tree.measured[-1]
    assert (str(newest.kind), newest.additive) == ("kind 201", False)
    assert profile.tree.exclusive("kind 201").total().count > 0
    with pytest.raises(ValueError, match="kind 201 is not additive"):
        profile.tree.inclusive("kind 201")
    assert str(EventKind(profile.events["kind"][0])) == "kind 202"
    assert main(["report", str(path)]) == 0


def test_an_older_format_goes_through_every_step() -> None:
    steps: list[int] = []

    def step(version: int) -> Callable[[RawProfile], RawProfile]:
        def upgrade(raw: RawProfile) -> RawProfile:
            steps.append(version)
            return RawProfile(raw.columns, {**raw.meta, "was": version})

        return upgrade

    formats = [Format(1, TABLES, step(1)), Format(2, TABLES, step(2)), Format(3, TABLES, None)]
    raw = RawProfile(sample().tables.columns, {})
    assert upgraded(raw, 2, formats).meta == {"was": 2}
    assert steps == [2]
    assert upgraded(raw, 1, formats).meta == {"was": 2}
    assert steps == [2, 1, 2]


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    whole = packed(members_of(sample()))
    for length in range(0, len(whole), 97):
        refused(tmp_path, whole[:length])


def test_a_changed_byte_in_a_column_fails_its_checksum(tmp_path: Path) -> None:
    whole = bytearray(packed(members_of(sample()), zipfile.ZIP_STORED))
    at = whole.index(b"'<i4'") + 200
    whole[at] ^= 0x40
    assert "is damaged (bad crc-32" in refused(tmp_path, bytes(whole))


def patched(archive: bytes, offset: int, layout: str, value: int) -> bytes:
    at = directory_entry(archive, PARENTS) + offset
    return archive[:at] + struct.pack(layout, value) + archive[at + struct.calcsize(layout) :]


def test_sizes_that_cannot_be_true_are_refused_before_allocation(tmp_path: Path) -> None:
    stored = packed(members_of(sample()), zipfile.ZIP_STORED)
    deflated = packed(members_of(sample()))
    assert "claims a size that it cannot have" in refused(tmp_path, patched(stored, 24, "<I", 2**31))
    assert "claims a size that it cannot have" in refused(tmp_path, patched(deflated, 24, "<I", 2**31))
    assert "nodes.parent.npy is encrypted" in refused(tmp_path, patched(stored, 8, "<H", 1))
    first = directory_entry(deflated, "nodes.frame.npy")
    (offset,) = struct.unpack_from("<I", deflated, first + 42)
    assert "overlaps another one" in refused(tmp_path, patched(deflated, 42, "<I", offset))


def test_what_unpacks_to_too_much_is_refused(tmp_path: Path) -> None:
    zeros = {**members_of(sample()), "strings.bytes.npy": column(np.zeros(80 << 20, "|u1"), "|u1")}
    bomb = packed(zeros)
    assert len(bomb) < 200_000
    assert "it would unpack to" in refused(tmp_path, bomb)
    assert "at most 1000 are accepted" in refused(tmp_path, packed(members_of(sample())), total_bytes=1000)


def test_a_table_of_contents_without_end_is_refused(tmp_path: Path) -> None:
    entry = b"PK\x01\x02" + bytes(42)
    entries = entry * 50_000
    end = b"PK\x05\x06" + struct.pack("<4H2IH", 0, 0, 0xFFFF, 0xFFFF, len(entries), 0, 0)
    assert "table of contents is larger than" in refused(tmp_path, entries + end)
