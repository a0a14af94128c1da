"""Fixes for GPUs without one: what each does where a GPU is there, and the sentence where it changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.trials.test_remedies import record

from leadline.remedies.base import NotApplied
from leadline.remedies.plan import Plan
from leadline.remedies.registry import find
from leadline.remedies.shipped.scaler import Scaler
from leadline.remedies.trial import Trial

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def _trial(folder: Path) -> Trial:
    return Trial(Plan(str(folder), 10, 2, mark="optimizer"))


@pytest.mark.parametrize(("capability", "said"), [((9, 0), ""), ((7, 5), "this GPU has no TF32")])
def test_tf32_needs_a_gpu_that_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int], said: str
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)
    remedy: Any = find("tf32", "")
    remedy._before = "highest"
    assert remedy.outcome(_trial(tmp_path)) == said
    remedy._before = "high"
    assert "already" in remedy.outcome(_trial(tmp_path))


@pytest.mark.parametrize(
    ("layers", "on", "said"),
    [(1, True, ""), (0, True, "the program has no convolution"), (1, False, "the program turns it off")],
)
def test_cudnn_benchmark_is_for_convolutions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layers: int, on: bool, said: str
) -> None:
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    remedy: Any = find("cudnn_benchmark", "")
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", on)
    remedy._look(torch.nn.Sequential(*[torch.nn.Conv2d(1, 1, 1) for _ in range(layers)]))
    assert remedy.outcome(_trial(tmp_path)) == said


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("", "", {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}),
        (
            "PYTORCH_CUDA_ALLOC_CONF",
            "max_split_size_mb:64,expandable_segments:False",
            {"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:64,expandable_segments:True"},
        ),
        ("PYTORCH_ALLOC_CONF", "pinned_use_background_threads:True", None),
    ],
)
def test_expandable_segments_keeps_what_the_user_has_set(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, wanted: dict[str, str] | None
) -> None:
    for one in ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"):
        monkeypatch.delenv(one, raising=False)
    if name:
        monkeypatch.setenv(name, value)
    assert find("expandable_segments", "").environment() == (wanted or {name: f"{value},expandable_segments:True"})


@pytest.mark.parametrize(
    ("value", "said"),
    [("expandable_segments:True", "has it already"), ("backend:cudaMallocAsync", "another allocator than torch's own")],
)
def test_expandable_segments_says_what_is_in_its_way(monkeypatch: pytest.MonkeyPatch, value: str, said: str) -> None:
    monkeypatch.delenv("PYTORCH_ALLOC_CONF", raising=False)
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", value)
    with pytest.raises(NotApplied, match=said):
        find("expandable_segments", "").environment()


def test_expandable_segments_looks_whether_segments_grow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    remedy = find("expandable_segments", "")
    monkeypatch.setattr(torch.cuda, "memory_snapshot", lambda: [{"is_expandable": True}])
    assert remedy.outcome(_trial(tmp_path)) == ""
    monkeypatch.setattr(torch.cuda, "memory_snapshot", lambda: [{"is_expandable": False}])
    assert "no segment that grows" in remedy.outcome(_trial(tmp_path))


def test_pin_memory_is_for_programs_with_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    remedy: Any = find("pin_memory", "")
    assert remedy.changed({}) == {}
    assert remedy._reason == "there is no device to copy to"
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    assert remedy.changed({}) == {"pin_memory": True}
    assert remedy.changed({"pin_memory": True}) == {}


_ATTENTION = """
import torch
layer = torch.nn.Linear(16, 16)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
for _ in range(30):
    x = layer(torch.randn(2, 4, 8, 16))
    torch.nn.functional.scaled_dot_product_attention(x, x, x).sum().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("kind", "said"),
    [("math", ""), ("flash", "torch chooses flash for it already"), ("efficient", "no efficient implementation for")],
)
def test_attention_says_which_implementations_there_are(tmp_path: Path, kind: str, said: str) -> None:
    found = record(tmp_path, _ATTENTION, (("sdpa", kind, ""),))
    assert found["faults"] == []
    (outcome,) = found["outcomes"].values()
    assert (outcome == "") if not said else (said in outcome)


def test_losses_are_scaled_and_gradients_are_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = torch.amp.GradScaler("cpu", init_scale=1024.0)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.amp, "GradScaler", lambda kind: made)
    trial = _trial(tmp_path)
    scaler = Scaler(trial)
    layer = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.0)
    plain, x = torch.nn.Linear(4, 1), torch.randn(3, 4)
    plain.load_state_dict(layer.state_dict())
    plain(x).sum().backward()
    scaler.install()
    try:
        layer(x).sum().backward()
        assert torch.equal(layer.weight.grad, plain.weight.grad * 1024)
        optimizer.step()
        assert torch.equal(layer.weight.grad, plain.weight.grad)
        assert trial.loss_scale == 1024.0
    finally:
        trial.replaced.undo()
        scaler.refused = "the test is over"  # hooks of torch stay
