"""Kineto traces that are damaged in every way that was seen or can be thought of; the same number and seed give the
same file."""

from __future__ import annotations

import copy
import gzip
import json
import random
from collections.abc import Callable
from typing import Any

Event = dict[str, Any]

EXTREMES: tuple[Any, ...] = (
    None, True, "", "x", "stream 7", "12", 0, -1, 1, 0.5, 2**31, 2**32 - 1, 2**63 - 1, 2**63, -(2**63), 2**64 - 1, 1e30,
    -1e30, float("nan"), float("inf"), [], [[]], [1, [2]], {}, {"a": []}, "\ud800", "é" * 300,
)  # fmt: skip
KEYS = ("ph", "cat", "name", "pid", "tid", "ts", "dur", "args", "id", "s", "bp")
ARGUMENTS = (
    "correlation", "External id", "stream", "device", "Sequence number", "Fwd thread id", "Input Dims", "Input type",
    "Concrete Inputs", "bytes", "grid", "blocks per SM", "cuda_sync_kind", "wait_on_stream", "Collective name",
    "wait_on_cuda_event_record_corr_id", "Process Group Name", "Process Group Ranks", "Bytes", "Device Type",
)  # fmt: skip
HEADERS = (
    "schemaVersion", "deviceProperties", "distributedInfo", "baseTimeNanoseconds", "displayTimeUnit", "traceEvents",
    "traceName",
)  # fmt: skip
CATEGORIES = (
    "cpu_op", "Operator", "user_annotation", "cuda_runtime", "cuda_driver", "kernel", "gpu_memcpy", "gpu_memset",
    "cuda_sync", "python_function", "ac2g", "fwdbwd", "overhead", "",
)  # fmt: skip
CALLS = (
    "cudaLaunchKernel", "cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventRecord", "cudaStreamWaitEvent",
    "cudaEventSynchronize", "cudaGraphLaunch", "cudaMemcpyAsync", "cudaMemcpy", "hipFree",
)  # fmt: skip


