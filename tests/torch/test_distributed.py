"""Two ranks over gloo: communication on helper threads stands below the line that asked for it."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from tests.torch.frames import names, statements

from leadline.profiles import Profile, open_profile

if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
    pytest.skip("This torch has no gloo, so two ranks on one machine cannot talk.", allow_module_level=True)

PROGRAM = Path(__file__).with_name("ranks.py")
LINES = PROGRAM.read_text().splitlines()


def line_of(text: str) -> int:
    return next(number for number, line in enumerate(LINES, 1) if text in line)


class Ranks:
    """Two ranks of each way to train, run once for all tests."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._seen: dict[str, list[Profile]] = {}

    def __call__(self, way: str) -> list[Profile]:
        if way not in self._seen:
            self._seen[way] = two_ranks(way, self.folder)
        return self._seen[way]


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Ranks:
    return Ranks(tmp_path_factory.mktemp("ranks"))


def two_ranks(way: str, place: Path) -> list[Profile]:
    folder = place / way
    folder.mkdir()
    if way == "fsdp2" and not hasattr(importlib.import_module("torch.distributed.fsdp"), "fully_shard"):
        pytest.skip("This torch has no fully_shard in torch.distributed.fsdp; it came with 2.6.")
    here = PROGRAM.parents[2]
    command = [sys.executable, str(PROGRAM), way, str(folder)]
    path = os.pathsep.join([str(here), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=240)
    assert result.returncode == 0, result.stderr
    return [open_profile(folder / f"{rank}.leadline") for rank in (0, 1)]


def collectives(profile: Profile) -> list:
    return [
        node
        for node in profile.tree.find(kind="region")
        if node.name.startswith("gloo:") and node.exclusive("call_time").count
    ]


def program_lines(node) -> list[int]:
    return [line for file, _, line in statements(node) if file == str(PROGRAM)]


def test_an_asynchronous_collective_stands_at_its_launch(ranks: Ranks) -> None:
    for profile in ranks("async"):
        (node,) = (node for node in collectives(profile) if node.name == "gloo:all_reduce")
        assert node.exclusive("call_time").count == 1
        assert names(node, "thread") == ["main"]
        assert program_lines(node)[-1] == line_of("# the launch")
        assert names(node, "operator", "phase")[-2:] == ["c10d::allreduce_", "on another thread"]
        (thread,) = {step.detail["thread"] for step in node.path() if step.name == "on another thread"}
        assert thread != "main"


FSDP1 = "_fsdp_wrapped_module"
LAYERS = {
    "ddp": "model.module.{}.",
    "fsdp1": f"model.{FSDP1}.{{}}.{FSDP1}.",
    "fsdp2": "model.{}.",
}
"""What layers of a block are called below the wrapper, as the program itself would write it."""


@pytest.mark.parametrize("way", LAYERS)
def test_no_collective_is_without_a_line_and_no_layer_without_its_name(ranks: Ranks, way: str) -> None:
    for profile in ranks(way):
        linear = {names(node, "module")[-1] for node in profile.tree.find(kind="operator", name="aten::linear")}
        assert linear == {LAYERS[way].format(block) + layer for block in (0, 1) for layer in ("up", "down")}
        found = collectives(profile)
        assert found
        for node in found:
            assert names(node, "thread") == ["main"]
            assert program_lines(node)
            assert names(node, "phase")[-1] == "on another thread"
        assert [loss for loss in profile.losses if loss.kind.name == "OPERATOR_END_UNMATCHED" and loss.count] == []


def test_what_gathers_weights_for_backward_stands_at_the_forward_line(ranks: Ranks) -> None:
    """FSDP2 gathers a block's weights in a hook of its output, before the addition's backward operator begins."""
    for profile in ranks("fsdp2"):
        backward = [node for node in collectives(profile) if "FSDP::pre_backward" in region_names(node)]
        assert backward
        for node in backward:
            assert line_of("# the residual") in program_lines(node), names(node, "python", "operator", "region")
            assert "backward" in names(node, "phase")


def region_names(node) -> str:
    return " ".join(names(node, "region"))
