"""Operators in constructors: every call of a class stands on one path, whatever short cuts the interpreter takes."""

from __future__ import annotations

import time
from pathlib import Path

import torch
from tests.torch.frames import statements

import leadline
from leadline.profiles import open_profile

CALLS = 40


class Made:
    def __init__(self, x: torch.Tensor) -> None:
        self.y = self.computed(x)

    def computed(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x)


class Busy:
    def __init__(self) -> None:
        ends = time.thread_time() + 0.005
        while time.thread_time() < ends:
            pass


def test_calls_of_a_class_are_one_path_of_its_functions(tmp_path: Path) -> None:
    x = torch.ones(8)
    with leadline.profile(tmp_path / "run.leadline", quiet=True):
        for _ in range(CALLS):
            Made(x)
    (node,) = open_profile(tmp_path / "run.leadline").tree.find(kind="operator", name="aten::sin")
    assert node.exclusive("call_time").count == CALLS
    assert [function for _, function, _ in statements(node)][-3:] == [
        "test_calls_of_a_class_are_one_path_of_its_functions",
        "__init__",
        "computed",
    ]


def test_samples_in_constructors_are_of_its_functions(tmp_path: Path) -> None:
    with leadline.profile(tmp_path / "run.leadline", quiet=True, cpu_sample=200.0):
        for _ in range(CALLS):
            Busy()
    tree = open_profile(tmp_path / "run.leadline").tree
    sampled = [node for node in tree.find(kind="python") if node.name == "Busy.__init__"]
    assert sampled
    assert {node.parent.name for node in sampled} <= {
        "test_samples_in_constructors_are_of_its_functions",
        "Busy.__init__",
    }
    assert not [node for node in tree.find(kind="python") if node.line == 0]
