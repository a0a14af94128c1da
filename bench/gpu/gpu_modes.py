"""What a step can run under in the table of a launch's cost: nothing, clients of CUPTI that do nothing, profilers.

Every mode is entered and left again in one process, so that modes can take turns. The three groups are processes of
their own: torch.profiler and Proton each keep something of CUPTI when they have ended.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import functools
import importlib
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MEMCPY, MEMSET, DRIVER, RUNTIME, KERNELS, OVERHEAD, WAITS, GRAPHS = 1, 2, 4, 5, 10, 17, 38, 51
"""CUpti_ActivityKind; KERNELS: concurrent ones."""
_RESULT = ctypes.c_uint64
Facts = dict[str, Any]
Mode = Callable[[], AbstractContextManager[Facts]]
CARRIED = "ROUND_CARRIED"
"""Environment: the folder that prepare.sh made."""


@dataclass(frozen=True)
class Client:
    """An empty client: which callbacks (0 none, 1 of launches, 2 all of the domain), which kinds of records."""

    runtime: int = 0
    driver: int = 0
    kinds: tuple[int, ...] = ()
    buffer_bytes: int = 1 << 20
    zeroed: bool = False


CLIENTS: dict[str, Client] = {
    "CUPTI subscriber, no callbacks": Client(),
    "+ runtime callbacks of launches": Client(runtime=1),
    "+ all runtime callbacks": Client(runtime=2),
    "+ driver callbacks of launches": Client(driver=1),
    "+ runtime and driver callbacks of launches": Client(runtime=1, driver=1),
    "kernel records": Client(kinds=(KERNELS,)),
    "kernel records, zeroed buffers of 256 KiB": Client(kinds=(KERNELS,), buffer_bytes=1 << 18, zeroed=True),
    "kernel records, buffers of 8 MiB": Client(kinds=(KERNELS,), buffer_bytes=8 << 20),
    "kernel records + runtime callbacks of launches": Client(runtime=1, kinds=(KERNELS,)),
    "kernel records + copies, sets": Client(kinds=(KERNELS, MEMCPY, MEMSET)),
    "kernel records + waits": Client(kinds=(KERNELS, WAITS)),
    "kernel records + overhead": Client(kinds=(KERNELS, OVERHEAD)),
    "kernel records + runtime, driver records": Client(kinds=(KERNELS, RUNTIME, DRIVER)),
    "graph records": Client(kinds=(GRAPHS, KERNELS)),
}
"""By name; all over one library that does nothing with what it gets."""
ESSENTIAL = (
    "unprofiled", "CUPTI subscriber, no callbacks", "+ runtime callbacks of launches", "+ all runtime callbacks",
    "+ driver callbacks of launches", "kernel records", "kernel records + runtime callbacks of launches",
    "kernel records + waits", "kernel records + overhead", "kernel records, zeroed buffers of 256 KiB",
    "empty operator callbacks", "Leadline",
)  # fmt: skip
"""What is measured where time is short."""


class EmptyClient:
    """empty_cupti.cpp, over CUPTI as this process has it."""

    def __init__(self) -> None:
        from leadline.capture.providers.nvidia.files import cupti_candidates

        self._library = ctypes.CDLL(os.environ.get("ROUND_EMPTY_CUPTI", f"{os.environ[CARRIED]}/lib/libempty_cupti.so"))
        self._library.empty_start.argtypes = [
            ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t, ctypes.c_int,
        ]  # fmt: skip
        fakes = os.environ.get("LEADLINE_BENCH_FAKES")
        paths = [f"{fakes}/libcupti.so.13"] if fakes else list(cupti_candidates())
        self.path = next((path for path in paths if self._library.empty_load(path.encode()) == 0), "")
        if not self.path:
            raise RuntimeError(f"CUPTI cannot be loaded; looked at {', '.join(paths)}")

    @contextlib.contextmanager
    def mode(self, client: Client) -> Iterator[Facts]:
        """Raises RuntimeError with CUPTI's number where it refuses."""
        kinds = (ctypes.c_uint32 * max(len(client.kinds), 1))(*client.kinds)
        code = self._library.empty_start(
            client.runtime, client.driver, kinds, len(client.kinds), client.buffer_bytes, client.zeroed
        )
        facts: Facts = {}
        callbacks, records = _RESULT(), _RESULT()
        try:
            if code != 0:
                raise RuntimeError(f"CUPTI answers {code}")
            yield facts
        finally:
            leave = int(bool(os.environ.get("ROUND_NOT_FINALIZED")))
            left = self._library.empty_stop(ctypes.byref(callbacks), ctypes.byref(records), leave)
            facts |= {"callbacks": callbacks.value, "records": records.value, "finalized": left == 1}


