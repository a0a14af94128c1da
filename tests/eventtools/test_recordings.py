"""Events in files: kept and replayed, drawn by hand, damaged; tools for what no device here gives."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tests.eventtools.conftest import Runner, rows_of

from leadline.cli.main import main
from leadline.tools.backends.recording import Recording
from leadline.tools.errors import ToolError

DRAWN = """
# a matrix product whose tiles lie badly
{"object": "weights", "bytes": 4096, "category": "parameter", "shape": "float32[1024]"}
{"event": "launch", "kernel": "gemm", "place": "train.py:10", "time": 5}
{"event": "launch", "kernel": "norm", "place": "train.py:11", "time": 6}
{"event": "shared_access", "launch": 0, "instruction": "gemm.cu:12", "conflicts": 31, "count": 1}
{"event": "shared_access", "launch": 0, "instruction": "gemm.cu:12", "conflicts": 62, "count": 2}
{"event": "shared_access", "launch": 1, "instruction": "norm.cu:3", "conflicts": 0, "count": 8}
{"event": "barrier", "launch": 1, "instruction": "norm.cu:9", "waited": 900, "count": 3}
{"event": "barrier", "launch": 0, "instruction": "gemm.cu:20", "waited": 100, "count": 1}
{"event": "instruction", "launch": 1, "instruction": "norm.cu:5", "active": 48, "count": 2, "split": 1, "pc": -1}
{"event": "access", "launch": 0, "object": "weights", "instruction": "gemm.cu:7", "bytes": 4, "count": 4096, "distinct": 4096}
"""


@pytest.mark.parametrize(
    ("tool", "expected"),
    [
        ("bank_conflict", ["gemm.cu:12", "96", "32", "norm.cu:3"]),
        ("barrier_stall", ["norm.cu:9", "900", "300", "90 %"]),
        ("divergence", ["norm.cu:5", "75 %", "50 %"]),
        ("redundant_load", ["gemm.cu:7", "4 times", "75 %", "train.py:10"]),
        ("kernel_frequency", ["gemm", "norm"]),
    ],
)
def test_tools_run_on_events_drawn_by_hand(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tool: str,
    expected: list[str],
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    file = tmp_path / "drawn.jsonl"
    file.write_text(DRAWN)
    assert main(["tools", tool, "--events", str(file)]) == 0
    shown = capsys.readouterr().out
    for word in expected:
        assert word in shown


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ('{"event": "dance"}', "no event 'dance'"),
        ('{"event": "launch", "colour": 3}', "no column 'colour'"),
        ('{"event": "launch", "time": "late"}', "is not a number"),
        ("{", "drawn.jsonl:1 cannot be read"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, sentence: str
) -> None:
    file = tmp_path / "drawn.jsonl"
    file.write_text(line)
    assert main(["tools", "kernel_frequency", "--events", str(file)]) == 2
    assert sentence in capsys.readouterr().err


def test_a_backend_that_reads_a_file_wants_one(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("print('started')")
    for backend, sentence in (
        ("replay", "write --backend replay:FILE"),
        ("declared:x", "reads no file"),
        ("nothing", "no backend 'nothing'"),
        ("declared", "does not give; give it --backend triton-interpreter"),
    ):
        assert main(["run", "--tool", "divergence", "--backend", backend, str(program)]) == 2
        assert sentence in capsys.readouterr().err
    assert main(["tools", "barrier_stall"]) == 0
    assert "--backend sanitizer" in capsys.readouterr().out


PROGRAM = """
import torch
x = torch.ones(64, 64)
for _ in range(5):
    y = torch.relu(x @ x)
"""


def test_a_recording_gives_the_same_tables_again(run: Runner, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch", reason="this test measures real PyTorch; install torch==2.13.0 to run it")
    tools = ["--tool", "record", "--tool", "working_set", "--tool", "most", "--tool-option", "most.by=bytes"]
    live = run(PROGRAM, *tools)
    assert live.code == 0, live.err
    file = run.folder / "events.npz"
    replayed = run("pass", "--backend", f"replay:{file}", "--tool", "most", "--tool-option", "most.by=bytes")
    assert replayed.table("most") == live.table("most")
    assert main(["tools", "kernel_frequency", "--events", str(file)]) == 0
    shown = capsys.readouterr().out
    assert "aten::relu" in shown and "program.py:5" in shown
    limited = run("pass", "--backend", f"replay:{file}", "--tool", "kernel_frequency", "--kernel-name", "relu")
    assert [row["launches"] for row in limited.table("kernel_frequency")] == [5]
    damaged = bytearray(file.read_bytes())
    numbers = random.Random(3)
    for _ in range(60):
        broken = bytearray(damaged)
        for _ in range(numbers.randint(1, 30)):
            broken[numbers.randrange(len(broken))] = numbers.randrange(256)
        if numbers.random() < 0.3:
            del broken[numbers.randrange(len(broken)) :]
        file.write_bytes(broken)
        try:
            Recording.of_file(str(file))
        except ToolError as error:
            assert "no recording of events" in str(error) or "newer Leadline" in str(error)


EVERY_TOOL = ("kernel_frequency", "working_set", "memory_timeline", "hotness", "most", "uvm_advisor")
NETWORK = """
import torch
from torch import nn
net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8))
for step in range(4):
    x = torch.full((16, 64), 2.0)
    net(x).sum().backward()
