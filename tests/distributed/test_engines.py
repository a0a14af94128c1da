"""The same bytes wherever ranks are folded, also when workers die; a scheduler that is gone costs a sentence."""

import os
import signal
import threading
import time
from pathlib import Path

import pytest
from tests.distributed.simulated import MS, SimulatedRank

from leadline.cli.main import main
from leadline.distributed import engines


@pytest.fixture
def job(tmp_path: Path) -> Path:
    folder = tmp_path / "ranks"
    folder.mkdir()
    for rank in range(40):
        SimulatedRank(rank, 41, forward=(400 + rank) * MS, host=f"node{rank // 8}").write(folder)
    (folder / "bad.leadline").write_text("x")
    return folder


def merged(job: Path, name: str, *words: str) -> bytes:
    output = job.parent / name
    assert main(["merge", str(job), "-o", str(output), *words]) == 0
    return output.read_bytes()


def test_processes_and_here_make_the_same_file(job: Path, capsys) -> None:
    serial = merged(job, "here.leadline")
    assert merged(job, "processes.leadline", "--scheduler", "processes:2") == serial
    assert "bad.leadline" in capsys.readouterr().err


def test_dask_makes_the_same_file_while_a_worker_is_killed(job: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="folding on a cluster needs Dask")
    serial = merged(job, "here.leadline")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1", silence_logs=50
    ) as cluster:
        nanny = next(iter(cluster.workers.values()))
        stop = threading.Event()

        def kill() -> None:
            while not stop.wait(0.001):  # as soon as it does anything for us
                if any(state.processing for state in cluster.scheduler.workers.values()):
                    os.kill(nanny.pid, signal.SIGKILL)
                    return

        killer = threading.Thread(target=kill)
        killer.start()
        try:
            assert merged(job, "dask.leadline", "--scheduler", cluster.scheduler_address) == serial
        finally:
            stop.set()
            killer.join()


def test_a_scheduler_that_is_gone_costs_a_sentence(job: Path, capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed", reason="folding on a cluster needs Dask")
    serial = merged(job, "here.leadline")
    capsys.readouterr()
    began = time.monotonic()
    assert merged(job, "gone.leadline", "--scheduler", "tcp://127.0.0.1:9") == serial
    assert "tcp://127.0.0.1:9 cannot be used" in capsys.readouterr().err
    assert time.monotonic() - began < 120


@pytest.mark.parametrize(
    ("scheduler", "why"),
    [
        ("tcp://10.1.2.3:8786", "not encrypted"),
        ("ray", "There is no scheduler"),
        ("processes:x", "There is no scheduler"),
    ],
)
def test_what_is_refused(job: Path, capsys, scheduler: str, why: str) -> None:
    assert main(["merge", str(job), "-o", str(job.parent / "x.leadline"), "--scheduler", scheduler]) == 2
    assert why in capsys.readouterr().err


def test_tcp_to_another_machine_is_possible_when_asked_for() -> None:
    assert engines.engine_for("tcp://10.1.2.3:8786", trusted=True) is not engines.here
    assert engines.engine_for("tls://10.1.2.3:8786") is not engines.here
