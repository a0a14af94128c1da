"""Modules, phases, steps, shapes and memory as a user would look for them."""

from __future__ import annotations

import gc

import pytest
import torch
from tests.losses import lost
from tests.torch.frames import names, operator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import leadline


def training(steps: int = 4):
    data = DataLoader(TensorDataset(torch.ones(steps * 2, 4), torch.ones(steps * 2, 1)), batch_size=2)
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
    optimizer = torch.optim.AdamW(model.parameters())

    def run() -> None:
        for inputs, targets in data:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(inputs), targets)
            loss.backward()
            optimizer.step()

    return run


def phase_counts(result) -> dict[str, int]:
    counts: dict[str, int] = {}
    for node in result.tree.find(kind="phase"):
        counts[node.name] = counts.get(node.name, 0) + node.exclusive("call_time").count
    return counts


def test_phases_and_steps(measure):
    result = measure(training(steps=4))
    counts = phase_counts(result)
    assert counts["optimizer"] == 4
    assert counts["zero_grad"] == 4
    assert counts["data loading"] == 5  # the last one finds the end
    assert counts["step"] == 3  # the time of the first is not known: nothing marks its begin
    phases = {
        name: {tuple(names(node, "phase")) for node in result.tree.find(kind="operator", name=name)}
        for name in ("aten::addmm", "aten::stack")
    }
    assert phases["aten::addmm"] == {("forward",)}
    assert phases["aten::stack"] == {("data loading",)}


@pytest.mark.parametrize("by_name", [True, False])
def test_a_closure_is_not_the_work_of_the_optimizer(measure, by_name):
    inputs, targets = torch.ones(2, 4), torch.ones(2, 1)
    model = nn.Sequential(nn.Linear(4, 1))
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=2)
    losses = []

    def closure():
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        return loss

    def run() -> None:
        losses.append(optimizer.step(closure=closure) if by_name else optimizer.step(closure))

    result = measure(run)
    assert losses[0].item() > 0
    innermost = {
        name: {tuple(names(node, "phase"))[-1] for node in result.tree.find(kind="operator", name=name)}
        for name in ("aten::addmm", "aten::mse_loss", "aten::cat", "AddmmBackward0")
    }
    assert innermost == {
        "aten::addmm": {"forward"},
        "aten::mse_loss": {"closure"},
        "aten::cat": {"optimizer"},
        "AddmmBackward0": {"backward"},
    }
    assert phase_counts(result)["optimizer"] == 1


def test_a_closure_that_fails_ends_its_phase(measure):
    optimizer = torch.optim.SGD([torch.ones(2, requires_grad=True)])

    def closure():
        raise ValueError("no loss today")

    def run() -> None:
        with pytest.raises(ValueError, match="no loss today"):
            optimizer.step(closure)
        torch.sin(torch.ones(2))

    result = measure(run)
    assert names(operator(result, "aten::sin"), "phase") == []
    assert not lost(result)


def test_steps_given_by_the_program_win(measure):
    run = training(steps=4)

    def with_marks() -> None:
        leadline.step()
        run()
        leadline.step()

    result = measure(with_marks)
    assert phase_counts(result)["step"] == 1


def test_two_optimizers_make_one_step(measure):
    first, second = nn.Linear(2, 2), nn.Linear(2, 2)
    one, other = torch.optim.SGD(first.parameters()), torch.optim.SGD(second.parameters())

    def run() -> None:
        for _ in range(5):
            second(first(torch.ones(1, 2))).sum().backward()
            one.step()
            other.step()

    assert phase_counts(measure(run))["step"] == 4


def test_module_names_of_nested_and_reused_modules(measure):
    class Block(nn.Module):
        def __init__(self, shared: nn.Module) -> None:
            super().__init__()
            self.attention = nn.Linear(4, 4)
            self.shared = shared

        def forward(self, x):
            return self.shared(self.attention(x))

    shared = nn.Linear(4, 4)
    model = nn.ModuleDict({"h": nn.ModuleList([Block(shared), Block(shared)])})

    def run() -> None:
        x = torch.ones(1, 4)
        for block in model["h"]:
            x = block(x)

    result = measure(run)
    found = {tuple(names(node, "module")) for node in result.tree.find(kind="operator", name="aten::linear")}
    assert found == {
        ("model.h.0", "model.h.0.attention"),
        ("model.h.0", "model.h.0.shared"),
        ("model.h.1", "model.h.1.attention"),
        ("model.h.1", "model.h.1.shared"),  # a shared module is named by the parent that calls it
    }


def test_shapes_when_asked(measure):
    result = measure(lambda: torch.mm(torch.ones(2, 3), torch.ones(3, 5)), shapes=True)
    node = operator(result, "aten::mm")
    assert node.detail["shapes"] == [[2, 3], [3, 5]]
    assert node.detail["types"][0] == "float"


def test_memory_is_booked_where_it_is_allocated(measure):
    kept = []

    def keep() -> None:
        kept.append(torch.empty(1000, dtype=torch.float64))

    def pass_through() -> None:
        torch.empty(5000, dtype=torch.float64)

    def run() -> None:
        for function in (keep, pass_through, keep):
            function()
        kept.clear()

    gc.collect()
    result = measure(run)
    by_function = {names(node, "python")[-1].rpartition(".")[2]: node for node in result.tree.find(name="aten::empty")}
    assert by_function["keep"].exclusive("alloc_bytes").sum == 16_000
    assert by_function["keep"].exclusive("alloc_bytes").count == 2
    assert by_function["pass_through"].exclusive("alloc_bytes").sum == 40_000
    # The peak came while one was kept and the large one lived.
    assert by_function["keep"].exclusive("peak_live_bytes").sum == 8_000
    assert by_function["pass_through"].exclusive("peak_live_bytes").sum == 40_000
    freed = sum(node.exclusive("free_bytes").sum for node in result.tree.walk())
    assert freed == 56_000


def test_memory_of_all_threads_and_beside_torch_profiler(measure):
    import threading

    def work() -> None:
        torch.empty(3000, dtype=torch.float64)

    def run() -> None:
        with torch.profiler.profile(profile_memory=True):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()

    result = measure(run)
    node = next(node for node in result.tree.find(name="aten::empty") if names(node, "python")[-1].endswith("work"))
    assert node.exclusive("alloc_bytes").sum == 24_000


def test_pause_and_resume(tmp_path):
    path = tmp_path / "paused.leadline"
    with leadline.profile(path):
        torch.sin(torch.ones(1))
        leadline.pause()
        torch.cos(torch.ones(1))
        leadline.resume()
        torch.tan(torch.ones(1))
    result = leadline.open(path)
    assert operator(result, "aten::sin")
    assert operator(result, "aten::tan")
    assert not list(result.tree.find(name="aten::cos"))


def test_nothing_is_left_after_stop(tmp_path):
    model = nn.Linear(4, 4)
    for _ in range(3):
        with leadline.profile(tmp_path / "x.leadline"):
            model(torch.ones(1, 4)).sum().backward()
    with torch.profiler.profile() as profiler:
        model(torch.ones(1, 4))
    assert profiler.key_averages()
    assert not nn.modules.module._global_module_registration_hooks
    assert nn.Module.__call__ is nn.Module._wrapped_call_impl


@pytest.mark.parametrize("steps", [2])
def test_trace_window_of_steps(measure, steps):
    result = measure(training(steps=6), trace=f"steps={steps}")
    events = result.events
    assert events is not None
    assert set(events["step"].tolist()) <= {1, 2, 3}
    starts = events["start_ns"]
    assert (starts[1:] >= starts[:-1]).all()
    assert len(starts) > 50
