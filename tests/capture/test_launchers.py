"""Jobs that real launchers start, without our supervisor: one session, one file, every task with its rank."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from leadline.capture.process_info import ranks_of_launcher

TASKS = 3

PROGRAM = """
rank = os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ["SLURM_PROCID"]
open(f"here-{rank}", "w").close()
import glob, time
while len(glob.glob("here-*")) < int(sys.argv[1]):
    time.sleep(0.01)
work(f"task {rank}")
"""
"""Waits for the other tasks, so that all of them begin the session at once."""


def check(place, *launcher: str, env: dict[str, str]) -> None:
    place.write_work("task.py", PROGRAM)
    result = place.run(*launcher, sys.executable, "task.py", str(TASKS), env={"LEADLINE": "job.leadline", **env})
    assert result.returncode == 0, result.stderr.decode()
    assert result.stderr.decode().count("leadline: wrote") == 1
    profile = place.open("job.leadline")
    assert place.regions(profile) == [f"task {rank}" for rank in range(TASKS)]
    assert sorted((process.rank, process.local_rank) for process in profile.processes) == [(n, n) for n in range(TASKS)]
    assert profile.meta["complete"]
    (session,) = {record["session"] for record in profile.meta["processes"]}
    assert session
    left = [path.name for path in place.folder.iterdir() if "part" in path.name or path.name.startswith(".")]
    assert left == []


def test_mpirun(place) -> None:
    if shutil.which("mpirun") is None:
        pytest.skip("mpirun is not here")
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    check(place, "mpirun", "--oversubscribe", "-n", str(TASKS), env=allowed)


@pytest.fixture
def slurm(tmp_path: Path) -> Iterator[dict[str, str]]:
    """A cluster of this machine alone; what its commands need in their environment."""
    if not all(map(shutil.which, ("srun", "slurmctld", "slurmd"))):
        pytest.skip("srun is not here")
    if os.geteuid() != 0:
        pytest.skip("srun needs a daemon that root starts")
    folder = tmp_path / "slurm"
    folder.mkdir()
    name = socket.gethostname().partition(".")[0]
    ports = []
    for _ in range(2):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            ports.append(free.getsockname()[1])
    (folder / "slurm.conf").write_text(f"""
ClusterName=one
SlurmctldHost={name}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser=root
AuthType=auth/none
CredType=cred/none
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
NodeName={name} NodeAddr=127.0.0.1 CPUs={os.cpu_count()} State=UNKNOWN
PartitionName=all Nodes={name} Default=YES State=UP
""")
    environment = {"SLURM_CONF": str(folder / "slurm.conf")}
    daemons = [
        subprocess.Popen([program, "-D"], env={**os.environ, **environment}, stderr=subprocess.DEVNULL)
        for program in ("slurmctld", "slurmd")
    ]
    try:
        for _ in range(600):
            asked = ["sinfo", "-h", "-o", "%T"]
            state = subprocess.run(
                asked, env={**os.environ, **environment}, capture_output=True, text=True, check=False
            )
            if state.stdout.startswith("idle"):
                break
            time.sleep(0.1)
        else:
            logs = "".join(path.read_text() for path in folder.glob("*.log"))
            pytest.fail(f"the cluster did not come up:\n{logs}")
        yield environment
    finally:
        for daemon in daemons:
            daemon.terminate()
        for daemon in daemons:
            daemon.wait(timeout=60)


@pytest.mark.timeout(200)
def test_srun(place, slurm: dict[str, str]) -> None:
    check(place, "srun", "--overcommit", "-n", str(TASKS), env=slurm)


@pytest.mark.parametrize(
    ("environment", "ranks"),
    [
        ({}, (-1, -1)),
        ({"RANK": "5", "LOCAL_RANK": "1", "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "2"}, (5, 1)),
        ({"SLURM_PROCID": "3", "SLURM_LOCALID": "1", "SLURM_STEP_NUM_TASKS": "4", "SLURM_STEP_NUM_NODES": "2"}, (3, 1)),
        ({"SLURM_PROCID": "1", "SLURM_LOCALID": "0", "SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_NUM_NODES": "2"}, (-1, -1)),
        ({"SLURM_PROCID": "0", "SLURM_LOCALID": "0"}, (-1, -1)),
        ({"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_LOCAL_RANK": "0", "OMPI_COMM_WORLD_LOCAL_SIZE": "1"}, (-1, -1)),
        ({"PMI_RANK": "2", "MPI_LOCALRANKID": "0", "MPI_LOCALNRANKS": "2"}, (2, 0)),
    ],
)  # fmt: skip
def test_the_number_of_a_task_is_a_rank_where_a_machine_has_several(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], ranks: tuple[int, int]
) -> None:
    for name in list(os.environ):
        if name.startswith(("RANK", "LOCAL_RANK", "SLURM_", "OMPI_", "PMI_", "MPI_")):
            monkeypatch.delenv(name)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert ranks_of_launcher() == ranks
