"""torchrun over two network namespaces as two machines, each with a name and a clock of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import leadline
from leadline.cli.main import main

pytest.importorskip("torch", reason="torchrun starts the ranks")
AHEAD_S = (0, 1000)
PROGRAM = """
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(64, 8))
optimizer = torch.optim.SGD(model.parameters(), 0.01)
for _ in range(12):
    optimizer.zero_grad()
    model(torch.randn(16, 64)).sum().backward()
    optimizer.step()
dist.destroy_process_group()
"""


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, timeout=20, capture_output=True)


@pytest.fixture
def machines() -> Iterator[list[tuple[str, str]]]:
    """(namespace, interface) of two machines that reach each other as 10.211.7.1 and 10.211.7.2."""
    names = [(f"leadline{os.getpid()}{side}", f"ll{os.getpid() % 10**6}{side}") for side in "ab"]
    made = []
    try:
        for name, _ in names:
            ip("netns", "add", name)
            made.append(name)
        ip("link", "add", names[0][1], "netns", names[0][0], "type", "veth", "peer", names[1][1], "netns", names[1][0])
        for number, (name, interface) in enumerate(names, 1):
            ip("-n", name, "addr", "add", f"10.211.7.{number}/24", "dev", interface)
            ip("-n", name, "link", "set", "lo", "up")
            ip("-n", name, "link", "set", interface, "up")
    except (OSError, subprocess.SubprocessError):
        for name in made:
            subprocess.run(["ip", "netns", "del", name], check=False, timeout=20)
        pytest.skip("this user may not make network namespaces")
    yield names
    for name, _ in names:
        ip("netns", "del", name)


@pytest.mark.slow
def test_ranks_of_two_machines_are_one_job_on_one_clock(
    machines: list[tuple[str, str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if shutil.which("unshare") is None:
        pytest.skip("a clock of its own needs the program unshare")
    (tmp_path / "train.py").write_text(PROGRAM, encoding="utf-8")
    started = []
    for rank, ((name, interface), ahead) in enumerate(zip(machines, AHEAD_S, strict=True)):
        job = "--nnodes 2 --nproc-per-node 1 --master-addr 10.211.7.1 --master-port 29511"
        run = f"{sys.executable} -m leadline run --trace steps=5,wait=4 -q -o node{rank}.leadline"
        torchrun = f"{sys.executable} -m torch.distributed.run --node-rank {rank} {job} train.py"
        inside = ["sh", "-c", f"hostname node{rank}; exec {run} -- {torchrun}"]
        command = ["ip", "netns", "exec", name, "unshare", "--uts", "--time", "--monotonic", str(ahead), "--fork"]
        environment = {**os.environ, "GLOO_SOCKET_IFNAME": interface}
        started.append(subprocess.Popen([*command, *inside], cwd=tmp_path, env=environment))
    try:
        assert [one.wait(timeout=200) for one in started] == [0, 0]
    finally:
        for one in started:
            one.kill()

    assert main(["merge", str(tmp_path / "node0.leadline"), str(tmp_path / "node1.leadline"), "-o", str(tmp_path / "job.leadline")]) == 0  # fmt: skip
    assert "2 ranks" in capsys.readouterr().out
    assert main(["report", str(tmp_path / "job.leadline")]) == 0
    assert "2 ranks on 2 machines" in capsys.readouterr().out

    assert main(["import", str(tmp_path / "node0.leadline"), str(tmp_path / "node1.leadline"), "-o", str(tmp_path / "both.leadline")]) == 0  # fmt: skip
    assert "2 ranks." in capsys.readouterr().out
    both = leadline.open(tmp_path / "both.leadline")
    process = np.array([thread.process for thread in both.threads] + [-1])[both.events["thread"]]
    begins = [
        int(both.events["start_ns"][process == one.row].min()) for one in both.processes if (process == one.row).any()
    ]
    assert len(begins) == 2
    assert abs(begins[0] - begins[1]) < 30e9, "clocks that are a thousand seconds apart are related"