def sample() -> Event:
    """A step and a half of training with everything the reader knows: modules, backward flows, an optimizer, a
    collective, copies, synchronisation records, a CUDA graph, memory and data loading."""
    events: list[Event] = []

    def add(cat: str, name: str, ts: float, dur: float, tid: int = 1, pid: int = 1, **args: Any) -> None:
        events.append({"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args})

    shapes = {"Input Dims": [[8, 64], [64, 64], [64]], "Input type": ["float", "float", "float"]}
    for step in range(2):
        base, first = 1000.0 * step + 100, 100 * step
        add("user_annotation", f"ProfilerStep#{step}", base, 990)
        add("user_annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", base + 5, 40)
        for layer in range(3):
            at, correlation = base + 60 + 60 * layer, first + layer + 1
            add("python_function", f"nn.Module: Linear_{layer}", at, 50)
            add("cpu_op", "aten::linear", at + 5, 40, **shapes, **{"Sequence number": correlation})
            add("cuda_runtime", "cudaLaunchKernel", at + 20, 5, correlation=correlation)
            add("kernel", "ampere_sgemm_64x64_tn", at + 30, 80, 7, 0, correlation=correlation, stream=7, device=0)
            back = base + 400 + 60 * (2 - layer)
            add("cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", back, 50, 2,
                **{"Sequence number": correlation, "Fwd thread id": 1})  # fmt: skip
            add("cuda_runtime", "cudaLaunchKernel", back + 10, 5, 2, correlation=correlation + 10)
            add("kernel", "vectorized_elementwise_kernel", back + 20, 90, 7, 0, correlation=correlation + 10, stream=7)
            flow = {"pid": 1, "id": correlation, "cat": "fwdbwd", "name": "fwdbwd"}
            events.append({"ph": "s", "tid": 1, "ts": at + 5, **flow})
            events.append({"ph": "f", "tid": 2, "ts": back, "bp": "e", **flow})
        add("cuda_runtime", "cudaEventRecord", base + 590, 3, correlation=first + 40)
        add("cuda_runtime", "cudaStreamWaitEvent", base + 600, 3, correlation=first + 41)
        add("cuda_sync", "Stream Wait Event", base + 600, 3, 1_000_020, 0, correlation=first + 41, stream=20,
            cuda_sync_kind="Stream Wait Event", wait_on_stream=7, wait_on_cuda_event_record_corr_id=first + 40)  # fmt: skip
        add("cuda_runtime", "cudaLaunchKernel", base + 610, 4, correlation=first + 50)
        add("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", base + 670, 60, 20, 0, correlation=first + 50, stream=20,
            **{"Collective name": "allreduce", "Process Group Name": "0", "Process Group Ranks": "[0, 1]"})  # fmt: skip
        add("user_annotation", "Optimizer.step#Adam.step", base + 700, 100)
        add("cuda_runtime", "cudaGraphLaunch", base + 710, 9, correlation=first + 60)
        for part in range(3):
            add("kernel", "multi_tensor_apply_kernel", base + 740 + 30 * part, 20, 7, 0, correlation=first + 60, stream=7,
                **{"blocks per SM": 1.5, "grid": [3, 1, 1]})  # fmt: skip
        add("cuda_runtime", "cudaMemcpyAsync", base + 830, 60, correlation=first + 70)
        add("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", base + 860, 20, 7, 0, correlation=first + 70, stream=7,
            bytes=4096)  # fmt: skip
        add("cuda_runtime", "cudaStreamSynchronize", base + 900, 20, correlation=first + 71)
        add("cpu_op", "fetch", base + 10, 30, 1, 77)  # a loader's worker process
        events.append({"ph": "i", "name": "[memory]", "pid": 1, "tid": 1, "ts": base + 70, "s": "t",
                       "args": {"Bytes": 1024, "Device Type": 1}})  # fmt: skip
    events.append({"ph": "M", "name": "thread_name", "pid": 1, "tid": 2, "ts": 0, "args": {"name": "pt_autograd_0"}})
    device = {"id": 0, "name": "NVIDIA A100-SXM4-80GB", "totalGlobalMem": 80_000_000_000, "computeMajor": 8,
              "computeMinor": 0, "numSms": 108}  # fmt: skip
    return {"schemaVersion": 1, "deviceProperties": [device], "distributedInfo": {"rank": 0, "world_size": 2},
            "baseTimeNanoseconds": 1_700_000_000_000_000_000, "traceEvents": events}  # fmt: skip


def _extreme(chance: random.Random) -> Any:
    return copy.deepcopy(chance.choice(EXTREMES))


def _value(chance: random.Random, trace: Event) -> None:
    event = chance.choice(trace["traceEvents"])
    if chance.random() < 0.5 and isinstance(event.get("args"), dict):
        event["args"][chance.choice(ARGUMENTS)] = _extreme(chance)
    else:
        event[chance.choice(KEYS)] = _extreme(chance)


def _missing(chance: random.Random, trace: Event) -> None:
    event = chance.choice(trace["traceEvents"])
    place = event["args"] if chance.random() < 0.4 and isinstance(event.get("args"), dict) else event
    if place:
        place.pop(chance.choice(list(place)))


def _times(chance: random.Random, trace: Event) -> None:
    event = chance.choice(trace["traceEvents"])
    key = chance.choice(("ts", "ts", "dur"))
    old = event.get(key, 0)
    old = old if isinstance(old, int | float) else 0
    event[key] = old + chance.choice((-1e12, -2000, -500, -60, -1, 0.001, 1, 60, 500, 2000, 1e7, 1e12))


def _kind(chance: random.Random, trace: Event) -> None:
    event = chance.choice(trace["traceEvents"])
    what = chance.randrange(3)
    if what == 0:
        event["cat"] = chance.choice(CATEGORIES)
    elif what == 1:
        event["name"] = chance.choice(CALLS)
    else:
        event["tid"] = chance.choice((1, 2, 3, 7, 20))


def _joined(chance: random.Random, trace: Event) -> None:
    """Correlation ids that belong to other events."""
    numbers = (0, 1, 2, 11, 40, 41, 50, 60, 70, 101, 150)
    for event in chance.sample(trace["traceEvents"], 3):
        if isinstance(event.get("args"), dict):
            event["args"]["correlation"] = chance.choice(numbers)


def _events(chance: random.Random, trace: Event) -> None:
    """Events gone, doubled, out of order, or no events at all."""
    events = trace["traceEvents"]
    what = chance.randrange(5)
    if what == 0:
        trace["traceEvents"] = [event for event in events if chance.random() < 0.5]
    elif what == 1:
        trace["traceEvents"] = [event for event in events if event.get("cat") != chance.choice(CATEGORIES)]
    elif what == 2:
        events += [dict(event) for event in chance.sample(events, len(events) // 3)]
    elif what == 3:
        chance.shuffle(events)
    else:
        events.insert(chance.randrange(len(events) + 1), _extreme(chance))


def _header(chance: random.Random, trace: Event) -> None:
    key = chance.choice(HEADERS)
    inner = trace.get(key)
    if isinstance(inner, dict) and chance.random() < 0.7:
        inner[chance.choice(("rank", "world_size", "backend"))] = _extreme(chance)
    elif isinstance(inner, list) and inner and isinstance(inner[0], dict) and key == "deviceProperties":
        inner[0][chance.choice(("id", "name", "totalGlobalMem", "computeMajor", "numSms"))] = _extreme(chance)
    elif key != "traceEvents" or chance.random() < 0.2:
        trace[key] = _extreme(chance)


EDITS: tuple[Callable[[random.Random, Event], None], ...] = (
    _value, _value, _value, _missing, _times, _times, _kind, _joined, _events, _header,
)  # fmt: skip


def text_of(trace: Event, chance: random.Random) -> bytes:
    return json.dumps(trace, indent=chance.choice((None, 2)), ensure_ascii=chance.random() < 0.8).encode(
        "utf-8", "surrogatepass"
    )


def bitten(data: bytes, chance: random.Random) -> bytes:
    """The text itself: bytes changed, pieces cut, doubled or put in, the end missing."""
    text = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 5))):
        if len(text) < 4:
            break
        at = chance.randrange(len(text))
        kind = chance.randrange(5)
        if kind == 0:
            text[at] = chance.randrange(256)
        elif kind == 1:
            del text[at : at + chance.randrange(1, 500)]
        elif kind == 2:
            text[at:at] = text[: chance.randrange(1, 500)]
        elif kind == 3:
            text[at:at] = chance.choice((b"NaN", b"{", b"}", b"[", b"]", b'"', b"\\", b"\0", b"9" * 400, b"[" * 3000))
        else:
            del text[at:]
    return bytes(text)


def damaged(number: int, seed: int) -> tuple[str, bytes]:
    """File `number` of a seed: its ending and its bytes."""
    chance = random.Random(f"{seed}/{number}")
    trace = sample()
    for _ in range(chance.choice((0, 1, 1, 2, 4, 9))):
        if not (isinstance(trace.get("traceEvents"), list) and len(trace["traceEvents"]) > 3):
            break
        if not all(isinstance(event, dict) for event in trace["traceEvents"]):
            break
        chance.choice(EDITS)(chance, trace)
    data = text_of(trace, chance)
    if chance.random() < 0.25:
        data = bitten(data, chance)
    if chance.random() < 0.2:
        packed = gzip.compress(data, 1)
        return ".json.gz", bitten(packed, chance) if chance.random() < 0.3 else packed
    return ".json", data
