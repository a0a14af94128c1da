"""100 starts and stops of Leadline in a training loop whose CUDA graph lives on: loss bit-equal, memory flat.

    python -m gpu_starts COUNT SECONDS      the last line printed is the verdict as JSON

The same steps run twice from the same state, first without Leadline. Half of a turn's steps are replays of the graph.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from gpu_run import rehearsing
from torch import nn

import leadline

STEPS = 4
_GROWTH = 24 << 20
"""Bytes that the process may grow by between the first fifth and the end, and the device as well."""


class Training:
    """A small net with SGD whose step is taken eagerly, and on a GPU from a graph as well."""

    def __init__(self) -> None:
        device = "cpu" if rehearsing() else "cuda"
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)).to(device)
        self.inputs, self.labels = torch.randn(64, 256, device=device), torch.randint(0, 10, (64,), device=device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.loss = torch.zeros((), device=device)
        self.graph = self._captured() if device == "cuda" else None
        self.first = [value.detach().clone() for value in self.model.parameters()]

    def eager(self) -> None:
        self.optimizer.zero_grad(set_to_none=False)
        loss = nn.functional.cross_entropy(self.model(self.inputs), self.labels)
        loss.backward()
        self.optimizer.step()
        self.loss.copy_(loss.detach())

    def _captured(self) -> torch.cuda.CUDAGraph:
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                self.eager()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.eager()
        return graph

    def reset(self) -> None:
        with torch.no_grad():
            for value, first in zip(self.model.parameters(), self.first, strict=True):
                value.copy_(first)

    def turn(self) -> list[float]:
        """Losses of a few steps."""
        losses = []
        for number in range(STEPS):
            self.graph.replay() if self.graph is not None and number % 2 else self.eager()
            losses.append(self.loss.item())
        return losses


def memory() -> tuple[int, int]:
    """Bytes of this process, and bytes in use on the device."""
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
    if rehearsing():
        return resident, 0
    free, total = torch.cuda.mem_get_info()
    return resident, total - free


def turns(training: Training, count: int, around: Callable[[Callable[[], None]], None], until: float) -> list[float]:
    """Losses of so many turns, each of which `around` runs; fewer where the time is up."""
    training.reset()
    losses: list[float] = []
    for _ in range(count):
        if time.monotonic() > until:
            break
        around(lambda: losses.extend(training.turn()))
    return losses


def main() -> int:
    count, until = int(sys.argv[1]), time.monotonic() + float(sys.argv[2])
    training = Training()
    grown: list[tuple[int, int]] = []
    seconds: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        output = str(Path(folder, "starts.leadline"))

        def measured(body: Callable[[], None]) -> None:
            begin = time.perf_counter()
            leadline.start(output, quiet=True)
            body()
            leadline.stop()
            seconds.append(time.perf_counter() - begin)
            grown.append(memory())

        plain = turns(training, count, lambda body: body(), until)
        ours = turns(training, count, measured, until)
        lost = {loss.kind.name: loss.count for loss in leadline.open(output).losses if loss.count}
    done = len(grown)
    (first, first_device), (last, last_device) = grown[done // 5], grown[-1]
    equal = ours == plain[: len(ours)] and bool(ours)
    facts: dict[str, Any] = {
        "starts": done, "losses bit-equal": equal,
        "device_kib_by_start": [(now - grown[0][1]) >> 10 for _, now in grown[:: max(done // 20, 1)]],
        "memory_bytes": last - first, "device_bytes": last_device - first_device,
        "start_to_stop_s": [round(min(seconds), 4), round(max(seconds), 4)], "graph": training.graph is not None,
        "lost in the last": lost,
    }  # fmt: skip
    flat = max(facts["memory_bytes"], facts["device_bytes"]) <= _GROWTH
    print(json.dumps({"ok": equal and flat, **facts}))
    return 0 if equal and flat else 1


if __name__ == "__main__":
    sys.exit(main())
