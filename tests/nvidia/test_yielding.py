"""A vendor's library that serves one tool is torch's own while torch's profiler or its monitor of CUPTI has it."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from leadline.capture.providers.profilers.yielding import ProfilerYield

CUDA = "cuda"


class Monitor:
    fails = False

    def start(self) -> str:
        if self.fails:
            raise RuntimeError("already started")
        return "started"

    def stop(self) -> str:
        return "stopped"


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What was asked of the library, and a torch whose profiler and monitor do nothing."""
    kind = type("CuptiMonitor", (Monitor,), dict(vars(Monitor)))
    module = ModuleType("torch.profiler._cupti_monitor")
    module.CuptiMonitor = kind  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    profiler = SimpleNamespace(
        _prepare_profiler=lambda config, activities: "prepared", _disable_profiler=lambda: "disabled"
    )
    torch = SimpleNamespace(autograd=SimpleNamespace(profiler=profiler, ProfilerActivity=SimpleNamespace(CUDA=CUDA)))
    asked: list[str] = []

    def take() -> dict[str, bool]:
        asked.append("taken back")
        return {"measuring": True}

    yields: ProfilerYield[Any] = ProfilerYield(lambda _: asked.append("yielded"), take, torch, lambda _: None)  # type: ignore[arg-type]
    before = dict(vars(profiler)), kind.start, kind.stop
    yields.install()
    yield SimpleNamespace(asked=asked, profiler=profiler, kind=kind)
    yields.uninstall()
    assert (dict(vars(profiler)), kind.start, kind.stop) == before


def test_the_profiler_has_it_while_it_records_gpu_work(told: Any) -> None:
    assert (told.profiler._prepare_profiler(None, {"cpu"}), told.profiler._disable_profiler()) == (
        "prepared",
        "disabled",
    )
    assert told.asked == []
    told.profiler._prepare_profiler(None, {CUDA})
    told.profiler._disable_profiler()
    assert told.asked == ["yielded", "taken back"]


def test_the_monitor_has_it_and_keeps_it_while_a_profiler_comes_and_goes(told: Any) -> None:
    monitor = told.kind()
    assert monitor.start() == "started"
    told.profiler._prepare_profiler(None, {"cpu"})
    told.profiler._disable_profiler()
    told.profiler._prepare_profiler(None, {CUDA})
    told.profiler._disable_profiler()
    assert told.asked == ["yielded", "yielded"]
    assert monitor.stop() == "stopped"
    assert told.asked[2:] == ["taken back"]
    assert monitor.stop() == "stopped"
    assert told.asked[3:] == []


def test_a_monitor_that_cannot_begin_takes_nothing(told: Any) -> None:
    monitor = told.kind()
    monitor.fails = True
    with pytest.raises(RuntimeError, match="already started"):
        monitor.start()
    assert told.asked == ["yielded", "taken back"]


def test_a_second_beginning_that_is_refused_leaves_it_with_the_first(told: Any) -> None:
    monitor = told.kind()
    monitor.start()
    monitor.fails = True
    with pytest.raises(RuntimeError, match="already started"):
        monitor.start()
    assert "taken back" not in told.asked
