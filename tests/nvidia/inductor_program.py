"""Inductor compiles for an H200 that is not there, and its kernels run on the fake GPU.

Real: dynamo's graph, Inductor's fusion, code, caches and autotuning, Triton's compiler and launcher. Replaced: what
torch asks the device (properties, streams, memory), and the stopwatch of the autotuner. Values mean nothing.
"""

import contextlib
import os
import sys
from types import SimpleNamespace
from typing import Any

from tests.nvidia import fake_gpu, fake_triton

os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
fake_gpu.load()

import torch  # noqa: E402
import torch._C._dynamo.guards as guards  # noqa: E402
import torch._dynamo.device_interface as interfaces  # noqa: E402
import torch._inductor.config as config  # noqa: E402
import torch._inductor.fx_passes.joint_graph as joint_graph  # noqa: E402
import torch._inductor.runtime.triton_heuristics as heuristics  # noqa: E402
import torch._subclasses.fake_tensor as fake_tensor  # noqa: E402
import triton  # noqa: E402
import triton.language as tl  # noqa: E402
from torch._inductor.compile_fx import compile_fx  # noqa: E402
from triton.backends import backends  # noqa: E402

import leadline  # noqa: E402


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):  # the line of add_kernel
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)


def model(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    shifted = torch.relu(x) + y
    probabilities = torch.softmax(shifted, -1)
    out = torch.empty_like(x)
    add_kernel[(32,)](probabilities, y, out, x.numel(), BLOCK=128)
    return torch.sigmoid(out).sum(0)


def replace_the_device() -> None:
    """Answers for every question that torch would put to CUDA."""
    properties = SimpleNamespace(
        name="NVIDIA H200", major=9, minor=0, multi_processor_count=132, total_memory=141 << 30, warp_size=32,
        regs_per_multiprocessor=65536, max_threads_per_multi_processor=2048, max_threads_per_block=1024,
        shared_memory_per_block=49152, shared_memory_per_block_optin=232448, L2_cache_size=60 << 20, gcnArchName="",
    )  # fmt: skip
    answers: dict[str, Any] = {
        "get_device_properties": properties, "get_device_capability": (9, 0), "current_device": 0, "device_count": 1,
        "is_initialized": True, "set_device": None, "synchronize": None,
    }  # fmt: skip
    for name, answer in answers.items():
        setattr(torch.cuda, name, lambda *_, answer=answer: answer)
    torch.cuda._DeviceGuard = lambda index: contextlib.nullcontext()  # type: ignore[assignment, misc]
    torch.version.cuda = "13.0"
    cuda = interfaces.CudaInterface
    answers |= {"exchange_device": 0, "maybe_exchange_device": 0, "get_raw_stream": 0, "is_available": True,
                "get_compute_capability": 90}  # fmt: skip
    for name, answer in answers.items():
        setattr(cuda, name, staticmethod(lambda *_, answer=answer: answer))
    cuda.Worker.get_device_properties = staticmethod(lambda *_: properties)  # type: ignore[method-assign]
    cuda.Worker.current_device = staticmethod(lambda: 0)  # type: ignore[method-assign]
    torch._C._cuda_getCurrentRawStream = lambda index: 0  # type: ignore[attr-defined]
    fake_tensor.init_gpu_context = lambda *_: None  # type: ignore[attr-defined]
    guards._empty_strided_cuda = lambda size, stride, dtype: torch.empty_strided(size, stride, dtype=dtype)  # type: ignore[attr-defined]
    driver = fake_triton.triton_driver()
    object.__setattr__(backends["nvidia"], "driver", driver)
    triton.runtime.driver.set_active(driver())
    config.use_static_cuda_launcher = False  # part of torch's CUDA build only
    config.pattern_matcher = False
    joint_graph.lazy_init = lambda *_, **__: None  # traces its patterns on the device

    def bench(self: Any, launcher: Any, *arguments: Any, **named: Any) -> float:
        launcher(*arguments, stream=0)
        return 1.0

    heuristics.CachingAutotuner.bench = bench  # type: ignore[method-assign]


def captured() -> torch.fx.GraphModule:
    """The graph that dynamo hands to its backend, with the program's lines."""
    found = []

    def backend(graph: torch.fx.GraphModule, inputs: Any) -> Any:
        found.append(graph)
        return lambda *arguments: (arguments[0].sum(0),)

    torch.compile(model, backend=backend)(torch.randn(64, 64), torch.randn(64, 64))
    for node in found[0].graph.nodes:
        node.meta.pop("example_value", None)
    return found[0]


def compiled() -> Any:
    with fake_tensor.FakeTensorMode():
        inputs = [torch.empty(64, 64, device="cuda") for _ in range(2)]
    return compile_fx(captured(), inputs)


replace_the_device()
with leadline.profile(sys.argv[1], quiet=True):
    call = compiled()
    for _ in range(4):
        call(torch.randn(64, 64), torch.randn(64, 64))
if "again" in sys.argv:  # the file after it, as of a run that rolls them
    with leadline.profile(sys.argv[1].replace(".leadline", "-again.leadline"), quiet=True):
        for _ in range(4):
            call(torch.randn(64, 64), torch.randn(64, 64))
