"""Each remedy that Leadline ships in a real program: it takes effect and knows it, or knows that it did not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from leadline.remedies.plan import Plan
from leadline.remedies.registry import find, names, shipped

pytestmark = pytest.mark.torch

_PLAIN = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(30):
    optimizer.zero_grad()
    loss = model(torch.randn(8, 32)).pow(2).mean()
    loss.backward()
    optimizer.step()
"""
_RICH = """
import gc, torch
from torch import nn
torch.autograd.set_detect_anomaly(True)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.drop, self.head = nn.Conv2d(3, 8, 3), nn.Dropout(0.5), nn.Linear(8 * 36, 4)
    def forward(self, images):
        x = self.drop(self.conv(images)).flatten(1)
        q = x.view(len(x), 1, 8, 36)
        return self.head(nn.functional.scaled_dot_product_attention(q, q, q).flatten(1))
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
data = torch.utils.data.TensorDataset(torch.randn(512, 3, 8, 8), torch.randint(0, 4, (512,)))
loader = torch.utils.data.DataLoader(data, batch_size=8)
for images, wanted in loader:
    optimizer.zero_grad(set_to_none=False)
    nn.functional.cross_entropy(model(images), wanted).backward()
    optimizer.step()
    gc.collect()
    model.eval()
    with torch.no_grad():
        model(images)
    model.train()
"""
_TAKE = {
    "autocast": "",
    "fused_optimizer": "",
    "foreach_optimizer": "",
    "set_to_none": "",
    "channels_last": "",
    "workers": "1",
    "sdpa": "math",
    "no_dropout": "",
    "inference_mode": "",
    "no_anomaly": "",
    "gc_freeze": "",
    "batch": "x2",
}
"""Remedies that take effect in the second program, with their values."""
_REASONS = {
    "fused_optimizer": "already",
    "channels_last": "no 2-d convolution",
    "workers": "makes no DataLoader",
    "persistent_workers": "makes no DataLoader",
    "prefetch_factor": "makes no DataLoader",
    "pin_memory": "makes no DataLoader",
    "batch": "makes no DataLoader",
    "sdpa": "does not call scaled_dot_product_attention",
    "no_dropout": "no dropout",
    "inference_mode": "no module was called in evaluation mode",
    "no_anomaly": "does not turn anomaly detection on",
    "set_to_none": "does not fill gradients with zeros",
    "ddp_static_graph": "makes no DistributedDataParallel",
    "gradient_as_bucket_view": "makes no DistributedDataParallel",
    "bucket_cap_mb": "makes no DistributedDataParallel",
    "cudnn_benchmark": "uses no GPU",
    "expandable_segments": "uses no GPU",
    "tf32": "no GPU",
    "num_threads": "already",
    "jax_matmul_precision": "does not import jax",
}
"""What remedies say of the first program."""
_NEEDED = {
    "workers": "2",
    "prefetch_factor": "4",
    "batch": "x2",
    "sdpa": "math",
    "num_threads": "1",
    "bucket_cap_mb": "5",
}


def record(folder: Path, text: str, remedies: tuple[tuple[str, str, str], ...], **told: Any) -> dict[str, Any]:
    """What one process of a run leaves behind."""
    (folder / "train.py").write_text(text)
    plan = folder / "plan.txt"
    Plan(**{"folder": str(folder), "steps": 10, "warm_up": 2, "remedies": remedies, "mark": "optimizer", **told}).write(
        plan
    )
    environment = {**os.environ, "LEADLINE": "trial", "LEADLINE_TRIAL": str(plan), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "train.py"], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (path,) = folder.glob("*.json")
    found: dict[str, Any] = json.loads(path.read_text())
    path.unlink()
    return found


def test_remedies_that_find_nothing_to_change_say_why(tmp_path: Path) -> None:
    remedies = tuple((name, _NEEDED.get(name, ""), "") for name in _REASONS if name != "fused_optimizer")
    fused = _PLAIN.replace("lr=0.1", "lr=0.1, fused=True")
    found = record(tmp_path, fused, (("fused_optimizer", "", ""), *remedies))
    said = {title.partition("=")[0]: reason for title, reason in found["outcomes"].items()}
    assert found["faults"] == []
    for name, reason in _REASONS.items():
        assert reason in said[name], name


def test_remedies_that_take_effect_know_it(tmp_path: Path) -> None:
    alone = {"fused_optimizer": "foreach_optimizer"}
    remedies = tuple((name, value, "") for name, value in _TAKE.items() if name not in alone)
    found = record(tmp_path, _RICH, remedies)
    assert found["faults"] == []
    assert {title: reason for title, reason in found["outcomes"].items() if reason} == {}
    assert found["steps"] == 12
    assert found["precision"] == "bfloat16"
    assert record(tmp_path, _RICH, (("fused_optimizer", "", ""),))["outcomes"] == {"fused_optimizer": ""}


