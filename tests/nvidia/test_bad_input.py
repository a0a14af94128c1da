"""What can be wrong with a GPU, its driver or CUPTI: the program runs as it would, and one sentence says cause and fix."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from tests.nvidia import fake_gpu

from leadline.capture.config import Options
from leadline.capture.providers.nvidia import files as nvidia_files
from leadline.capture.providers.nvidia.provider import NvidiaProvider
from leadline.profiles import Profile, open_profile


def run(tmp_path: Path, fakes: Path, **environment: str) -> Profile:
    output = tmp_path / "out.leadline"
    assert fake_gpu.run_program(output, fakes, **environment) == (0, "")
    return open_profile(output)


def the_sentence(profile: Profile) -> str:
    """Of the one loss that says why the GPU is not measured."""
    said = [loss for loss in profile.losses if loss.kind.name == "PROVIDER_UNAVAILABLE" and loss.count > 0]
    assert [loss.count for loss in said] == [1]
    assert said[0].detail.count("\n") == 0
    return said[0].detail


@pytest.mark.parametrize(
    ("environment", "cause", "fix"),
    [
        ({"FAKE_DRIVER_CUDA": "12040"}, "is for CUDA 13 but the driver serves CUDA 12", "update the driver"),
        ({"FAKE_CUPTI": "17"}, "is older than CUDA 12", "nvidia-cuda-cupti"),
        ({"FAKE_REFUSES": "35"}, "does not permit profiling", "NVreg_RestrictProfilingToAdminUsers=0"),
        ({"FAKE_REFUSES": "39"}, "another tool holds CUPTI", "run without that tool"),
        ({"FAKE_HOLDER": "Nsight Compute"}, '"Nsight Compute" holds CUPTI', "run without that tool"),
        ({"CUPTI": "0", "CUDA_HOME": "/nowhere"}, "CUPTI", "nvidia-cuda-cupti"),
    ],
    ids=["old-driver", "wrong-major", "not-permitted", "held-unnamed", "held", "no-cupti"],
)  # fmt: skip
def test_one_sentence_names_the_cause_and_the_fix(
    tmp_path: Path, fakes: Path, environment: dict[str, str], cause: str, fix: str
) -> None:
    profile = run(tmp_path, fakes, **environment)
    sentence = the_sentence(profile)
    assert cause in sentence and fix in sentence, sentence
    available = profile.meta["processes"][0]["available"]["nvidia"]
    assert available["ok"] is False and available["message"] == sentence
    assert {node.name for node in profile.tree.find(kind="kernel")} <= {"default stream (CUDA events)"}
    assert sum(node.exclusive("call_time").count for node in profile.tree.find(kind="region")) == 3  # the rest goes on


def test_a_device_lost_in_the_middle_keeps_what_was_read(tmp_path: Path, fakes: Path) -> None:
    profile = run(tmp_path, fakes, LOSE="1")
    sentence = the_sentence(profile)
    assert "device was lost" in sentence and "dmesg" in sentence
    assert sum(node.exclusive("call_time").count for node in profile.tree.find(kind="region")) == 3


class Native:
    """Stands for the native module in a process whose CUDA has started, or (`awaits`) never does."""

    def __init__(self, awaits: bool = False) -> None:
        self.losses: list[str] = []
        self.awaits = awaits

    def count_loss(self, kind: str, count: int, detail: str) -> None:
        assert (kind, count) == ("provider_unavailable", 1)
        self.losses.append(detail)

    def await_nvidia(self, info: dict[str, Any]) -> dict[str, Any]:
        return {"awaiting": self.awaits, "measuring": not self.awaits, "message": ""}

    def detach_nvidia(self) -> dict[str, Any]:
        return {"measuring": False, "message": ""}

    def nvidia_status(self) -> dict[str, Any]:
        return {"awaiting": self.awaits}

    def nvtx_stop(self) -> None:
        """Nothing was begun."""

    def nvtx_status(self) -> dict[str, Any]:
        return {}


@pytest.mark.parametrize(
    ("visible", "device", "cuda", "said"),
    [
        ("0", False, "13.0", "no visible NVIDIA GPU and driver"),
        ("", True, "13.0", "CUDA_VISIBLE_DEVICES is empty"),
        ("0", True, "13.0", ""),  # it could have used one and did not
        ("", False, None, ""),  # torch for CPUs: nobody expects a GPU
    ],
    ids=["no-driver", "hidden", "unused", "cpu-build"],
)
def test_a_program_for_gpus_that_gets_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, visible: str, device: bool, cuda: str | None, said: str
) -> None:
    file = tmp_path / "nvidiactl"
    if device:
        file.touch()
    monkeypatch.setattr(nvidia_files, "_DEVICE_FILES", (file,))
    monkeypatch.setattr(nvidia_files, "driver_loaded", lambda: False)  # another test's stand-in may be in this process
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    monkeypatch.setitem(sys.modules, "torch", ModuleType("torch"))
    sys.modules["torch"].version = SimpleNamespace(cuda=None)  # type: ignore[attr-defined]
    native = Native(awaits=True)
    provider = NvidiaProvider(native, Options(), lambda: None)  # type: ignore[arg-type]
    provider.start()
    sys.modules["torch"].version.cuda = cuda
    provider.stop()
    assert len(native.losses) == (1 if said else 0)
    assert all(said in sentence and sentence.count(";") == 1 for sentence in native.losses)
    assert provider.status()["ok"] is (False if said else None)


def test_a_forked_child_says_so_when_it_wants_cuda_and_only_then(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise RuntimeError("Cannot re-initialize CUDA in forked subprocess.")

    native = Native()
    provider = NvidiaProvider(native, Options(), lambda: None)  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "torch", ModuleType("torch"))
    torch: Any = sys.modules["torch"]
    torch.version = SimpleNamespace(cuda=None)
    provider.start()
    torch.cuda = SimpleNamespace(_lazy_init=refuse)
    provider.forked()
    assert provider.status()["ok"] is None and native.losses == []
    for _ in range(2):
        with pytest.raises(RuntimeError, match="Cannot re-initialize"):
            torch.cuda._lazy_init()
    assert len(native.losses) == 1 and '"spawn"' in native.losses[0]
    assert provider.status()["ok"] is False
