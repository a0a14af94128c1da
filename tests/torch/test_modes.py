"""Measuring begins inside one of torch's modes, or sees tensors without a shape."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from tests.losses import lost

import leadline

torch = pytest.importorskip("torch")
CALLS = 10
MODES: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "inference": torch.inference_mode,
    "no_grad": torch.no_grad,
    "meta": lambda: torch.device("meta"),
    "save_on_cpu": torch.autograd.graph.save_on_cpu,
}


@pytest.mark.parametrize("mode", MODES)
def test_operators_are_counted_where_measuring_begins_inside_a_mode(mode: str, tmp_path: Path) -> None:
    with MODES[mode]():
        value = torch.ones(8, 8)
        with leadline.profile(tmp_path / "out.leadline", quiet=True, shapes=True):
            for _ in range(CALLS):
                torch.mm(value, value)
    profile = leadline.open(tmp_path / "out.leadline")
    assert not lost(profile)
    calls = [
        node.exclusive("call_time").count for node in profile.tree.find(kind="operator") if node.name == "aten::mm"
    ]
    assert sum(calls) == CALLS


def test_tensors_without_a_shape_are_no_loss(tmp_path: Path) -> None:
    """torch's encoder layers compute on nested tensors where a mask says what is padding."""
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    padding = torch.zeros(4, 6, dtype=torch.bool)
    padding[:, 4:] = True
    with warnings.catch_warnings(), torch.inference_mode():
        warnings.simplefilter("ignore")  # nested tensors are a prototype, says torch
        model = torch.nn.TransformerEncoder(layer, 2).eval()
        with leadline.profile(tmp_path / "out.leadline", quiet=True, shapes=True):
            for _ in range(CALLS):
                model(torch.ones(4, 6, 16), src_key_padding_mask=padding)
    profile = leadline.open(tmp_path / "out.leadline")
    assert not lost(profile)
    layers = [
        node for node in profile.tree.find(kind="operator") if node.name.endswith("_transformer_encoder_layer_fwd")
    ]
    assert sum(node.exclusive("call_time").count for node in layers) == 2 * CALLS
