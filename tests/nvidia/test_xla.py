"""What XLA names on a GPU by ranges stands on lines of the program: JAX's own programs, and kernels of the fake GPU."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.nvidia.conftest import library
from tests.truth.invariants import contradictions

from leadline.profiles import Profile, open_profile

pytest.importorskip("jax", reason="what is named are operations of real programs of JAX; install jax")

FOLDER = Path(__file__).parent
PROGRAM = FOLDER / "xla_program.py"
LINES = PROGRAM.read_text().splitlines()


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """NVTX's side of an injected tool."""
    path = tmp_path_factory.mktemp("client") / "libclient.so"
    return library(path, FOLDER / "nvtx_client.cpp", "The client of NVTX")


def measured(tmp_path: Path, fakes: Path, inject: Path, client: Path, *options: str) -> tuple[Profile, int]:
    output = tmp_path / "out.leadline"
    command = [sys.executable, "-m", "leadline", "run", "-o", str(output), *options, str(PROGRAM), str(client)]
    environment = {
        **os.environ,
        "FAKES": str(fakes),
        "NVTX_INJECTION64_PATH": str(inject),
        "CUDA_INJECTION64_PATH": str(inject),
        "JAX_PLATFORMS": "cpu",
        "PYTHONPATH": os.pathsep.join([str(FOLDER.parents[1]), str(FOLDER), os.environ.get("PYTHONPATH", "")]),
    }
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stderr
    return open_profile(output), int(done.stdout.split()[0])


def test_kernels_stand_on_the_lines_that_their_operations_were_made_from(
    tmp_path: Path, fakes: Path, inject: Path, client: Path
) -> None:
    profile, operations = measured(tmp_path, fakes, inject, client)
    assert contradictions(profile) == []
    kernels = list(profile.tree.find(kind="kernel"))
    assert sum(node.exclusive("gpu_time").sum for node in kernels) == 5 * operations * 1000
    for node in kernels:
        path = node.path()
        names = [step.name for step in path]
        assert names.count("jit(step)") == 1, names
        called = path[names.index("jit(step)") - 1]
        assert (called.name, LINES[called.line - 1].strip()) == (
            "train",
            "step(x, x), client.run(program, rows, len(names), launch)",
        )
        inside = [step for step in path[names.index("jit(step)") :] if step.kind == "python"]
        assert inside and LINES[inside[-1].line - 1].strip() in ("return jnp.tanh(x @ w)", "return jnp.sum(x)"), names
    assert not [node for node in profile.tree.walk() if "#" in node.name]
    runs = sum(node.exclusive("call_time").count for node in profile.tree.walk() if node.name == "jit(step)")
    assert runs == 5 + 1  # the first run had no title, and is counted as any
    assert not [loss for loss in profile.losses if "did not say which operations" in loss.detail]


def test_xla_is_left_alone_where_that_is_asked_for(tmp_path: Path, fakes: Path, inject: Path, client: Path) -> None:
    profile, operations = measured(tmp_path, fakes, inject, client, "--nvtx=-TSL")
    kernels = list(profile.tree.find(kind="kernel"))
    assert sum(node.exclusive("gpu_time").count for node in kernels) == 5 * operations
    assert {node.nearest("python").name for node in kernels} == {"train"}
    assert [loss for loss in profile.losses if "did not say which operations" in loss.detail]
    runs = sum(node.exclusive("call_time").count for node in profile.tree.walk() if node.name == "jit(step)")
    assert runs == 6