class EmptyOperators:
    """floor.cpp: callbacks of torch's operators that do nothing."""

    def __init__(self) -> None:
        import torch

        self._torch = str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so").encode()
        self._library = ctypes.CDLL(f"{os.environ[CARRIED]}/lib/libfloor.so")

    @contextlib.contextmanager
    def mode(self) -> Iterator[Facts]:
        if self._library.floor_attach(self._torch):
            raise RuntimeError("This torch does not export its callbacks")
        try:
            yield {}
        finally:
            self._library.floor_detach(self._torch)


@contextlib.contextmanager
def unprofiled() -> Iterator[Facts]:
    yield {}


@contextlib.contextmanager
def leadline_mode(output: str, **options: Any) -> Iterator[Facts]:
    """Facts: file size, and the losses by name."""
    import leadline

    facts: Facts = {}
    with leadline.profile(output, quiet=True, **options):
        yield facts
    profile = leadline.open(output)
    status = profile.meta["processes"][0]["available"].get("nvidia", {})
    facts["lost"] = {loss.kind.name: loss.count for loss in profile.losses if loss.count}
    facts["calls"] = status.get("details", {}).get("calls", 0)
    facts["gpu"] = status.get("ok")


@contextlib.contextmanager
def torch_profiler() -> Iterator[Facts]:
    import torch

    cuda = [torch.profiler.ProfilerActivity.CUDA] if torch.cuda.is_available() else []
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU, *cuda]):
        yield {}


@contextlib.contextmanager
def proton(folder: str) -> Iterator[Facts]:
    module = importlib.import_module("triton.profiler")
    session = module.start(str(Path(folder, "proton")))
    try:
        yield {}
    finally:
        module.finalize(session)


@contextlib.contextmanager
def leadline_without(output: str, *names: str) -> Iterator[Facts]:
    """Without these providers (parts of their modules' names), so that the time of each can be told."""
    from leadline.capture import providers

    known = providers.PROVIDERS
    providers.PROVIDERS = tuple(module for module in known if not any(name in module for name in names))
    try:
        with leadline_mode(output) as facts:
            yield facts
    finally:
        providers.PROVIDERS = known


@contextlib.contextmanager
def with_environment(name: str, value: str, mode: AbstractContextManager[Facts]) -> Iterator[Facts]:
    """A mode that begins with this variable set."""
    os.environ[name] = value
    try:
        with mode as facts:
            yield facts
    finally:
        del os.environ[name]


def parts(output: str, with_torch: bool) -> dict[str, Mode]:
    """Leadline whole and with parts left out, beside an empty client of what it asks CUPTI for."""
    found: dict[str, Mode] = {"unprofiled": unprofiled}
    wanted = "kernel records + runtime callbacks of launches"
    found[wanted] = functools.partial(EmptyClient().mode, CLIENTS[wanted])
    if with_torch and Path(f"{os.environ[CARRIED]}/lib/libfloor.so").exists():
        found["empty operator callbacks"] = EmptyOperators().mode
    found["Leadline"] = lambda: leadline_mode(output)
    found["Leadline, launches by both domains"] = lambda: with_environment(
        "LEADLINE_CUPTI_LAUNCHES", "both", leadline_mode(output)
    )
    found["Leadline, no GPU"] = lambda: leadline_without(output, "nvidia")
    found["Leadline, no operators"] = lambda: leadline_without(output, "torch.provider")
    found["Leadline, no memory, no modules"] = lambda: leadline_mode(output, memory=False, modules=False)
    return found


def has_option(name: str) -> bool:
    """Whether this Leadline has it."""
    import leadline

    return name in {field.name for field in dataclasses.fields(leadline.Options)}


def modes(group: str, folder: str, with_torch: bool) -> dict[str, Mode]:
    """Of `client`, `parts`, `torch` or `proton`; the first is always unprofiled. What the machine lacks is left out."""
    found: dict[str, Mode] = {"unprofiled": unprofiled}
    if group == "torch":
        return found | {"torch.profiler": torch_profiler}
    if group == "proton":
        return found | {"Proton": lambda: proton(folder)}
    if group == "parts":
        return parts(str(Path(folder, "cost.leadline")), with_torch)
    client = EmptyClient()
    for name, chosen in CLIENTS.items():
        found[name] = functools.partial(client.mode, chosen)
    if with_torch and Path(f"{os.environ[CARRIED]}/lib/libfloor.so").exists():
        found["empty operator callbacks"] = EmptyOperators().mode
    output = str(Path(folder, "cost.leadline"))
    found["Leadline"] = lambda: leadline_mode(output)
    if has_option("gpu_sample"):
        found["Leadline, one launch in 16"] = lambda: leadline_mode(output, gpu_sample=16)
    return found
