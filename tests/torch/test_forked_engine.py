"""torch's autograd engine in a forked child: made anew before threads of the child can meet in it.

They met in one of about thirty forks of `test_generated_programs_are_told_truly` on a busy machine, and the child
crashed in `Engine::~Engine`.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

import leadline
from leadline.capture.providers.torch import provider
from leadline.capture.providers.torch.autograd_engine import renew_engine

pytest.importorskip("torch")


def test_a_child_has_an_engine_before_the_program_goes_on_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    renewed: list[int] = []
    monkeypatch.setattr(provider, "renew_engine", lambda torch: (renewed.append(os.getpid()), renew_engine(torch)))
    with leadline.profile(tmp_path / "x.leadline", quiet=True):
        pid = os.fork()
        if pid == 0:
            os._exit(0 if renewed == [os.getpid()] else 1)
        assert os.waitpid(pid, 0)[1] == 0
    assert not renewed  # of the parent


@pytest.mark.parametrize("used", ["cuda", "xpu", ""])
def test_an_engine_with_threads_of_a_device_is_left_alone(used: str) -> None:
    asked: list[bool] = []
    engine = SimpleNamespace(is_checkpoint_valid=lambda: asked.append(True))
    devices = {name: SimpleNamespace(_is_in_bad_fork=lambda name=name: name == used) for name in ("cuda", "xpu")}
    renew_engine(
        SimpleNamespace(autograd=SimpleNamespace(Variable=SimpleNamespace(_execution_engine=engine)), **devices)
    )
    assert bool(asked) is (used == "")


def test_a_torch_without_that_engine_is_no_error() -> None:
    renew_engine(SimpleNamespace(autograd=SimpleNamespace()))
