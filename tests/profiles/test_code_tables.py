"""Machine code in profiles: once per content however they are merged, no more than fits, and readable elsewhere."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from leadline.distributed.merge import merge_files
from leadline.profiles import Profile, ProfileFileError, open_profile, write_profile
from leadline.profiles.build import build
from leadline.profiles.code import disassembled
from leadline.profiles.codetables import CodeLine, CodeTables, fitting, stored_code
from leadline.profiles.merge import merge_profiles
from leadline.profiles.tables import StringBuilder, Tables
from leadline.report.redact import PARTS, redacted

A, B = "00000000000000aa", "00000000000000bb"


def held(pid: int, objects: dict[str, bytes], text: str = "") -> Profile:
    """A profile whose kernel was sampled at one place of each code object."""
    lines = "\n".join(
        f'      instruction +0x0010 | instruction_samples@0:7=5 address=16 detail={{"code":"{code}","function":"f"}}'
        for code in objects
    )
    drawn = build(
        f"process p.py | pid={pid} rank={pid} start_ns={pid}\n  thread t\n    kernel f | gpu_time@0:7=9\n{lines}"
    )
    made = CodeTables()
    made.objects.update(objects)
    made.lines.update({(code, "f"): [CodeLine(0, text, "k.cu", 3), CodeLine(16, text, "", 0)] for code in objects})
    strings = StringBuilder()
    for raw in drawn.tables.strings.all_raw():
        strings.add(raw)
    columns = {**drawn.tables.columns, **made.columns(strings)}
    return Profile(Tables({**columns, "strings": strings.columns()}), drawn.meta)


def test_merging_keeps_each_code_once_in_any_order(tmp_path: Path) -> None:
    one, two = held(1, {B: b"bb" * 9, A: b"aa"}), held(2, {B: b"bb" * 9}, "LDG R1")
    files = []
    for number, parts in enumerate(([one, two], [two, one])):
        write_profile(tmp_path / f"{number}.leadline", merge_profiles(parts))
        files.append((tmp_path / f"{number}.leadline").read_bytes())
    assert files[0] == files[1]
    merged = open_profile(tmp_path / "0.leadline")
    assert dict(stored_code(merged.tables)) == {A: b"aa", B: b"bb" * 9}
    lines, text = merged.table("code_lines"), merged.tables.strings
    assert [(text[code], text[said]) for code, said in zip(lines["hash"], lines["text"], strict=True)] == [
        (A, ""), (A, ""), (B, "LDG R1"), (B, "LDG R1"),
    ]  # fmt: skip


def test_a_folded_job_keeps_each_code_once_in_any_order_and_joins_later_ranks(tmp_path: Path) -> None:
    files = []
    for number, profile in enumerate((held(1, {B: b"bb" * 9, A: b"aa"}), held(2, {B: b"bb" * 9}, "LDG R1"))):
        files.append(str(tmp_path / f"rank{number}.leadline"))
        write_profile(files[-1], profile)
    folded = [merge_files(order).profile for order in (files, files[::-1])]
    for one in folded:
        assert dict(stored_code(one.tables)) == {A: b"aa", B: b"bb" * 9}
        assert [one.tables.strings[row] for row in one.table("code_lines")["text"]] == ["", "", "LDG R1", "LDG R1"]
    write_profile(tmp_path / "job.leadline", folded[0])
    third = tmp_path / "third.leadline"
    write_profile(third, held(3, {"00000000000000cc": b"c"}))
    again = merge_files([str(tmp_path / "job.leadline"), str(third)]).profile
    assert sorted(dict(stored_code(again.tables))) == [A, B, "00000000000000cc"]


def test_the_smallest_objects_are_kept_where_not_all_fit() -> None:
    assert fitting({A: b"x" * 10, B: b"y" * 5, "cc": b"z" * 100}, 20) == [A, B]
    assert fitting({A: b"x" * 10}, 9) == []


def test_code_outside_of_what_is_held_is_refused(tmp_path: Path) -> None:
    profile = held(1, {A: b"four"})
    for column, value in (("size", 5), ("begin", 5), ("size", 2**64 - 1)):
        columns = {name: values.copy() for name, values in profile.table("code_objects").items()}
        columns[column][0] = value
        whole = Profile(Tables({**profile.tables.columns, "code_objects": columns}), profile.meta)
        write_profile(tmp_path / "bad.leadline", whole)
        with pytest.raises(ProfileFileError, match="machine code"):
            open_profile(tmp_path / "bad.leadline")


def test_redaction_takes_the_code_out() -> None:
    clean = redacted(held(1, {A: b"/home/ada/k.cu"}, "LDG"), frozenset(PARTS))
    assert [clean.tables.rows(name) for name in ("code_objects", "code_bytes", "code_lines")] == [0, 0, 0]


def test_instructions_are_written_on_another_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "nvdisasm"
    program.write_text("#!/bin/sh\necho '.text.f:'\necho '  /*0000*/  MOV R1 ;'\necho '  /*0010*/  LDG.E R4, [R2] ;'\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("LEADLINE_NVDISASM", os.fspath(program))
    from leadline.profiles import sass

    sass._nvdisasm.cache_clear()
    try:
        profile = disassembled(held(1, {A: b"code"}))
        assert [node.name for node in profile.tree.find(kind="instruction")] == ["LDG.E R4, [R2]"]
        lines, text = profile.table("code_lines"), profile.tables.strings
        assert [text[row] for row in lines["text"].tolist()] == ["MOV R1", "LDG.E R4, [R2]"]
        assert disassembled(profile) is profile
    finally:
        sass._nvdisasm.cache_clear()
