"""One training program, written as a trace in every dialect of Kineto.

The program is drawn by hand: a loop that loads a batch itself, copies it to the device, runs three layers forward on
the loop's thread and backward on another, updates the weights and waits for the device. What a dialect does to it is
what the recorders of that time and vendor do; the program and its times stay the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

LAYERS = 3
SCALE = 10  # below, a step is drawn a tenth as long as it is
STEP_US = 3000 * SCALE
LOAD_US = 1000 * SCALE
WORK_US = 2000
STEPS = 4
MAIN, ENGINE = 24572, 24610


@dataclass(frozen=True)
class Dialect:
    """How a trace is written. `device`: whether kernels run on a device at all."""

    name: str
    categories: str = "today"  # or 2021
    vendor: str = "cuda"  # or hip
    device: bool = True
    sync_records: bool = False
    flows: bool = True
    shapes: bool = True
    sequence: bool = True
    step_marks: bool = True
    text_threads: bool = False
    text_process: bool = False
    base_us: float = 1000.0
    base_time_ns: int | None = None
    modules: bool = True


DIALECTS = (
    Dialect("2025", sync_records=True, base_time_ns=1_700_000_000_000_000_000),
    Dialect("2023"),
    Dialect("2021", categories="2021", flows=False, text_threads=True, base_us=1621401187000000.0, modules=False),
    Dialect("2021 with text processes", categories="2021", flows=False, text_threads=True, text_process=True, modules=False),
    Dialect("ROCm", vendor="hip"),
    Dialect("no flows", flows=False),
    Dialect("neither numbers nor flows", sequence=False, flows=False),
    Dialect("no sequence numbers", sequence=False),
    Dialect("no shapes", shapes=False),
    Dialect("late base time", base_us=9.1e12),
)  # fmt: skip
CPU_DIALECTS = (
    Dialect("CPU 2025", device=False, base_time_ns=1_700_000_000_000_000_000),
    Dialect("CPU 2021", device=False, categories="2021", flows=False, text_threads=True, modules=False),
)


@dataclass(frozen=True)
class Event:
    """`what`: operator, range, module, call, kernel, copy. Times in microseconds from the program's start."""

    what: str
    name: str
    begin: float
    length: float
    thread: int = MAIN
    link: int = 0
    sequence: int = -1
    forward_thread: int = -1
    shapes: tuple[tuple[int, ...], ...] = ()


def program(*, device: bool = True, steps: int = STEPS, load_us: float = LOAD_US) -> list[Event]:
    """The events of the whole run; a step takes 20,000 us and what loading takes."""
    found: list[Event] = []
    link = 100
    load_us /= SCALE
    length = WORK_US + load_us
    for step in range(steps):
        at = step * length
        found.append(Event("range", f"ProfilerStep#{step + 3}", at, length - 2))
        found += _loading(at, load_us)
        work = list(_work(at + load_us, link, device))
        found += work
        link += 100
    return [replace(event, begin=event.begin * SCALE, length=event.length * SCALE) for event in found]


def _loading(at: float, length: float) -> Iterator[Event]:
    yield Event("range", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at + 5, length - 10)
    for sample in range(4):
        yield Event("operator", "aten::rand", at + 20 + sample * length / 5, length / 10)
    yield Event("operator", "aten::stack", at + length - 60, 40, shapes=((4, 64), (4, 64)))


def _work(at: float, link: int, device: bool) -> Iterator[Event]:
    """About 2,000 us: copy 60, forward 3 x 150, backward 3 x 250, update 300, wait."""
    free = at
    if device:
        yield Event("operator", "aten::copy_", at + 10, 40, shapes=((4, 64), (4, 64)))
        yield Event("call", "cudaMemcpyAsync", at + 20, 20, link=link)
        yield Event("copy", "Memcpy HtoD (Pinned -> Device)", at + 30, 15, link=link)
        free = at + 45
    cursor = at + 60
    yield Event("range", "my forward", at + 55, LAYERS * 150 + 4)
    for layer in range(LAYERS):
        yield Event("module", f"Linear_{layer}", cursor + 2, 140)
        shapes = ((64,), (4, 64), (64, 64))
        yield Event("operator", "aten::addmm", cursor + 10, 100, sequence=link + layer, shapes=shapes)
        if device:
            yield Event("call", "cudaLaunchKernel", cursor + 60, 10, link=link + 1 + layer)
            free = max(cursor + 66, free)
            yield Event("kernel", "volta_sgemm_64x64_nn", free, 180, link=link + 1 + layer)
            free += 180
        cursor += 150
    cursor += 20
    for layer in reversed(range(LAYERS)):
        number = link + layer
        name = "autograd::engine::evaluate_function: AddmmBackward0"
        yield Event("operator", name, cursor, 220, ENGINE, sequence=number, forward_thread=1)
        yield Event("operator", "AddmmBackward0", cursor + 5, 150, ENGINE, sequence=number, forward_thread=1)
        yield Event("operator", "aten::mm", cursor + 20, 80, ENGINE, shapes=((64, 4), (4, 64)))
        yield Event("operator", "torch::autograd::AccumulateGrad", cursor + 170, 30, ENGINE, shapes=((64, 64),))
        if device:
            yield Event("call", "cudaLaunchKernel", cursor + 50, 10, ENGINE, link=link + 20 + layer)
            free = max(cursor + 56, free)
            yield Event("kernel", "volta_sgemm_64x64_nt", free, 200, link=link + 20 + layer)
            free += 200
        cursor += 250
    cursor += 30
    yield Event("range", "Optimizer.step#SGD.step", cursor, 300)
    for part in range(2):
        begin = cursor + 20 + part * 130
        yield Event("operator", "aten::_foreach_add_", begin, 100, shapes=((64, 64),))
        if device:
            yield Event("call", "cudaLaunchKernel", begin + 40, 10, link=link + 40 + part)
            free = max(begin + 46, free)
            yield Event("kernel", "multi_tensor_apply_kernel", free, 50, link=link + 40 + part)
            free += 50
    cursor += 310
    if device:
        wait = max(free + 4 - cursor, 4)
        yield Event("call", "cudaDeviceSynchronize", cursor, wait, link=link + 60)
        cursor += wait
    yield Event("operator", "aten::mean", cursor + 20, at + WORK_US - 30 - cursor)


