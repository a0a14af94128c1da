"""The programs that the checks measure, on a real GPU: each is run in a process of its own.

    python -m gpu_programs PROGRAM TOOL OUTPUT     TOOL: none, leadline, torch

The last line printed is a JSON object with facts for the check; `why` in it says that the machine lacks something.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from gpu_workloads import timed, workload
from torch import nn

Facts = dict[str, Any]


@dataclass(frozen=True)
class Tool:
    """What measures, and the file it writes."""

    name: str
    output: str

    @contextlib.contextmanager
    def measuring(self, **options: Any) -> Iterator[None]:
        """The body under Leadline, under torch.profiler (a Chrome trace), or under nothing."""
        if self.name == "leadline":
            import leadline

            with leadline.profile(self.output, quiet=True, **options):
                yield
                if torch.cuda.is_available():  # not where devices are hidden
                    torch.cuda.synchronize()
        elif self.name == "torch":
            activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
            with torch.profiler.profile(activities=activities) as profiler:
                yield
                torch.cuda.synchronize()
            profiler.export_chrome_trace(self.output)
        else:
            yield


class Training:
    """A convolutional net with every phase of training, copies from the host and a synchronising read."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.model = nn.Sequential(
            nn.Conv2d(3, 64, 3), nn.ReLU(), nn.Conv2d(64, 64, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(8), nn.Flatten(),
            nn.Linear(4096, 10),
        ).cuda()  # fmt: skip
        self.images = torch.randn(256, 3, 64, 64).pin_memory()
        self.labels = torch.randint(0, 10, (256,))
        self.optimizer = torch.optim.AdamW(self.model.parameters())

    def step(self) -> None:
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.model(self.images.cuda(non_blocking=True)), self.labels.cuda())
        loss.backward()
        self.optimizer.step()
        loss.item()


def train(tool: Tool, warm_up: int = 60, steps: int = 40) -> Facts:
    training = Training()
    for _ in range(warm_up):  # algorithms are chosen, modules loaded, clocks up
        training.step()
    torch.cuda.synchronize()
    with tool.measuring():
        for _ in range(steps):
            training.step()
    return {}


def short_train(tool: Tool) -> Facts:
    return train(tool, 3, 3)


def window(tool: Tool) -> Facts:
    import leadline

    training = Training()
    training.step()
    with tool.measuring(trace="steps=3"):
        for number in range(6):
            leadline.step(number)
            training.step()
    return {}


def captured_graph() -> torch.cuda.CUDAGraph:
    """Two layers captured, with the lines of `first_layer` and `second_layer`."""
    value = torch.randn(256, 256, device="cuda")

    def first_layer() -> torch.Tensor:
        return value @ value

    def second_layer(x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x)

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        second_layer(first_layer())
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        second_layer(first_layer())
    return graph


def replay(graph: torch.cuda.CUDAGraph, times: int = 10) -> None:
    for _ in range(times):
        graph.replay()
    torch.cuda.synchronize()


def graph(tool: Tool) -> Facts:
    with tool.measuring():
        replay(captured_graph())
    return {}


def late_graph(tool: Tool) -> Facts:
    made = captured_graph()
    with tool.measuring():
        replay(made)
    return {}


def nvtx_ranges() -> None:
    value = torch.randn(256, 256, device="cuda")
    for _ in range(5):
        with torch.cuda.nvtx.range("outer"):
            torch.cuda.nvtx.range_push("inner")
            torch.relu(value)
            torch.cuda.nvtx.range_pop()
    handle = torch.cuda.nvtx.range_start("started")
    torch.relu(value)
    torch.cuda.nvtx.range_end(handle)
    torch.cuda.synchronize()


def nvtx(tool: Tool) -> Facts:
    with tool.measuring():
        nvtx_ranges()
    return {}


def streams(tool: Tool) -> Facts:
    with tool.measuring():
        value = torch.randn(1024, 1024, device="cuda")
        torch.relu(value)  # on the default stream
        made = [torch.cuda.Stream() for _ in range(4)]
        torch.cuda.synchronize()
        for stream in made:
            with torch.cuda.stream(stream):
                for _ in range(10):
                    value @ value
        event = torch.cuda.Event()
        event.record(made[0])
        made[1].wait_event(event)
        event.synchronize()
        torch.cuda.synchronize()
    return {}