def test_a_product_that_no_layer_makes_is_cast_too(tmp_path: Path) -> None:
    program = """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.kernel = torch.nn.Parameter(torch.randn(16, 4))
    def forward(self, x):
        return x @ self.kernel
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(30):
    model(torch.randn(8, 16)).pow(2).mean().backward()
    optimizer.step()
"""
    assert record(tmp_path, program, (("autocast", "", ""),))["outcomes"] == {"autocast": ""}


@pytest.mark.parametrize("name", names())
def test_a_run_is_told_every_remedy_as_it_was_asked_for(name: str) -> None:
    value = _NEEDED.get(name) or {"malloc": "jemalloc", "jit": "step"}.get(name, "")
    asked = find(name, value)
    told = find(asked.name, asked.chosen)
    assert (type(told), told.title, told.chosen) == (type(asked), asked.title, asked.chosen)


def test_a_model_that_torch_cannot_compile_says_what_torch_says(tmp_path: Path) -> None:
    program = """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.kernel = torch.nn.Parameter(torch.randn(4, 4))
    def forward(self, adjacency):
        return torch.sparse.mm(adjacency, self.kernel)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(30):
    model(torch.eye(4).to_sparse()).pow(2).mean().backward()
    optimizer.step()
"""
    said = record(tmp_path, program, (("compile", "", ""),))["outcomes"]["compile"]
    assert said.startswith("torch.compile made no graph of it (")
    assert "sparse" in said


def test_every_remedy_has_been_asked() -> None:
    open_here = {"compile", "float32_matmul_precision", "malloc", "donation", "jit"}  # the latter: test_jax_remedies
    assert set(names()) <= set(_TAKE) | set(_REASONS) | open_here
    assert [one.name for one in shipped()] == list(names())


def test_without_a_remedy_the_program_computes_what_it_computes_alone(tmp_path: Path) -> None:
    alone = _PLAIN.replace("import torch\n", "import torch\ntorch.manual_seed(3)\nlosses = []\n", 1).replace(
        "    loss.backward()", "    losses.append(loss.item()); loss.backward()"
    )
    (tmp_path / "alone.py").write_text(alone + "print(losses[:12])\n")
    done = subprocess.run(
        [sys.executable, "alone.py"],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    found = record(tmp_path, alone, ())
    assert [value for _, value in found["values"]] == json.loads(done.stdout)
    assert [step for step, _ in found["values"]] == list(range(1, 13))


def test_a_run_repeats_to_the_bit_and_one_rounding_or_other_random_numbers_do_not(tmp_path: Path) -> None:
    program = _PLAIN.replace("torch.nn.ReLU()", "torch.nn.Dropout(0.1)")
    first, again = record(tmp_path, program, ()), record(tmp_path, program, ())
    assert first["digest"] == again["digest"]
    assert first["values"] == again["values"]
    assert record(tmp_path, program, (), rounding=2.0**-23)["digest"] != first["digest"]
    assert record(tmp_path, program, (), redraw=1)["values"][0] != first["values"][0]


def test_optimizers_that_take_turns_end_one_step(tmp_path: Path) -> None:
    program = """
import torch
one, two = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
optimizers = [torch.optim.SGD(net.parameters(), lr=0.1) for net in (one, two)]
for _ in range(40):
    for net, optimizer in zip((one, two), optimizers):
        optimizer.zero_grad()
        net(torch.randn(2, 4)).sum().backward()
        optimizer.step()
"""
    found = record(tmp_path, program, (), mark="")
    assert (found["mark"], found["steps"]) == ("optimizer", 12)
    assert max(step for step, _ in found["values"]) == 12


@pytest.mark.parametrize(
    ("body", "mark"),
    [
        ("for batch in loader: model(batch[0])", "batches"),
        ("for _ in range(40): model(torch.randn(2, 4))", "module calls"),
    ],
)
def test_programs_without_an_optimizer_have_steps_too(tmp_path: Path, body: str, mark: str) -> None:
    program = f"""
import torch
model = torch.nn.Linear(4, 4)
data = torch.utils.data.TensorDataset(torch.randn(80, 4))
loader = torch.utils.data.DataLoader(data, batch_size=2)
with torch.no_grad():
    {body}
"""
    found = record(tmp_path, program, (), mark="")
    assert (found["mark"], found["steps"]) == (mark, 12)


def test_a_compiled_program_of_jax_has_steps_and_values(tmp_path: Path) -> None:
    pytest.importorskip("jax")
    program = """
import jax, jax.numpy as jnp
@jax.jit
def train_step(weights, x):
    loss, gradient = jax.value_and_grad(lambda w: jnp.mean((x @ w) ** 2))(weights)
    return weights - 0.1 * gradient, loss
weights, x = jnp.ones((4, 2)), jnp.ones((8, 4))
for _ in range(40):
    weights, loss = train_step(weights, x)
"""
    found = record(tmp_path, program, (), mark="")
    assert (found["mark"], found["steps"]) == ("program calls", 12)
    assert len(found["values"]) == 12
    assert found["digest"]
    assert found["faults"] == []
