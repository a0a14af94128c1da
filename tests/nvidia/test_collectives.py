"""Communication: an NCCL kernel is a collective below the operator that names the collective and its process group."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.losses import lost

from leadline.profiles import open_profile

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(__file__).with_name("collective_program.py")


@pytest.fixture(scope="module")
def marks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The C++ side of the program, compiled against this torch's own headers."""
    torch = pytest.importorskip("torch", reason="torch is not installed here")
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("The marks are compiled with torch's headers, and no g++ was found.")
    folder = Path(torch.__file__).parent
    path = tmp_path_factory.mktemp("marks") / "libmarks.so"
    command = [compiler, "-std=c++20", "-shared", "-fPIC", "-w", str(PROGRAM.with_name("collective_marks.cpp"))]
    command += [f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}", f"-I{folder / 'include'}"]
    command += [f"-I{folder / 'include/torch/csrc/api/include'}", f"-L{folder / 'lib'}", "-ltorch_cpu", "-lc10"]
    subprocess.run([*command, "-o", str(path)], check=True)
    return path


def test_a_collective_is_named_with_its_process_group(tmp_path: Path, fakes: Path, marks: Path) -> None:
    output = tmp_path / "out.leadline"
    environment = {"FAKES": str(fakes), "MARKS": str(marks), "PYTHONPATH": os.pathsep.join([*sys.path, str(ROOT)])}
    result = subprocess.run(
        [sys.executable, str(PROGRAM), str(output)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-4000:]
    profile = open_profile(output)
    nodes = {node.detail["collective"]: node for node in profile.tree.find(kind="collective")}
    assert set(nodes) == {"AllReduce", "Broadcast"}
    assert nodes["AllReduce"].name == "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"
    operator = next(step for step in nodes["AllReduce"].path() if step.name == "record_param_comms")
    assert operator.detail == {
        "collective": "allreduce", "process_group": "3", "group_description": 'tensor "parallel"', "group_size": 8,
    }  # fmt: skip
    assert "all_reduce_of_nccl" in [step.name for step in nodes["AllReduce"].path()]
    bare = next(step for step in nodes["Broadcast"].path() if step.name == "record_param_comms")
    assert bare.detail == {}  # torch told nothing, so nothing is shown
    assert profile.devices[0].detail["communication_ns"] == 60_000
    called = next(node for node in profile.tree.find(kind="operator") if node.name == "c10d::allreduce_")
    assert "all_reduce" in [step.name for step in called.path()]
    ran = next(node for node in profile.tree.find(kind="region") if node.name == "gloo:all_reduce")
    assert ran.exclusive("call_time").count == 1  # on a thread of gloo's own
    # CUDA builds of torch bring a CUPTI of their own beside the fake one
    assert [loss for loss in lost(profile) if "Two copies of CUPTI" not in loss.detail] == []