def compiled(tool: Tool) -> Facts:
    def fused(x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x) * 2 + torch.sigmoid(x)

    with tool.measuring():
        function = torch.compile(fused)
        value = torch.randn(1 << 20, device="cuda")
        for _ in range(5):
            function(value)
    return {}


def triton(tool: Tool) -> Facts:
    with tool.measuring():
        try:
            from gpu_triton import LINE, scale
        except ImportError as error:
            return {"why": f"Triton cannot be imported here ({error})."}
        value = torch.ones(1 << 16, device="cuda")
        for _ in range(5):
            scale(value)
    return {"file": "gpu_triton.py", "line": LINE}


def collective(tool: Tool) -> Facts:
    import torch.distributed as dist

    if not dist.is_nccl_available():
        return {"why": "This torch has no NCCL."}
    with tool.measuring():
        dist.init_process_group("nccl", store=torch._C._distributed_c10d.HashStore(), rank=0, world_size=1)
        value = torch.ones(1 << 20, device="cuda")
        dist.all_reduce(value)
        dist.all_gather_into_tensor(torch.empty_like(value), value)
        torch.cuda.synchronize()
        dist.destroy_process_group()
    return {}


def products(count: int) -> None:
    value = torch.randn(512, 512, device="cuda")
    for _ in range(count):
        value @ value
    torch.cuda.synchronize()


def coexistence(tool: Tool) -> Facts:
    """torch.profiler records in the middle; afterwards there is time to take CUPTI back."""
    products(3)
    with tool.measuring():
        products(10)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
            products(10)
        for _ in range(90):
            products(1)
            time.sleep(0.1)
        products(10)
    cuda = torch._C._autograd.DeviceType.CUDA
    return {"other_saw": sum(event.count for event in profiler.key_averages() if event.device_type == cuda)}


def teardown(tool: Tool) -> Facts:
    """Three sessions that end with work in flight; steps are timed before the first and after the last."""
    import leadline

    step = workload("decode")
    timed(step, 300)
    before = min(timed(step, 200) for _ in range(7))
    stops = []
    for _ in range(3):
        leadline.start(tool.output, quiet=True)
        timed(step, 50)
        for _ in range(200):
            step()
        begin = time.perf_counter()
        leadline.stop()
        stops.append(time.perf_counter() - begin)
        torch.cuda.synchronize()
    timed(step, 200)
    after = min(timed(step, 200) for _ in range(7))
    return {"stop_s": stops, "before_s": before, "after_s": after}


def forked(tool: Tool) -> Facts:
    """A child made by fork after CUDA has started tries to use it, which torch refuses, and ends by itself."""
    products(3)
    with tool.measuring():
        products(10)
        child = os.fork()
        if child == 0:
            with contextlib.suppress(RuntimeError):
                torch.ones(1).cuda()
            sys.exit(0)
        _, child_status = os.waitpid(child, 0)
        products(10)
    return {"child_status": child_status, "child_tried": True}


def hidden(tool: Tool) -> Facts:
    with tool.measuring():
        available = torch.cuda.is_available()
        torch.ones(4) @ torch.ones(4)
    return {"available": available}


def launcher(tool: Tool) -> Facts:
    """A launcher without CUDA that starts a process with it."""
    subprocess.run([sys.executable, "-m", "gpu_programs", "nvtx", "none", "unused"], check=True)
    return {}


PROGRAMS: dict[str, Callable[[Tool], Facts]] = {
    "train": train, "short-train": short_train, "window": window, "graph": graph, "late-graph": late_graph,
    "nvtx": nvtx, "streams": streams, "compiled": compiled, "triton": triton, "collective": collective,
    "coexistence": coexistence, "teardown": teardown, "forked": forked, "hidden": hidden, "launcher": launcher,
}  # fmt: skip


def main() -> None:
    program, tool, output = sys.argv[1:4]
    facts = PROGRAMS[program](Tool(tool, output))
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