torch.log(torch.zeros(5) - 1)
"""


def test_every_tool_says_the_same_of_a_recording_as_of_its_run(run: Runner) -> None:
    pytest.importorskip("torch", reason="this test measures real PyTorch; install torch==2.13.0 to run it")
    tools = [word for tool in EVERY_TOOL for word in ("--tool", tool)]
    live = run(NETWORK, "--tool", "record", *tools)
    assert live.code == 0, live.err
    expected = {tool: live.found(tool)["outputs"] for tool in EVERY_TOOL}
    replayed = run("pass", "--backend", f"replay:{run.folder / 'events.npz'}", *tools)
    assert replayed.code == 0, replayed.err
    for tool in EVERY_TOOL:
        assert len(expected[tool]) > 0
        assert replayed.found(tool)["outputs"] == expected[tool], tool


def test_values_and_equal_inputs_of_a_recording(run: Runner) -> None:
    pytest.importorskip("torch", reason="this test measures real PyTorch; install torch==2.13.0 to run it")
    tools = ("--tool", "value_check", "--tool", "same_inputs")
    live = run(NETWORK, "--tool", "record_values", *tools)
    assert live.code == 0, live.err
    assert "program.py:8" in live.found("value_check")["first"]
    replay = ("--backend", f"replay:{run.folder / 'events.npz'}")
    replayed = run("pass", *replay, *tools)
    for tool in ("value_check", "same_inputs"):
        assert replayed.found(tool)["outputs"] == live.found(tool)["outputs"]
    assert replayed.found("value_check")["first"] == live.found("value_check")["first"]
    # Without what the recording lacks, a tool is refused, and what it has but never saw is nothing.
    run(NETWORK, "--tool", "record")
    refused = run("pass", *replay, "--tool", "value_check")
    assert "events.npz has no events value" in refused.err
    assert "`value` is kept with --tool record_values" in refused.err
    quiet = run("import torch\ntorch.ones(3).add(1)", "--tool", "record_values")
    assert quiet.code == 0
    assert run("pass", *replay, "--tool", "value_check").found("value_check")["problem"] == ""


def test_memory_and_times_of_two_runs_meet_by_call_path(run: Runner, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch", reason="this test measures real PyTorch; install torch==2.13.0 to run it")
    run(PROGRAM, "--tool", "kernel_frequency", "--tool", "working_set")
    memory = run.folder / "memory.leadline"
    (run.folder / "out.leadline").rename(memory)
    timing = run(PROGRAM)
    joined = run.folder / "joined.leadline"
    assert main(["join", str(memory), str(run.folder / "out.leadline"), "-o", str(joined)]) == 0
    said = capsys.readouterr().out
    assert main(["report", str(joined), "--tool", "kernel_frequency"]) == 0
    assert "time there" in capsys.readouterr().out
    import leadline
    from leadline.report.tools import tool_results

    profile = leadline.open(joined)
    (found,) = tool_results(profile, "kernel_frequency")
    rows = {row["kernel"]: row for row in rows_of(found.found)}
    matmul = next(node for node in timing.profile.tree.find(name="aten::matmul"))
    (below,) = [node for node in matmul.walk() if node.name == "aten::mm"]
    assert rows["aten::mm"]["calls there"] == 5
    assert rows["aten::mm"]["time there"] == below.exclusive("call_time").sum
    matched, of = said.split(": ")[1].split(" rows")[0].split(" of ")
    assert matched == of
    assert main(["join", str(run.folder / "out.leadline"), str(memory), "-o", str(joined)]) == 2
    assert "No event tool ran in" in capsys.readouterr().err
