"""Hand-written Triton kernels: real Triton compiles and launches them over the fake GPU; and names that it recorded."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from leadline.profiles import Profile, open_profile

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(__file__).with_name("triton_program.py")
COMPILED = Path(__file__).with_name("inductor_program.py")


def line_of(marker: str, path: Path) -> int:
    lines = path.read_text().splitlines()
    return next(number for number, line in enumerate(lines, start=1) if line.endswith(f"# the line of {marker}"))


def run(tmp_path: Path, program: Path, *arguments: str, **environment: str) -> Profile:
    output = tmp_path / f"{len(list(tmp_path.glob('*.leadline')))}.leadline"
    result = subprocess.run(
        [sys.executable, str(program), str(output), *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(ROOT)]), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-4000:]
    return open_profile(output)


def triton_environment(tmp_path: Path, fakes: Path) -> dict[str, str]:
    """What the programs need; skips where there is no Triton."""
    if importlib.util.find_spec("triton") is None:
        pytest.skip("Triton is not installed here; `make test-triton` downloads it and runs this.")
    version = importlib.metadata.version("triton")
    if tuple(map(int, version.split(".")[:2])) < (3, 6):
        pytest.skip(f"Triton {version} links the real driver; `make test-triton` downloads another and runs this.")
    if shutil.which("cc") is None and shutil.which("gcc") is None:
        pytest.skip("Triton builds its launchers with a C compiler and none was found.")
    caches = {"TRITON_CACHE_DIR": str(tmp_path / "triton"), "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor")}
    return {"FAKES": str(fakes), "LD_LIBRARY_PATH": str(fakes), **caches}


@pytest.mark.parametrize("when", ["early", "late"])
def test_a_kernel_shows_the_line_of_its_function(tmp_path: Path, fakes: Path, when: str) -> None:
    environment = triton_environment(tmp_path, fakes)
    profile = run(tmp_path, PROGRAM, when, **environment)
    kernels = {node.name: node for node in profile.tree.find(kind="kernel")}
    for name, marker in (
        ("add_kernel", "add_kernel"),
        ("scale_by_3", "scale_kernel"),
        ("tuned_kernel", "tuned_kernel"),
    ):
        node = kernels[name]
        assert (Path(node.file).name, node.line) == (PROGRAM.name, line_of(marker, PROGRAM))
        steps = [step.name for step in node.path()]
        assert steps.index("launch_all") < steps.index("JITFunction.run") < steps.index("cuLaunchKernelEx")
    calls = sum(node.exclusive("gpu_time").count for node in profile.tree.find(name="add_kernel"))
    assert calls == 3
    phases = {node.name: node for node in profile.tree.find(kind="phase")}
    made = set(phases) - {"garbage collection"}  # which happens when it will
    assert made == ({"compile", "triton", "autotune"} if when == "early" else set())
    if when == "early":
        assert phases["triton"].exclusive("call_time").sum > 1_000_000  # real compilations take their time
    assert [loss for loss in profile.losses if loss.count > 0] == []
    again = run(tmp_path, PROGRAM, when, **environment)  # from Triton's cache
    assert {node.name: node.line for node in again.tree.find(kind="kernel")} == {n: k.line for n, k in kernels.items()}


def test_a_second_file_knows_the_kernels_of_the_first(tmp_path: Path, fakes: Path) -> None:
    environment = triton_environment(tmp_path, fakes)
    first = run(tmp_path, PROGRAM, "early", "again", **environment)
    (path,) = tmp_path.glob("*-again.leadline")
    second = open_profile(path)
    kernels = {node.name: (Path(node.file).name, node.line) for node in second.tree.find(kind="kernel")}
    assert kernels == {node.name: (Path(node.file).name, node.line) for node in first.tree.find(kind="kernel")}
    assert kernels["add_kernel"] == (PROGRAM.name, line_of("add_kernel", PROGRAM))
    assert sum(node.exclusive("gpu_time").count for node in second.tree.find(name="add_kernel")) == 3


def test_kernels_that_inductor_makes_for_a_gpu_carry_operators_and_lines(tmp_path: Path, fakes: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed here")
    environment = triton_environment(tmp_path, fakes)
    for cached in (False, True):
        profile = run(tmp_path, COMPILED, **environment)
        kernels = {node.name: node for node in profile.tree.find(kind="kernel")}
        softmax = next(node for name, node in kernels.items() if "softmax" in name)
        assert softmax.detail["operators"] == ["aten.relu", "aten.add", "aten._softmax"]
        code = {source["code"]: (Path(source["file"]).name, source["line"]) for source in softmax.detail["sources"]}
        relu = next(text for text in code if "torch.relu(x) + y" in text)
        assert code[relu] == (COMPILED.name, line_number("torch.relu(x) + y"))
        assert any("torch.softmax" in text for text in code)
        sigmoid = next(node for name, node in kernels.items() if "sigmoid" in name)
        assert sigmoid.detail["operators"] == ["aten.sigmoid", "aten.sum"]
        assert sigmoid.line == line_number("torch.sigmoid(out)")
        written = kernels["add_kernel"]  # part of the compiled function, and still the user's own
        assert (Path(written.file).name, written.line) == (COMPILED.name, line_of("add_kernel", COMPILED))
        launched = sum(node.exclusive("gpu_time").count for node in profile.tree.find(name="add_kernel"))
        assert launched == 4
        phases = {node.name: node.exclusive("call_time").sum for node in profile.tree.find(kind="phase")}
        assert {"compile", "dynamo", "aot autograd", "inductor"} <= set(phases)
        assert cached or "autotune" in phases
        assert [loss for loss in profile.losses if loss.count > 0] == []


def test_a_second_file_knows_the_kernels_that_inductor_made_in_the_first(tmp_path: Path, fakes: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed here")
    first = run(tmp_path, COMPILED, "again", **triton_environment(tmp_path, fakes))
    second = open_profile(next(tmp_path.glob("*-again.leadline")))

    def told(profile: Profile) -> dict[str, tuple]:
        kernels = profile.tree.find(kind="kernel")
        return {one.name: (one.detail.get("operators"), Path(one.file).name, one.line) for one in kernels}

    assert told(second) == told(first)
    softmax = next(place for name, place in told(second).items() if "softmax" in name)
    assert softmax[:2] == (["aten.relu", "aten.add", "aten._softmax"], COMPILED.name)
    assert {node.exclusive("gpu_time").count for node in second.tree.find(kind="kernel")} == {4}, "none was tuned again"
    assert not [node for node in second.tree.find(kind="phase") if node.name == "inductor"], "nothing is compiled again"


def line_number(text: str) -> int:
    lines = COMPILED.read_text().splitlines()
    return next(number for number, line in enumerate(lines, start=1) if text in line)