_TODAY = {
    "operator": "cpu_op",
    "range": "user_annotation",
    "call": "cuda_runtime",
    "kernel": "kernel",
    "copy": "gpu_memcpy",
}
_OLD = {"operator": "Operator", "range": "Operator", "call": "Runtime", "kernel": "Kernel", "copy": "Memcpy"}


def write(events: list[Event], dialect: Dialect) -> dict[str, Any]:
    """The trace as a JSON value."""
    written: list[dict[str, Any]] = []
    for number, event in enumerate(events):
        if event.what == "module" and not dialect.modules:
            continue
        if not dialect.step_marks and event.name.startswith(("ProfilerStep", "Optimizer.")):
            continue
        written.append(_event(number, event, dialect))
        if dialect.sync_records and event.name == "cudaDeviceSynchronize":
            written.append(_sync(event, dialect))
        if dialect.flows and event.forward_thread >= 0 and event.name == "AddmmBackward0":
            written += _flow(events, event, dialect)
    properties: dict[str, Any] = {"id": 0, "name": "Tesla V100-SXM2-32GB", "totalGlobalMem": 34 * 10**9}
    if dialect.categories == "2021":
        header = {"computeProperties": [{**properties, "major": 7, "minor": 0, "multiProcessorCount": 80}]}
    else:
        header = {"deviceProperties": [{**properties, "computeMajor": 7, "computeMinor": 0, "numSms": 80}]}
    if dialect.base_time_ns is not None:
        header["baseTimeNanoseconds"] = dialect.base_time_ns  # type: ignore[assignment]
    return {"schemaVersion": 1, **(header if dialect.device else {}), "traceEvents": written}


def _event(number: int, event: Event, dialect: Dialect) -> dict[str, Any]:
    old = dialect.categories == "2021"
    category = "python_function" if event.what == "module" else (_OLD if old else _TODAY)[event.what]
    args: dict[str, Any] = {"External id" if event.what in ("operator", "range") else "external id": number + 1}
    if dialect.sequence and event.sequence >= 0:
        args |= {"Sequence number": event.sequence, "Fwd thread id": max(event.forward_thread, 0)}
    if dialect.shapes and event.shapes:
        args["Input dims" if old else "Input Dims"] = [list(shape) for shape in event.shapes]
        args["Input type"] = ["float"] * len(event.shapes)
    if event.link:
        args["correlation"] = event.link
    name = event.name.replace("cuda", "hip", 1) if event.what == "call" and dialect.vendor == "hip" else event.name
    pid: Any = str(MAIN) if dialect.text_process else MAIN
    tid: Any = str(event.thread) if dialect.text_threads else event.thread
    if event.what in ("kernel", "copy"):
        args |= {"device": 0, "stream": 7}
        pid, tid = 0, "stream 7" if old else 7
    return {
        "ph": "X", "cat": category, "name": f"nn.Module: {name}" if event.what == "module" else name, "pid": pid,
        "tid": tid, "ts": dialect.base_us + event.begin, "dur": event.length, "args": args,
    }  # fmt: skip


def _sync(event: Event, dialect: Dialect) -> dict[str, Any]:
    return {
        "ph": "X", "cat": "cuda_sync", "name": "Context Sync", "pid": 0, "tid": 1_000_000,
        "ts": dialect.base_us + event.begin, "dur": event.length,
        "args": {"cuda_sync_kind": "Context Sync", "stream": -1, "correlation": event.link, "device": 0},
    }  # fmt: skip


def _flow(events: list[Event], backward: Event, dialect: Dialect) -> list[dict[str, Any]]:
    forward = next(e for e in events if e.name == "aten::addmm" and e.sequence == backward.sequence)
    common = {"cat": "fwdbwd", "name": "fwdbwd", "id": backward.sequence, "pid": MAIN}
    return [
        {**common, "ph": "s", "tid": forward.thread, "ts": dialect.base_us + forward.begin},
        {**common, "ph": "f", "bp": "e", "tid": backward.thread, "ts": dialect.base_us + backward.begin},
    ]
