"""What torch is kept from building anew is missed by nobody: callbacks come and go as they do unmeasured."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

# A profiler begins and ends inside of backward, on whatever thread runs it, and record functions are switched off and
# on there: each time by the thread's own state, which autograd puts back.
PROGRAM = """
import sys, torch
from torch.autograd.profiler import profile

def counts(events):
    found = {}
    for event in events.key_averages():
        found[event.key] = found.get(event.key, 0) + event.count
    return {name: n for name, n in found.items() if name.startswith(("aten::", "Mul", "Add", "autograd::engine"))}

class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value):
        return value.clone()

    @staticmethod
    def backward(ctx, gradient):
        with torch.enable_grad():
            again = gradient.detach().requires_grad_()
            (again * again + again).sum().backward()  # sets the thread's state within a node
        return gradient + again.grad

def work():
    value = torch.ones(3, requires_grad=True)
    for _ in range(3):
        (Twice.apply(value * value) + value).sum().backward()
    return value.grad

def measured():
    out = []
    with profile(use_kineto=False) as whole:
        work()
    out.append(counts(whole))
    seen = []
    def hook(gradient):
        with profile(use_kineto=False) as inner, torch.enable_grad():
            gradient * gradient
            torch.ones(2, requires_grad=True).mul(2).sum().backward()
        seen.append(counts(inner))
    value = torch.ones(3, requires_grad=True)
    value.register_hook(hook)
    (value * 2 + 1).sum().backward()
    out += seen
    torch.autograd._enable_record_function(False)
    with profile(use_kineto=False) as none:
        work()
    torch.autograd._enable_record_function(True)
    out.append(counts(none))
    with profile(use_kineto=False) as after:
        work()
    out.append(counts(after))
    return out

plain = measured()
import leadline
with leadline.profile(sys.argv[1], quiet=True):
    during = measured()
    work()
assert during == plain, (during, plain)
assert [bool(one) for one in plain] == [True, True, False, True], plain
assert measured() == plain
"""


def test_other_profilers_see_what_they_see_unmeasured(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "x.leadline")], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr


def test_this_torch_rebuilds_nothing(measure) -> None:
    """Or measuring costs a third more, and the status says why."""
    profile = measure(lambda: torch.ones(2, requires_grad=True).sum().backward())
    (process,) = profile.meta["processes"]
    assert process["available"]["torch"]["ok"] is True
    assert "slower" not in process["available"]["torch"]
