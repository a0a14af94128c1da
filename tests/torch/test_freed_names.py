"""Operators that are taken away again: their calls stay theirs when torch gives the memory of their names to others."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import leadline

torch = pytest.importorskip("torch")

MADE = 24
CALLS = 3


def _make_and_call(number: int, call: Callable[[Callable[[], object]], None], tensor: object) -> None:
    """One operator whose name is too long to lie within its record, called CALLS times and taken away."""
    library = torch.library.Library(f"freed{number:03d}", "DEF")
    name = f"operator_with_a_long_name_{number:03d}"
    library.define(f"{name}(Tensor x) -> Tensor")
    library.impl(name, lambda x: x.clone(), "CPU")
    library.impl(name, torch.library.fallthrough_kernel, "Autograd")
    operator = getattr(getattr(torch.ops, f"freed{number:03d}"), name)
    for _ in range(CALLS):
        call(lambda: operator(tensor))
    delattr(torch.ops, f"freed{number:03d}")
    library._destroy()


def _directly(work: Callable[[], object]) -> None:
    work()


def _on_a_thread(work: Callable[[], object]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


@pytest.mark.parametrize("options", [{}, {"shapes": True}, {"native": "yes"}], ids=["plain", "shapes", "native"])
@pytest.mark.parametrize("call", [_directly, _on_a_thread])
def test_calls_are_counted_under_the_names_that_were_called(
    tmp_path: Path, options: dict[str, bool | str], call
) -> None:
    recorded = torch.ones(4, requires_grad=True)
    with leadline.profile(tmp_path / "out.leadline", quiet=True, **options):
        for number in range(MADE):
            _make_and_call(number, call, recorded if number % 3 == 0 else recorded.detach())
    counted: Counter[str] = Counter()
    for node in leadline.open(tmp_path / "out.leadline").tree.find(kind="operator"):
        if node.name.startswith("freed"):
            counted[node.name] += node.exclusive("call_time").count
    assert counted == {f"freed{at:03d}::operator_with_a_long_name_{at:03d}": CALLS for at in range(MADE)}


def test_one_worker_that_outlives_the_operators(tmp_path: Path) -> None:
    """The thread's own memory of names goes, too, and what is called between keeps its name."""
    inbox: list[Callable[[], object]] = []
    ready, done = threading.Semaphore(0), threading.Semaphore(0)

    def worker() -> None:
        while ready.acquire() and (work := inbox.pop()) is not None:
            work()
            torch.neg(value)
            done.release()

    def call(work: Callable[[], object]) -> None:
        inbox.append(work)
        ready.release()
        done.acquire()

    value = torch.ones(4)
    thread = threading.Thread(target=worker)
    with leadline.profile(tmp_path / "out.leadline", quiet=True):
        thread.start()
        for number in range(MADE):
            _make_and_call(number, call, value)
        inbox.append(None)  # type: ignore[arg-type]
        ready.release()
        thread.join()
    counted: Counter[str] = Counter()
    for node in leadline.open(tmp_path / "out.leadline").tree.find(kind="operator"):
        counted[node.name] += node.exclusive("call_time").count
    assert counted["aten::neg"] == MADE * CALLS
    assert sum(count == CALLS for name, count in counted.items() if name.startswith("freed")) == MADE
