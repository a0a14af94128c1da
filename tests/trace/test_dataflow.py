"""Edges, latencies and stages of batches: drawn windows with known answers, and programs with one planted cause."""

from __future__ import annotations

import csv
import inspect
import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from leadline.cli.main import main
from leadline.profiles import Profile, open_profile
from leadline.profiles.build import build
from leadline.trace.dataflow import Batch, EdgeKind, batches, edges, ready_ns
from leadline.trace.statistics import held_for_order_ns, statistics

BRANCHES = """
import time, torch
class Slow(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1.0
    @staticmethod
    def backward(ctx, gradient):
        time.sleep(0.03)
        return gradient
fast, slow = (torch.randn(16, 16, requires_grad=True) for _ in range(2))
optimizer = torch.optim.SGD([fast, slow], lr=0.01)
for step in range(6):
    loss = torch.relu(fast).sum() + Slow.apply(slow * 2).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
RANDOM = """
import random, torch
random.seed(7)
weight = torch.randn(8, 8, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=1e-6)
for step in range(102):
    made = [weight * 1.0, torch.sin(weight)]
    for _ in range(random.randrange(3, 12)):
        way, one, other = random.randrange(4), random.choice(made), random.choice(made)
        made.append([torch.add, torch.mul, torch.matmul, torch.maximum][way](torch.tanh(one), other))
    loss = sum(tensor.mean() for tensor in random.sample(made, 2))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
LOADER = """
import sys, time, torch
from torch.utils.data import DataLoader, Dataset
class Data(Dataset):
    def __len__(self):
        return 64
    def __getitem__(self, index):
        time.sleep(0.2 if index % 32 == 16 else 0.001)
        return torch.randn(8)
if __name__ == "__main__":
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    order = {} if sys.argv[1] == "in order" else {"in_order": False}
    for batch in DataLoader(Data(), batch_size=4, num_workers=2, **order):
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()
"""


def run(folder: Path, program: str, steps: int, *arguments: str) -> Profile:
    pytest.importorskip("torch", reason="what is traced here needs torch")
    (folder / "program.py").write_text(program, encoding="utf-8")
    command = [sys.executable, "-m", "leadline", "run", "-q", "--trace", f"steps={steps}", "-o", "out.leadline"]
    subprocess.run([*command, "program.py", *arguments], cwd=folder, check=True, timeout=200)
    return open_profile(folder / "out.leadline")


