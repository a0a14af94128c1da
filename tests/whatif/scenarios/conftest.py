"""Training steps drawn task by task, whose times are known by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from leadline.whatif.builder import GraphBuilder
from leadline.whatif.graph import DeviceInfo, Graph, GraphInfo
from leadline.whatif.kinds import EdgeType, LaneKind, Phase, TaskKind
from leadline.whatif.predict import Prediction, predict

US = 1000


class StepBuilder:
    """A main thread that launches kernels on one stream. Times in microseconds; launches cost 1 us of CPU each."""

    def __init__(self, device: str = "NVIDIA H100 80GB HBM3") -> None:
        self.builder = GraphBuilder()
        self.device = device
        self.thread = self.builder.lane("main", LaneKind.THREAD)
        self.stream = self.builder.lane("stream 7", LaneKind.STREAM, device=0)
        self.details: dict[int, Mapping[str, Any]] = {}
        self.step = 0

    def kernel(
        self,
        name: str,
        us: float,
        phase: Phase = Phase.FORWARD,
        *,
        layer: str = "",
        cpu_us: float = 1.0,
        operator: str = "",
        detail: Mapping[str, Any] | None = None,
    ) -> int:
        """A launch and its kernel; returns the kernel."""
        launch = self.builder.task(
            "cudaLaunchKernel",
            TaskKind.CPU,
            self.thread,
            int(cpu_us * US),
            phase=phase,
            layer=layer,
            step=self.step,
            operator=operator,
        )
        task = self.builder.task(
            name,
            TaskKind.GPU,
            self.stream,
            int(us * US),
            phase=phase,
            layer=layer,
            step=self.step,
            operator=operator,
            launch=launch,
        )
        if detail is not None:
            self.details[launch] = detail
            self.details[task] = detail
        return task

    def cpu(
        self, name: str, us: float, phase: Phase = Phase.OTHER, *, kind: TaskKind = TaskKind.CPU, **more: Any
    ) -> int:
        return self.builder.task(name, kind, self.thread, int(us * US), phase=phase, step=self.step, **more)

    def gradient(self, elements: int, layer: str = "") -> int:
        """An accumulation mark of a float gradient."""
        task = self.cpu("torch::autograd::AccumulateGrad", 0, Phase.BACKWARD, layer=layer)
        self.details[task] = {"Input Dims": [[elements]], "Input type": ["float"]}
        return task

    def sync(self, us: float = 0.0) -> int:
        """A call that waits for everything on the stream."""
        task = self.cpu("cudaStreamSynchronize", us, Phase.FORWARD)
        self.builder.wait(task, self.stream)
        return task

    def edge(self, source: int, target: int, kind: EdgeType = EdgeType.DEPENDENCY) -> None:
        self.builder.edge(source, target, kind)

    def graph(self, **info: Any) -> Graph:
        graph = self.builder.graph()
        graph.info = GraphInfo(
            steps=graph.info.steps, devices=(DeviceInfo(name=self.device),) if self.device else (), **info
        )
        if self.details:
            graph.details = list(self.details.values())
            column = graph.tasks.write("detail")
            column[np.array(list(self.details))] = np.arange(len(self.details))
        return graph


@pytest.fixture
def step() -> StepBuilder:
    return StepBuilder()


@pytest.fixture
def new_step() -> Callable[..., StepBuilder]:
    return StepBuilder


@pytest.fixture
def ask() -> Callable[..., Prediction]:
    """ask(graph, "name", key="value"): the one prediction, times in microseconds beside it as `us`."""

    def one(graph: Graph, *names: str, **settings: str) -> Prediction:
        return predict(graph, names, settings).scenarios[0]

    return one
