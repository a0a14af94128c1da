"""A consistent file with odd values costs one finding, never all; a fault of ours is one sentence."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leadline.analysis.analyze import analyze
from leadline.analysis.rules.hotspot import Hotspot
from leadline.cli.main import main
from leadline.distributed.plan import make_plan
from leadline.profiles import Tables, open_profile, write_profile
from leadline.profiles.build import build
from leadline.profiles.profile import Profile
from leadline.report.html import findings_of
from leadline.report.summary import all_findings, print_summary

CASES = Path(__file__).resolve().parents[3] / "shared" / "cases" / "attack"
DRAWN = """
process train.py | pid=7
  thread MainThread | tid=7 wall_ns=9000 operator_ns=5000
    python main @ /a/train.py:3
      operator aten::mm | time=5000 call_time=5000
"""
ODD: tuple[Any, ...] = (None, True, -1, 2**63 - 1, 1.5, "x", "", [], [[1]], ["a", None], {}, {"a": 1}, [{}])
OF_FILE = ("fold", "findings", "kernel", "rolled", "pruned", "exit", "session", "observed", "drawn")
OF_PROCESS = ("pid", "parent_pid", "rank", "local_rank", "identity", "parent_identity", "hostname", "boot_id", "tools", "passes",
              "loaders", "launch", "sources", "dataflow", "exit", "forked_from", "available", "not_measured")  # fmt: skip
VERBS = ("report", "report --format json", "report --format html", "report --tool all", "analyze", "analyze --format json", "summary",
         "info", "merge", "redact", "diff", "query")  # fmt: skip


def asked(verb: str, path: Path) -> list[str]:
    word, *rest = verb.split()
    more = {"diff": [str(path)], "query": ["operator:*"]}.get(word, [])
    output = [] if word == "info" else ["-o", str(path.with_name("out"))]
    return [word, str(path), *more, *rest, *output]


@pytest.mark.parametrize("verb", VERBS)
def test_values_of_any_type_end_no_verb(verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    drawn = build(DRAWN)
    path = tmp_path / "odd.leadline"
    odd = itertools.cycle(ODD)
    for number, name in enumerate((*OF_FILE, *OF_PROCESS)):
        for _ in range(2):  # each key meets two of them, other ones for each verb
            value = next(odd)
            record = {"pid": 7, **({name: value} if name in OF_PROCESS else {})}
            write_profile(path, Profile(drawn.tables, {**drawn.meta, name: value, "processes": [record]}))
            path.with_name("out").unlink(missing_ok=True)
            code = main(asked(verb, path))
            said = capsys.readouterr().err
            assert code in (0, 2), f"{name}={value!r}: {said}"
            assert code == 0 or said.count("\n") == 1
        next(itertools.islice(odd, number % 2, None), None)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.untrue(reason="the cases contradict themselves")
@pytest.mark.parametrize("case", ["c26", "c64"])
def test_cases_of_odd_values(case: str, verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if not (CASES / f"{case}.leadline").is_file():
        pytest.skip("the cases are not beside the repository (../shared/cases)")
    path = tmp_path / "in.leadline"
    path.write_bytes((CASES / f"{case}.leadline").read_bytes())
    code = main(asked(verb, path))
    said = capsys.readouterr().err
    assert code in (0, 2) and (code == 0 or said.count("\n") == 1)


ONE = """
process train.py | pid={}
  thread MainThread | tid={} wall_ns=9000 operator_ns=5000
    python main @ /a/train.py:3
      operator aten::mm | time=5000 call_time=5000
