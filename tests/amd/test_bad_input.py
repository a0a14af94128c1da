"""What can be wrong with a GPU, its driver or ROCm: the program runs as it would, and one sentence says cause and fix."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from tests.amd import fake_gpu

from leadline.capture.config import Options
from leadline.capture.providers.amd import files as amd_files
from leadline.capture.providers.amd.provider import AmdProvider
from leadline.profiles import Profile, open_profile

FORKED = 'use the start method "spawn" or "forkserver"'


class Native:
    """Stands for the native module in a process whose HIP never starts, or (`measures`) has started."""

    def __init__(self, *, measures: bool = False) -> None:
        self.losses: list[str] = []
        self.measures = measures

    def count_loss(self, kind: str, count: int, detail: str) -> None:
        assert (kind, count) == ("provider_unavailable", 1)
        self.losses.append(detail)

    def attach_amd(self, info: dict[str, Any]) -> dict[str, Any]:
        return {"awaiting": not self.measures, "measuring": self.measures, "message": ""}

    def detach_amd(self) -> dict[str, Any]:
        return {"measuring": False, "message": ""}

    def amd_status(self) -> dict[str, Any]:
        return {"awaiting": not self.measures, "measuring": self.measures}


def with_torch(monkeypatch: pytest.MonkeyPatch, hip: str | None) -> Any:
    monkeypatch.setitem(sys.modules, "torch", ModuleType("torch"))
    torch: Any = sys.modules["torch"]
    torch.version = SimpleNamespace(hip=hip)
    return torch


@pytest.mark.parametrize(
    ("driver", "mode", "hip", "said"),
    [
        (False, 0o600, "6.4", "no AMD GPU driver"),
        (True, 0, "6.4", "`render` and `video`"),
        (True, 0o600, "6.4", ""),  # it could have used one and did not
        (False, 0o600, None, ""),  # torch for CPUs: nobody expects a GPU
    ],
    ids=["no-driver", "no-permission", "unused", "cpu-build"],
)
def test_a_program_for_gpus_that_gets_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, driver: bool, mode: int, hip: str | None, said: str
) -> None:
    file = tmp_path / "kfd"
    if driver:
        file.touch()
        file.chmod(mode)
    monkeypatch.setattr(amd_files, "DRIVER_FILE", file)
    monkeypatch.setattr(amd_files, "hip_loaded", lambda: False)  # another test's stand-in may be in this process
    monkeypatch.setattr(os, "access", lambda path, _: bool(Path(path).stat().st_mode & 0o600))  # root may do all
    native = Native()
    provider = AmdProvider(native, Options(), lambda: None)  # type: ignore[arg-type]
    provider.start()
    with_torch(monkeypatch, hip)
    provider.stop()
    assert len(native.losses) == (1 if said else 0)
    assert all(said in sentence and sentence.count(";") == 1 for sentence in native.losses)
    assert provider.status()["ok"] is (False if said else None)


def test_a_forked_child_says_so_when_it_wants_a_gpu_and_only_then(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise RuntimeError("Cannot re-initialize CUDA in forked subprocess.")

    native = Native(measures=True)
    provider = AmdProvider(native, Options(), lambda: None)  # type: ignore[arg-type]
    provider.start()
    torch = with_torch(monkeypatch, None)
    torch.cuda = SimpleNamespace(_lazy_init=refuse)
    provider.forked()
    assert provider.status()["ok"] is None and native.losses == []
    for _ in range(2):
        with pytest.raises(RuntimeError, match="Cannot re-initialize"):
            torch.cuda._lazy_init()
    assert len(native.losses) == 1 and FORKED in native.losses[0]
    assert provider.status()["ok"] is False


def kernels(profile: Profile) -> dict[str, str]:
    """By name the process that launched them."""
    names = [one.node.row for one in profile.processes]
    found = {}
    for node in profile.tree.find(kind="kernel"):
        (process,) = (step.row for step in node.path() if step.kind == "process")
        found[node.name] = "parent" if names.index(process) == 0 else "child"
    return found


def told(profile: Profile) -> list[tuple[str, int, str]]:
    parent = min(one.pid for one in profile.processes)
    pids = [one.pid for one in profile.processes]
    return [("parent" if pids[one.process] == parent else "child", one.count, one.detail) for one in profile.losses]


def test_a_child_that_starts_hip_of_its_own_is_measured(tmp_path: Path, fakes: Path) -> None:
    output = tmp_path / "out.leadline"
    status, said = fake_gpu.run_program(output, fakes, program="forking_program.py", FORK="first")
    assert status == 0, said
    profile = open_profile(output)
    assert kernels(profile) == {"of_parent": "parent", "of_child": "child"}
    assert told(profile) == []


def test_a_child_that_was_forked_after_hip_says_so_and_its_parent_goes_on(tmp_path: Path, fakes: Path) -> None:
    output = tmp_path / "out.leadline"
    status, said = fake_gpu.run_program(output, fakes, program="forking_program.py", FORK="later")
    assert status == 0, said
    profile = open_profile(output)
    assert kernels(profile) == {"of_parent": "parent"}
    ((who, count, sentence),) = told(profile)
    assert (who, count) == ("child", 1) and FORKED in sentence and sentence.count(";") == 1


def test_a_child_that_was_forked_after_hip_and_leaves_it_alone_lost_nothing(tmp_path: Path, fakes: Path) -> None:
    output = tmp_path / "out.leadline"
    status, said = fake_gpu.run_program(output, fakes, program="forking_program.py", FORK="later", IDLE="1")
    assert status == 0, said
    assert told(open_profile(output)) == []


def test_the_sdk_of_the_program_s_own_torch_comes_before_wheels_and_the_installation(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folders = [tmp_path / name for name in ("torch/lib", "site/_rocm_sdk_core/lib", "rocm/lib", "named")]
    for folder in folders:
        folder.mkdir(parents=True)
        (folder / "librocprofiler-sdk.so.1").touch()
    origin = tmp_path / "torch" / "__init__.py"
    monkeypatch.setattr(amd_files.importlib.util, "find_spec", lambda _: SimpleNamespace(origin=str(origin)))
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site")])
    monkeypatch.setenv("ROCM_PATH", str(tmp_path / "rocm"))
    monkeypatch.setenv("LD_LIBRARY_PATH", f":{tmp_path / 'named'}")
    found = list(amd_files.sdk_candidates())
    wanted = [str(folder / "librocprofiler-sdk.so.1") for folder in folders]
    assert [path for path in found if path.startswith(str(tmp_path))] == wanted
    assert found[-2:] == ["librocprofiler-sdk.so.1", "librocprofiler-sdk.so.0"]  # as the loader finds them


def test_an_sdk_that_gives_leadline_nothing_is_named(tmp_path: Path, fakes: Path) -> None:
    output = tmp_path / "out.leadline"
    status, said = fake_gpu.run_program(output, fakes, FAKE_REFUSES="1")
    assert status == 0, said
    ((_, count, sentence),) = told(open_profile(output))
    assert count == 1 and "rocprofiler-sdk refuses" in sentence and "see `leadline doctor`" in sentence


ALONE = """
import sys
sys.path.insert(0, sys.argv[1])
from fake_gpu import Kernel, hip, launch
import leadline
with leadline.profile(sys.argv[2], quiet=True):
    launch(Kernel(b"gemm", 50_000))
    hip().hipDeviceSynchronize()
"""


def test_an_sdk_that_another_tool_has_taken_is_named(tmp_path: Path, fakes: Path) -> None:
    """The program measures itself, and its environment names another tool only, as under `rocprofv3`."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    assert compiler is not None  # the fakes were built with it
    library, output = tmp_path / "librocprofiler-sdk-tool.so", tmp_path / "out.leadline"
    here = Path(fake_gpu.__file__).parent
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, here / "other_tool.cpp"], check=True, timeout=100)
    taken = {"ROCP_TOOL_LIBRARIES": str(library), "OTHER_TOOL": str(tmp_path / "notes")}
    subprocess.run(
        [sys.executable, "-c", ALONE, str(here), str(output)], check=True, timeout=100,
        env={**os.environ, "FAKES": str(fakes), "LD_LIBRARY_PATH": str(fakes), **taken},
    )  # fmt: skip
    profile = open_profile(output)
    assert (tmp_path / "notes").read_text().startswith("initialized ") and kernels(profile) == {}
    sentences = [sentence for _, _, sentence in told(profile)]
    assert len(sentences) == 1 and "without rocprofiler-sdk asking for Leadline" in sentences[0], sentences
    assert "ROCP_TOOL_LIBRARIES naming another tool only" in sentences[0]
