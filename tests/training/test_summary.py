"""summary.md of real runs: figures near the known truth, comparison with the last one, ranks that are missing."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from tests.distributed.launch import forked
from tests.training.loops import run

import leadline
from leadline.report.training import as_json, merge_ranks, summarize
from leadline.report.training.markdown import render
from leadline.steps.of_profile import steps_of
from leadline.training import build_profiler

HERE = Path(__file__).parent


def launched(folder: Path, program: Path, ranks: int) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LEADLINE")}
    return subprocess.run(
        forked(ranks, program, folder), capture_output=True, text=True, env=environment, timeout=280, check=False
    )


@pytest.fixture(scope="module")
def loop(tmp_path_factory):
    """Truth, summary and standard output of a loop on two ranks."""
    pytest.importorskip("torch", reason="its collectives are measured")
    folder = tmp_path_factory.mktemp("loop")
    done = launched(folder, HERE / "gloo_loop.py", 2)
    assert done.returncode == 0, done.stderr
    truth = json.loads((folder / "truth").read_text())
    return truth, json.loads((folder / "summary.json").read_text()), done.stdout, folder


def test_a_loop_on_two_ranks(loop) -> None:
    _, summary, printed, folder = loop
    ((name, wall),) = summary["walls"]
    assert (name, summary["steps"]["recorded"], summary["missing_ranks"]) == ("CPU", [2, 3, 4, 5], [])
    parts = ("compute_ns", "exposed_communication_ns", "exposed_copy_ns", "idle_ns")
    assert sum(wall[part] for part in parts) == wall["window_ns"]
    assert wall["idle_ns"] >= 4 * 50e6, "each recorded step sleeps for 50 ms"
    assert wall["exposed_communication_ns"] > 0
    assert {"matrix product", "communication"} <= {share["name"] for share in summary["shares"]}
    assert "### Where the time goes" in printed
    assert (folder / "summary.md").read_text() in printed
    assert len(list(folder.glob("*_rank*.leadline"))) == 2
    (merged,) = folder.glob("*_merged_*.leadline")
    assert sorted(process.rank for process in leadline.open(str(merged)).processes) == [0, 1]
    assert leadline.open(str(merged)).window.steps == (2, 3, 4, 5)


def test_every_figure_is_within_2_percent_of_the_truth(loop) -> None:
    """And of what the loop's threads stood in line for a core, by which its own clock readings are off."""
    truth, summary, _, _ = loop
    ((_, wall),) = summary["walls"]
    off = truth["in_line"]
    known = truth["idle"] + truth["compute"] + truth["exposed"]
    for figure, right in (
        ("window_ns", known),
        ("compute_ns", truth["compute"]),
        ("exposed_communication_ns", truth["exposed"]),
        ("overlapped_ns", truth["overlapped"]),
        ("idle_ns", truth["idle"]),
    ):
        assert abs(wall[figure] - right) <= 0.02 * right + off, (figure, truth, wall)


def test_a_rank_that_was_killed_is_named_and_the_others_are_whole(tmp_path: Path) -> None:
    program = tmp_path / "loop.py"
    program.write_text(
        textwrap.dedent("""
            import os, signal, sys, leadline
            rank = int(sys.argv[2])
            profiler = leadline.build_profiler(enable=True, start_step=0, end_step=9, trace_dir=sys.argv[1], rank=rank)
            profiler.start()
            for step in range(4):
                if rank == 2 and step == 2:
                    os.kill(os.getpid(), signal.SIGKILL)
                profiler.step(step)
            profiler.stop()
        """)
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LEADLINE")}
    environment |= {"WORLD_SIZE": "4", "MASTER_PORT": "29999"}
    folder = tmp_path / "profiles"
    codes = []
    for rank in (3, 2, 1, 0):
        command = [sys.executable, str(program), str(folder), str(rank)]
        codes.append(subprocess.run(command, env=environment, timeout=120, capture_output=True, check=False).returncode)
    assert codes == [0, -signal.SIGKILL, 0, 0]
    (zero,) = folder.glob("*_rank0_*.leadline")
    assert summarize(zero).missing_ranks == (2,)
    assert summarize(zero).absent_ranks == ()
    for rank in (0, 1, 3):
        (path,) = folder.glob(f"*_rank{rank}_*.leadline")
        assert leadline.open(str(path)).window.steps == (0, 1, 2, 3)


GROUP = """
import os, signal, sys, torch, torch.distributed as dist, leadline
folder, rank = sys.argv[1], int(sys.argv[2])
os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="4", MASTER_PORT="29999", GLOO_SOCKET_IFNAME="lo")
dist.init_process_group("gloo", init_method="file://" + folder + "/store", rank=rank, world_size=4)
profiler = leadline.build_profiler(enable=True, start_step=1, end_step=9, trace_dir=folder + "/profiles", merge=True)
profiler.start(0)
gradient = torch.ones(1000)
for step in range(6):
    if (rank, step) == (2, 4):
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        dist.all_reduce(gradient)
    except RuntimeError:  # the peer is gone
        break
    profiler.step(step)
profiler.stop()
leadline.print_summary(profiler)
os._exit(3)  # the group cannot be taken down any more
"""


@pytest.mark.slow
def test_a_rank_killed_between_collectives_leaves_the_others_whole_and_is_named(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="its collectives lose a peer")
    program = tmp_path / "group.py"
    program.write_text(GROUP.replace("merge=True", "merge=True, merge_timeout_s=20"))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LEADLINE")}
    commands = [[sys.executable, str(program), str(tmp_path), str(rank)] for rank in range(4)]
    ranks = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for command in commands
    ]
    said = [rank.communicate(timeout=200) for rank in ranks]
    assert [rank.returncode for rank in ranks] == [3, 3, -signal.SIGKILL, 3], said
    for rank in (0, 1, 3):
        (path,) = (tmp_path / "profiles").glob(f"*_rank{rank}_*.leadline")
        assert leadline.open(str(path)).window.steps == (1, 2, 3)
    (zero,) = (tmp_path / "profiles").glob("*_rank0_*.leadline")
    assert summarize(zero).missing_ranks == (2,)
    assert "rank 2" in said[0][0] + said[0][1]
    (merged,) = (tmp_path / "profiles").glob("*_merged_*.leadline")
    assert {0, 1, 3} <= {process.rank for process in leadline.open(str(merged)).processes}


