"""Starting, stopping and flushing while other threads compute; memory that does not grow with time."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import torch
from torch import nn

import leadline


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_start_and_stop_while_threads_compute(tmp_path):
    torch.set_num_threads(1)
    stop = threading.Event()
    failed = []

    def work() -> None:
        layer = nn.Linear(8, 8)
        try:
            while not stop.is_set():
                layer(torch.ones(2, 8)).sum().backward()
                with torch.profiler.record_function("r"):
                    torch.ones(1).add_(1)
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for round_number in range(4):
            path = tmp_path / f"{round_number}.leadline"
            with leadline.profile(path, flush_interval_s=0.01):
                for _ in range(20):
                    torch.mm(torch.ones(16, 16), torch.ones(16, 16))
                leadline.pause()
                leadline.resume()
            result = leadline.open(path)
            mm = list(result.tree.find(kind="operator", name="aten::mm"))
            own = [node for node in mm if any(step.name == "main" for step in node.path())]
            assert sum(node.exclusive("call_time").count for node in own) == 20
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not failed


def test_resident_memory_does_not_grow_with_steps(tmp_path):
    model = nn.Sequential(*[nn.Linear(16, 16) for _ in range(6)])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def steps(count: int) -> None:
        for _ in range(count):
            optimizer.zero_grad()
            model(torch.ones(4, 16)).sum().backward()
            optimizer.step()

    with leadline.profile(tmp_path / "x.leadline"):
        steps(300)
        before = resident_bytes()
        steps(3000)
        grown = resident_bytes() - before
    assert grown < 1_000_000


def test_many_short_threads_stay_bounded(tmp_path):
    path = tmp_path / "x.leadline"

    def work() -> None:
        torch.ones(2).sum()

    def run(count: int) -> None:
        for _ in range(count):
            thread = threading.Thread(target=work, name="short")
            thread.start()
            thread.join()

    with leadline.profile(path):
        run(1000)
        before = resident_bytes()
        run(600)
        grown = resident_bytes() - before
    assert grown < 2_000_000
    calls = sum(
        node.exclusive("call_time").count
        for node in leadline.open(path).tree.find(kind="operator", name="aten::sum")
        if node.parent.kind == "python"
    )
    assert calls == 1600