""".lstrip("\n")
MERGES = ((), ("other.leadline",), ("other.leadline", "--by", "rank"))


def merged(folder: Path, profile: Profile, more: tuple[str, ...]) -> int:
    """`merge` of a profile, with another one or without."""
    write_profile(folder / "odd.leadline", profile)
    write_profile(folder / "other.leadline", build(ONE.format(9, 9)))
    (folder / "out").unlink(missing_ok=True)
    words = [str(folder / word) if word.endswith(".leadline") else word for word in ("odd.leadline", *more)]
    return main(["merge", *words, "-o", str(folder / "out")])


@pytest.mark.parametrize("more", MERGES)
@pytest.mark.untrue(reason="two processes of one file are one and the same")
def test_a_file_whose_processes_are_equal_is_merged(more: tuple[str, ...], tmp_path: Path) -> None:
    """c36 of the review."""
    assert merged(tmp_path, build(ONE.format(7, 7) + ONE.format(7, 8)), more) == 0
    times = open_profile(tmp_path / "out").tree.inclusive("time").sum[0]
    assert times == (10_000 if not more else 15_000)


@pytest.mark.parametrize("more", MERGES)
@pytest.mark.untrue(reason="numbers that no machine gives")
def test_numbers_at_the_ends_of_their_types_are_merged(
    more: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """c133 and c149 of the review."""
    drawn = build(ONE.format(7, 7))
    processes = drawn.tables["processes"]
    for name, values in processes.items():
        ends = np.iinfo(values.dtype)
        for value in (ends.min, ends.max):
            odd = {**processes, name: np.array([value], values.dtype)}
            code = merged(tmp_path, Profile(Tables({**drawn.tables.columns, "processes": odd}), drawn.meta), more)
            said = capsys.readouterr().err
            assert code == 0 or (code == 2 and said.count("\n") == 1), f"{name}={value}: {said}"
            assert "contradict each other" not in said


@pytest.mark.parametrize("more", MERGES)
@pytest.mark.parametrize("where", ["launch", "fold"])
def test_a_job_of_more_ranks_than_there_are_machines_is_merged_at_once(
    where: str, more: tuple[str, ...], tmp_path: Path
) -> None:
    drawn = build(ONE.format(7, 7))
    for size in (-1, 2**31, 2**62):
        of_job = {"world_size": size, "rank": 0, "job": "j"}
        record = {"pid": 7, **({"launch": of_job} if where == "launch" else {})}
        meta = {**drawn.meta, "processes": [record]}
        profile = Profile(
            drawn.tables, {**meta, "fold": {**of_job, "order": [], "by": "rank"}} if where == "fold" else meta
        )
        plan = make_plan([str(tmp_path / "odd.leadline")]) if merged(tmp_path, profile, more) == 0 else None
        assert plan is None or plan.world_size == 0


def test_a_rule_of_ours_that_fails_costs_its_finding_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "in.leadline"
    write_profile(path, build(DRAWN))
    profile = open_profile(path)
    others = {one.rule for one in analyze(profile).not_applicable}

    def broken(*_: object) -> None:
        raise ZeroDivisionError("by\x1b[31m nothing")

    monkeypatch.setattr(Hotspot, "check", broken)
    found = analyze(profile)
    assert [one.rule for one in found.failed] == ["hotspot"] and "please report" in found.failed[0].error
    assert {one.rule for one in found.not_applicable} >= others - {"hotspot"}
    assert findings_of(profile) is not None and all_findings(profile) is not None
    assert main(["analyze", str(path)]) == 0
    said = capsys.readouterr().err
    assert "hotspot failed: ZeroDivisionError" in said and "\x1b" not in said
    print_summary(str(path))
    said = capsys.readouterr().err
    assert "the rule hotspot failed: ZeroDivisionError" in said and "\x1b" not in said
    assert main(["report", str(path), "-o", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "hotspot" in page and "ZeroDivisionError" in page and "\x1b" not in page


def test_a_fault_of_ours_is_one_sentence_and_its_traceback_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "in.leadline"
    write_profile(path, build(DRAWN))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def broken(*_: object, **__: object) -> None:
        raise RecursionError("too\ndeep \x1b[31m")

    monkeypatch.setattr("leadline.report.build_report", broken)
    assert main(["report", str(path)]) == 70
    said = capsys.readouterr().err
    kept = next(tmp_path.glob("leadline-fault-*"))
    assert said.count("\n") == 1 and str(kept) in said and "\x1b" not in said
    assert "RecursionError" in kept.read_text() and kept.stat().st_mode & 0o077 == 0