@pytest.fixture(scope="module")
def branches(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    return run(tmp_path_factory.mktemp("branches"), BRANCHES, 4)


def name(profile: Profile, row: int) -> str:
    return profile.tree.text("name", int(profile.tree.frame_of[profile.events["node"][row]]))


def test_the_fast_branch_is_late_by_the_time_of_the_slow_one(branches: Profile) -> None:
    found = edges(branches)
    assert found.unmatched == 0
    ready = ready_ns(branches, found)
    events = branches.events
    targets = np.unique(found.target).tolist()
    assert all(ready[row] <= events["start_ns"][row] for row in targets), "nothing starts before it is ready"
    waits = [
        (int(ready[row]), int(events["start_ns"][row])) for row in targets if "SumBackward0" in name(branches, row)
    ]
    slow = [
        (int(events["start_ns"][row]), int(events["start_ns"][row] + events["duration_ns"][row]))
        for row in targets
        if name(branches, row).endswith("evaluate_function: SlowBackward")
    ]
    assert len(waits) == 8, "two of each step"
    assert len(slow) == 4
    passed = [sum(begin <= one and other <= end for one, other in slow) for begin, end in waits]
    assert sorted(passed) == [0, 0, 0, 0, 1, 1, 1, 1], "the fast branch waits for the whole of its step's slow one"


def test_the_graph_has_the_edges_of_autograd(branches: Profile) -> None:
    found = edges(branches)
    pairs = {
        (name(branches, one).rpartition(" ")[2], name(branches, other).rpartition(" ")[2])
        for one, other in zip(found.source.tolist(), found.target.tolist(), strict=True)
    }
    assert pairs == {
        ("AddBackward0", "SumBackward0"),
        ("SumBackward0", "SlowBackward"),
        ("SumBackward0", "ReluBackward0"),
        ("SlowBackward", "MulBackward0"),
        ("MulBackward0", "torch::autograd::AccumulateGrad"),
        ("ReluBackward0", "torch::autograd::AccumulateGrad"),
    }
    columns = branches.window.edges
    assert set(columns["kind"].tolist()) == {"backward"}
    assert len(columns["source"]) == 4 * 7


def test_in_a_hundred_random_graphs_no_node_starts_before_it_is_ready(tmp_path: Path) -> None:
    profile = run(tmp_path, RANDOM, 100)
    found = edges(profile)
    backward = found.kind == EdgeKind.BACKWARD
    assert found.unmatched == 0 and int(backward.sum()) > 1000
    steps = set(profile.events["step"][found.target[backward]].tolist())
    assert len(steps) == 100
    ready, begin = ready_ns(profile, found), profile.events["start_ns"]
    known = np.unique(found.target[backward])
    assert np.all(ready[known] <= begin[known])


def test_statistics_are_those_of_the_events(branches: Profile) -> None:
    row = next(one for one in statistics(branches, "operator") if one.name == "SlowBackward")
    events = branches.events
    times = [
        int(events["duration_ns"][at])
        for at in range(len(events["kind"]))
        if name(branches, at) == "SlowBackward" and events["kind"][at] == 0
    ]
    assert row.duration.count == len(times) == 4
    assert row.duration.mean == pytest.approx(np.mean(times))
    assert row.duration.deviation == pytest.approx(np.std(times, ddof=1))
    assert (row.duration.low, row.duration.high, row.duration.total) == (min(times), max(times), sum(times))
    assert {one.name for one in statistics(branches, "stage")} >= {"backward", "optimizer", "zero_grad"}


@pytest.mark.parametrize("order", ["in order", "any order"])
def test_a_slow_batch_holds_later_ones_only_where_order_is_kept(tmp_path: Path, order: str) -> None:
    if order == "any order":
        data = pytest.importorskip("torch.utils.data", reason="its loader is measured")
        if "in_order" not in inspect.signature(data.DataLoader).parameters:
            pytest.skip("This DataLoader keeps every order.")
    found = batches(run(tmp_path, LOADER, 15, order))
    assert len(found) >= 13
    assert len({one.worker for one in found}) == 2
    held = sum(held_for_order_ns(one, found) for one in found)
    if order == "in order":
        assert held > 50_000_000, "while the loop waited for the slow batch, later ones lay ready"
    else:
        assert held == 0
    for one in found:
        assert one.queued_ns <= one.wanted_ns <= one.used_ns or one.queued_ns <= one.used_ns
        if one.fetch_end_ns > 0:
            assert one.queued_ns <= one.fetch_begin_ns <= one.fetch_end_ns <= max(one.received_ns, one.used_ns)


def test_launches_lead_to_their_work_and_lateness_counts_from_the_launch(tmp_path: Path, capsys) -> None:
    profile = build(
        """
        process train.py | pid=5 start_ns=100
          thread main | tid=50
            operator aten::mm #mm
              api cudaLaunchKernel #launch
                kernel gemm #gemm
        """,
        events="""
        start_ns duration_ns kind     node   thread device stream correlation
        1000     100         operator mm     0      -1     -1     0
        1010     5           api      launch 0      -1     -1     7
        1012     40          kernel   gemm   -1     0      3      7
        1020     5           api      launch 0      -1     -1     8
        1060     60          kernel   gemm   -1     0      3      8
        1200     60          kernel   gemm   -1     0      3      9
        """,
    )
    found = edges(profile)
    assert list(zip(found.source.tolist(), found.target.tolist(), strict=True)) == [(1, 2), (3, 4)]
    row = statistics(profile, "kernel")[0]
    assert (row.duration.count, row.latency.count, row.latency.low, row.latency.high) == (3, 2, 2, 40)
    from leadline.profiles.writer import write_profile

    path = tmp_path / "drawn.leadline"
    write_profile(path, profile)
    assert main(["stats", str(path), "--by", "kernel", "--csv"]) == 0
    told = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert told[0]["kernel"] == "gemm"
    assert told[0]["latency_max_ns"] == "40"
    assert main(["stats", str(path), "--by", "kernel"]) == 0
    assert "gemm" in capsys.readouterr().out


def test_a_profile_without_a_window_is_told_how_to_record_one(tmp_path: Path, capsys) -> None:
    from leadline.profiles.writer import write_profile

    path = tmp_path / "none.leadline"
    write_profile(path, build("process train.py | pid=5 start_ns=100"))
    for verb in (["stats"], ["timeline"]):
        assert main([*verb, str(path)]) == 2
        assert "--trace steps=3" in capsys.readouterr().err


def test_held_is_what_lay_ready_while_earlier_ones_were_waited_for() -> None:
    def batch(index: int, received: int, wanted: int, used: int) -> Batch:
        return Batch(0, 0, index, 7, 1, -1, -1, received, wanted, used)

    slow, ready = batch(0, 90, 10, 91), batch(1, 30, 100, 101)
    assert held_for_order_ns(ready, [slow, ready]) == 61
    assert held_for_order_ns(slow, [slow, ready]) == 0


def test_counters_sum_allocations(branches: Profile) -> None:
    counters = branches.window.counters
    events = branches.events
    rows = events["kind"] == 11
    assert counters["value"][counters["name"] == "tensor bytes"][-1] == int(events["bytes"][rows].sum())
    assert (np.diff(counters["time_ns"]) >= 0).all()
