"""Writes what the machine did as a Kineto trace, one per rank, with or without CUPTI's synchronisation records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from machine import Op, Program, Times

CALLS = {
    "launch": "cudaLaunchKernel",
    "collective": "cudaLaunchKernel",
    "record": "cudaEventRecord",
    "wait": "cudaStreamWaitEvent",
    "sync": "cudaStreamSynchronize",
    "sync_device": "cudaDeviceSynchronize",
    "sync_event": "cudaEventSynchronize",
}
BASE_US = 1000.0
OLD = {"cpu_op": "Operator", "user_annotation": "Operator", "cuda_runtime": "Runtime", "kernel": "Kernel"}


def to_kineto(
    program: Program,
    times: Times,
    rank: int,
    *,
    sync_records: bool = True,
    steps: Sequence[tuple[int, int]] = (),
    old: bool = False,
) -> dict[str, Any]:
    """The trace of one rank. `steps`: begin and end of every step, by default one from the start to the end of its
    threads (the device may go on); `old`: the categories of torch 1.8 to 1.11."""
    events: list[dict[str, Any]] = []
    world = len({owner for owner, _ in program.threads})
    end = max(times.cpu[op.id][1] for (owner, _), ops in program.threads.items() if owner == rank for op in ops)
    for number, (begin, finish) in enumerate(steps or [(0, end)], start=7):
        step = {"name": f"ProfilerStep#{number}", "cat": "user_annotation", "tid": 100, "args": {}}
        events.append({**_span(begin, finish), "pid": 1, **step})
    for (owner, thread), ops in program.threads.items():
        if owner != rank:
            continue
        records: dict[int, Op] = {}
        for op in ops:
            begin, finish = times.cpu[op.id]
            place = {"pid": 1, "tid": 100 + thread, **_span(begin, finish)}
            if op.kind == "work":
                events.append({**place, "cat": "cpu_op", "name": "aten::work", "args": {"External id": op.id + 1}})
            if op.kind not in CALLS:
                continue
            arguments = {"correlation": op.id + 1, "cbid": 1}
            events.append({**place, "cat": "cuda_runtime", "name": CALLS[op.kind], "args": arguments})
            if op.kind == "record":
                records[op.event] = op
            if op.kind in ("launch", "collective"):
                events.append(_kernel(op, times, world))
            elif sync_records and op.kind in ("wait", "sync", "sync_device", "sync_event"):
                events.append(_sync(op, records, place))
    if old:
        for event in events:
            event["cat"] = OLD.get(event["cat"], event["cat"])
    return {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "Test GPU", "computeMajor": 9, "computeMinor": 0}],
        "distributedInfo": {"rank": rank, "world_size": world},
        "traceEvents": events,
    }


def _span(begin_ns: int, end_ns: int) -> dict[str, Any]:
    return {"ph": "X", "ts": BASE_US + begin_ns / 1000, "dur": (end_ns - begin_ns) / 1000}


def _kernel(op: Op, times: Times, world: int) -> dict[str, Any]:
    arguments: dict[str, Any] = {"device": 0, "stream": op.stream, "correlation": op.id + 1, "External id": op.id + 1}
    name = f"kernel_{op.id}"
    if op.kind == "collective":
        name = f"ncclDevKernel_AllReduce_{op.group}"
        arguments["Process Group Name"] = "0"
        arguments["Process Group Ranks"] = str(list(range(world)))
    return {"cat": "kernel", "name": name, "pid": 0, "tid": op.stream, **_span(*times.device[op.id]), "args": arguments}


def _sync(op: Op, records: dict[int, Op], place: dict[str, Any]) -> dict[str, Any]:
    arguments: dict[str, Any] = {"correlation": op.id + 1, "device": 0, "stream": -1}
    kind = {"wait": "Stream Wait Event", "sync": "Stream Sync", "sync_device": "Context Sync"}.get(
        op.kind, "Event Sync"
    )
    arguments["cuda_sync_kind"] = kind
    if op.kind in ("wait", "sync"):
        arguments["stream"] = op.stream
    if op.kind in ("wait", "sync_event"):
        record = records[op.event]
        arguments["wait_on_stream"] = record.stream
        arguments["wait_on_cuda_event_record_corr_id"] = record.id + 1
    return {
        **place,
        "cat": "cuda_sync",
        "name": kind,
        "pid": 0,
        "tid": arguments["stream"] + 1_000_000,
        "args": arguments,
    }