def test_ranks_that_were_not_asked_for_are_not_waited_for(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("WORLD_SIZE", "16")
    monkeypatch.setenv("MASTER_PORT", "29999")
    run(tmp_path, range(2), start_step=0, end_step=1, ranks="0", merge=True, merge_timeout_s=250)
    (path,) = tmp_path.glob("*.leadline")
    assert merge_ranks(path) is not None, "at once"
    assert "no complete profile in time" not in capsys.readouterr().err
    assert summarize(path).absent_ranks == ()
    side = path.with_suffix(".json")
    side.write_text(json.dumps({**json.loads(side.read_text()), "measured_ranks": [0, 3, 4, 5]}))
    assert "Without rank 3 to 5: it has no file in this folder." in render(summarize(path))


def test_only_rank_0_prints_and_nothing_is_no_error(tmp_path: Path, capsys) -> None:
    assert leadline.print_summary(None) == ""
    profiler = build_profiler(enable=True, trace_dir=str(tmp_path), rank=1)
    assert leadline.print_summary(profiler) == ""
    profiler = build_profiler(enable=True, trace_dir=str(tmp_path), rank=0)
    assert leadline.print_summary(profiler) == ""
    assert "no profile of this run" in capsys.readouterr().err


def test_what_changed_since_the_last_summary(tmp_path: Path) -> None:
    run(tmp_path, range(3), start_step=0, end_step=2)
    (path,) = tmp_path.glob("*.leadline")
    figures = as_json(summarize(path))["figures"]
    (tmp_path / "summary.json").write_text(json.dumps({"figures": {"step_mean_ns": 2 * figures["step_mean_ns"]}}))

    class Stopped:
        rank = 0

    Stopped.path = path
    text = leadline.print_summary(Stopped())
    assert "| step mean |" in text
    assert "-50.0 %" in text
    assert json.loads((tmp_path / "summary.json").read_text())["changes"][0]["name"] == "step_mean_ns"


def test_a_summary_of_the_users_own_is_not_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(tmp_path, range(3), start_step=0, end_step=2)
    (tmp_path / "summary.md").write_text("# What I learned\n")

    class Stopped:
        rank = 0
        path = next(tmp_path.glob("*.leadline"))

    leadline.print_summary(Stopped())
    assert (tmp_path / "summary.md").read_text() == "# What I learned\n"
    assert "Will not replace" in capsys.readouterr().err


LOOP = """
import sys, leadline, torch
profiler = leadline.build_profiler(enable=True, start_step=1, end_step=3, trace_dir=sys.argv[1])
profiler.start(0)
weights = torch.randn(512, 512)
for step in range(8):
    total = 0.0
    for _ in range(40):
        total += (weights @ weights).sum().item()
    profiler.step(step)
profiler.stop()
leadline.print_summary(profiler)
"""


def test_under_leadline_run_the_summary_comes_with_the_profile(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="its operators are measured")
    (tmp_path / "loop.py").write_text(LOOP)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LEADLINE")}
    command = [sys.executable, "-m", "leadline", "run", "-o", "out.leadline", "loop.py", "profiles"]
    for _ in range(2):
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=250, check=False
        )
        assert done.returncode == 0, done.stderr
    assert "the summary is made when this program has ended" in done.stderr
    assert f"the training summary is {tmp_path / 'out.summary.md'}" in done.stderr
    page = (tmp_path / "out.summary.md").read_text()
    assert "| 8 (0 to 7) | 1 to 2 |" in page
    assert "`loop.py:9`" in page
    assert json.loads((tmp_path / "out.summary.json").read_text())["steps"]["recorded"] == [1, 2]
    steps = steps_of(leadline.open(tmp_path / "out.leadline"))
    assert steps.number == steps.main.timed == 8  # start() marks where the first begins
    recorded = steps.main.recorded
    assert recorded is not None and steps.main.max_ns <= recorded.sums["wall_ns"]
    assert recorded.warm_up or recorded.accident or steps.main.mean_ns == pytest.approx(recorded.mean_ns)


def test_findings_stand_in_the_summary(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="its operators are measured")
    (tmp_path / "loop.py").write_text(LOOP)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LEADLINE")}
    command = [sys.executable, "loop.py", "profiles"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=250, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "### Findings" in done.stdout
    summary = json.loads((tmp_path / "profiles" / "summary.json").read_text())
    (profile,) = (tmp_path / "profiles").glob("*.leadline")
    found = leadline.open(str(profile)).findings()
    assert len(summary["findings"]) == min(5, len(found.findings)) > 0


@pytest.mark.parametrize("first", [0, 100])
def test_a_loop_that_goes_on_at_a_later_step_has_as_many_steps(tmp_path: Path, first: int) -> None:
    """start() marks where the first step begins, whatever its number is."""
    profile = run(tmp_path, range(first, first + 8), next_step=first, start_step=0, end_step=1)
    found = steps_of(profile)
    assert found.number == 8 and found.main.recorded is not None and found.main.recorded.count == 8
