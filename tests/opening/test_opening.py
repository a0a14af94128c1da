"""Every subcommand takes a profile, a trace, and a folder or archive of ranks in either form, and says the same."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

import leadline
from leadline.agent import answers
from leadline.cli import main as cli
from leadline.profiles import Profile, ProfileFileError
from leadline.profiles.build import build
from leadline.profiles.writer import write_profile
from leadline.report.view import View

STEPS = 6
COMMANDS = (
    ("report", "--format", "json"), ("analyze", "--format", "json"), ("query", "op where time > 0"), ("info",),
    ("sql", "select count(*) from nodes"), ("stats",), ("timeline",), ("export", "--format", "collapsed", "-o", "-"),
    ("whatif", "--replay"), ("summary",),
)  # fmt: skip


def rank(number: int) -> dict:
    """A trace of one rank: six steps of 1 ms, an operator of 600 us in each that launches a kernel of 500 us."""
    events = [{"ph": "M", "name": "process_name", "pid": 10 + number, "args": {"name": "python"}}]
    for step in range(STEPS):
        begin = 1000.0 * step
        span = {"ph": "X", "pid": 10 + number, "tid": 10 + number}
        work = {"External id": step + 1, "correlation": step + 1}
        events += [
            {**span, "cat": "user_annotation", "name": f"ProfilerStep#{step}", "ts": begin, "dur": 1000.0},
            {**span, "cat": "cpu_op", "name": "aten::mm", "ts": begin + 100, "dur": 600.0, "args": {"External id": step + 1}},
            {**span, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": begin + 150, "dur": 10.0, "args": work},
            {"ph": "X", "cat": "kernel", "name": "gemm_k", "pid": 0, "tid": 7, "ts": begin + 200, "dur": 500.0,
             "args": {"device": 0, "stream": 7, **work}},
        ]  # fmt: skip
    info = {"backend": "nccl", "rank": number, "world_size": 2}
    properties = [{"id": 0, "name": "NVIDIA A100-SXM4-40GB"}]
    return {"schemaVersion": 1, "distributedInfo": info, "deviceProperties": properties, "traceEvents": events}


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("places")
    traces, profiles = folder / "traces", folder / "profiles"
    traces.mkdir()
    profiles.mkdir()
    for number in (0, 1):
        (traces / f"rank{number}.json").write_text(json.dumps(rank(number)))
        write_profile(profiles / f"rank{number}.leadline", leadline.open(traces / f"rank{number}.json"))
    archive = folder / "ranks.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        for item in sorted(traces.iterdir()):
            tar.add(item, item.name)
    one, trace = profiles / "rank0.leadline", traces / "rank0.json"
    return {"profile": one, "trace": trace, "traces": traces, "profiles": profiles, "archive": archive}


TAKEN = [
    pytest.param(command, place, id=f"{command[0]}-{place}")
    for command in COMMANDS
    for place in ("trace", "traces", "profiles", "archive")
    if (command[0], place) != ("summary", "profiles")  # a summary is of one profile, or of traces
]


@pytest.mark.parametrize(("command", "place"), TAKEN)
def test_every_subcommand_takes_it(places, place, command, capsys):
    assert cli.main([command[0], str(places[place]), *command[1:]]) == 0
    assert capsys.readouterr().out


@pytest.mark.parametrize("place", ["profile", "trace", "traces", "profiles", "archive"])
def test_all_see_the_same_work(places, place, tmp_path):
    ranks = 1 if place in ("profile", "trace") else 2
    profile = leadline.open(places[place])
    assert sorted(one.rank for one in profile.processes) == list(range(ranks))
    assert profile.tree.inclusive("gpu_time").sum[0] == ranks * STEPS * 500_000
    assert f"{ranks * STEPS * 0.5:.2f} ms" in answers.summary(str(places[place]))
    assert leadline.diff(places[place], places[place]).changes == ()
    view = View([(str(places[place]), profile)])
    kind, data = view.answer("profile/0", {})
    assert kind == "application/octet-stream"
    again = tmp_path / "again.leadline"
    again.write_bytes(data)
    assert leadline.open(again).tree.inclusive("gpu_time").sum[0] == ranks * STEPS * 500_000


def test_two_sides_of_any_kind(places, capsys):
    for before, after in (("traces", "profiles"), ("trace", "profile")):
        assert cli.main(["diff", str(places[before]), str(places[after])]) == 0
        assert cli.main(["gate", str(places[after]), "--against", str(places[before])]) == 0
    assert "0.0 %" in capsys.readouterr().out


def test_what_is_no_trace_beside_ranks_is_left_out_and_said(places, tmp_path):
    for item in places["traces"].iterdir():
        (tmp_path / item.name).write_bytes(item.read_bytes())
    (tmp_path / "config.json").write_text('{"lr": 0.1}')
    profile = leadline.open(tmp_path)
    assert sorted(one.rank for one in profile.processes) == [0, 1]
    (left_out,) = [loss for loss in profile.losses if str(loss.kind) == "file_left_out"]
    assert "config.json" in left_out.detail
    with pytest.raises(ProfileFileError, match=r"config\.json"):
        leadline.open(tmp_path / "config.json")


def plain(pid: int) -> Profile:
    return build(f"process train.py | pid={pid}\n  thread main\n    operator aten::mm | time=1")


def test_runs_that_only_lie_side_by_side_are_not_one_job(tmp_path):
    for pid in (1, 2):
        write_profile(tmp_path / f"{pid}.leadline", plain(pid))
    with pytest.raises(ProfileFileError, match="2 profiles that are not the ranks of one job"):
        leadline.open(tmp_path)
    (tmp_path / "2.leadline").unlink()
    assert leadline.open(tmp_path).processes[0].pid == 1


@pytest.mark.parametrize("kind", ["missing", "empty folder", "text"])
def test_what_cannot_be_read_is_one_sentence(kind, tmp_path, capsys):
    place = tmp_path / kind
    if kind == "text":
        place.write_text("hello")
    elif kind == "empty folder":
        place.mkdir()
    for command in ("report", "view", "analyze", "diff"):
        assert cli.main([command, str(place), *([str(place)] if command == "diff" else [])]) == 2
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        assert str(place) in said
    with pytest.raises(ProfileFileError):
        leadline.open(place)


def test_a_replaced_file_is_not_shown_beside_answers_about_the_old_one(tmp_path):
    file = tmp_path / "a.leadline"
    write_profile(file, plain(1))
    view = View([(str(file), leadline.open(file))])
    write_profile(file, plain(2))
    again = tmp_path / "again.leadline"
    again.write_bytes(view.answer("profile/0", {})[1])
    assert leadline.open(again).processes[0].pid == 1
