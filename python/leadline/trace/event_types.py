"""What an event is. The one place that decides it, for every generation and vendor of traces and for our own windows.

The category that a trace gives an event is only a hint: torch 1.8 to 1.11 call every range an operator, the profiler's
step marks, data loading and the user's own ranges included, and ROCm books copies as kernels in places. So the name
decides first, then where an event lies: a range without a namespace and without autograd's number that holds operators
is a range of the program, whatever its category says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.steps.names import is_step, phase_of
from leadline.trace.tables import Kind

# ---------------------------------------------------------------------- calls of CUDA, HIP and their relatives

_STREAM_SYNC = re.compile(r"^(cuda|hip|cu)StreamSynchronize")
# freeing device memory waits for the device (CUDA runtime API, "Implicit Synchronization")
_DEVICE_SYNC = re.compile(
    r"^(cudaDeviceSynchronize|hipDeviceSynchronize|cuCtxSynchronize|cudaThreadSynchronize|cudaFree$|hipFree$)"
)
_EVENT_SYNC = re.compile(r"^(cuda|hip|cu)EventSynchronize")
_EVENT_RECORD = re.compile(r"^(cuda|hip|cu)EventRecord")
_STREAM_WAIT = re.compile(r"^(cuda|hip|cu)StreamWaitEvent")
_GRAPH_LAUNCH = re.compile(r"^(cuda|hip|cu)GraphLaunch")
_BLOCKING_COPY = re.compile(r"^(cuda|hip)(Memcpy|MemcpyWithStream|Memcpy2D|MemcpyToSymbol|MemcpyFromSymbol)$")
# may wait for the device: the driver takes memory, pins pages or loads code while nothing else goes on
_MAY_WAIT = re.compile(r"^(cuda|hip)(Malloc(Host|Managed)?|HostAlloc|HostMalloc|HostRegister|FreeHost|HostFree)$")


def call_kind(name: str) -> Kind:
    """Kind of an API call."""
    if _STREAM_SYNC.match(name) or _DEVICE_SYNC.match(name) or _EVENT_SYNC.match(name):
        return Kind.SYNCHRONIZE
    if _EVENT_RECORD.match(name):
        return Kind.EVENT_RECORD
    if _STREAM_WAIT.match(name):
        return Kind.STREAM_WAIT
    if _GRAPH_LAUNCH.match(name):
        return Kind.GRAPH_LAUNCH
    return Kind.API


def waits_for_device(name: str) -> bool:
    """A call that waits for everything on the device."""
    return _DEVICE_SYNC.match(name) is not None


def may_wait_for_device(name: str) -> bool:
    """A call that waits for the device in some cases: taking memory from the driver, pinning pages."""
    return _MAY_WAIT.match(name) is not None


def waits_for_event(name: str) -> bool:
    """A call that waits for a recorded event."""
    return _EVENT_SYNC.match(name) is not None


def is_blocking_copy(call: str, copy: str) -> bool:
    """A copy whose call returns only when the copy is done: synchronous calls, and pageable host memory."""
    return _BLOCKING_COPY.match(call) is not None or "pageable" in copy.lower()


# ---------------------------------------------------------------------- device work

_COLLECTIVE = re.compile(r"^(nccl|rccl|void nccl|msccl|oneccl|hccl)", re.IGNORECASE)
_COPY = re.compile(r"^(Memcpy |Copy(Host|Device)To(Host|Device)|hipMemcpy)", re.IGNORECASE)
_SET = re.compile(r"^(Memset |FillBuffer$|hipMemset)", re.IGNORECASE)


def is_collective(kernel: str) -> bool:
    """A kernel of a communication library."""
    return _COLLECTIVE.match(kernel) is not None


def device_kind(name: str, kind: Kind) -> Kind:
    """Kind of device work that a trace calls a kernel: copies of older ROCm traces are among these."""
    if kind == Kind.KERNEL and _COPY.match(name):
        return Kind.COPY
    return Kind.SET if kind == Kind.KERNEL and _SET.match(name) else kind


# ---------------------------------------------------------------------- ranges of the program

STEP_MARKS = ("ProfilerStep", "Optimizer.step#")
MODULE = "nn.Module: "
_LIGHTNING_MODULE = re.compile(r"^\[pl\]\[module\]\S+: (.+)$")
_COMMUNICATION = re.compile(r"^(nccl|gloo|mpi|ucc|rccl|hccl|xccl):\w+")
_BACKWARD_OPERATOR = re.compile(r"^autograd::engine::evaluate_function|Backward\d*$|^torch::autograd::")


def is_backward_operator(name: str) -> bool:
    """An operator of autograd's backward pass."""
    return _BACKWARD_OPERATOR.search(name) is not None


def module_of(name: str) -> str | None:
    """The module that a range is the call of; None for any other range."""
    if name.startswith(MODULE):
        return name[len(MODULE) :]
    found = _LIGHTNING_MODULE.match(name)
    return found[1] if found else None


def _named_kind(name: str) -> Kind | None:
    """What the name of a range says by itself."""
    if is_step(name):
        return Kind.STEP
    if module_of(name) is not None:
        return Kind.MODULE
    return Kind.REGION if phase_of(name) is not None or _COMMUNICATION.match(name) else None


def settle(
    events: Mapping[str, NDArray[Any]], strings: list[str], *, categories_tell: bool = True
) -> NDArray[np.integer[Any]]:
    """Corrected kinds of all events, which are in order of their start, outer ranges first.

    strings: names of modules without the profiler's prefix are added. The events' `name` column is changed for these.
    categories_tell: False where a trace calls every range an operator.
    """
    kind = events["kind"].copy()
    told = [_named_kind(name) for name in strings]
    named = np.array([-1 if found is None else int(found) for found in told], dtype=np.int64)[events["name"]]
    ranges = (kind == Kind.OPERATOR) | (kind == Kind.REGION)
    kind[ranges & (named >= 0)] = named[ranges & (named >= 0)]
    modules = np.flatnonzero(ranges & (named == Kind.MODULE))
    if modules.size:
        rows = {text: row for row, text in enumerate(strings)}
        for row in modules.tolist():
            text = module_of(strings[events["name"][row]]) or ""
            place = rows.setdefault(text, len(strings))
            if place == len(strings):
                strings.append(text)
            events["name"][row] = place
    device = kind == Kind.KERNEL
    if device.any():
        for place in np.unique(events["name"][device]).tolist():
            found = device_kind(strings[place], Kind.KERNEL)
            if found != Kind.KERNEL:
                kind[device & (events["name"] == place)] = found
    if not categories_tell:
        _find_ranges(events, strings, kind)
    return kind


def _find_ranges(events: Mapping[str, NDArray[Any]], strings: Sequence[str], kind: NDArray[Any]) -> None:
    """Among operators, the ranges of the program itself: no namespace, no number of autograd's, operators inside."""
    plain = np.array(["::" not in name and not is_backward_operator(name) for name in strings], dtype=np.bool_)
    candidates = (kind == Kind.OPERATOR) & plain[events["name"]] & (events["sequence"] < 0)
    for thread in np.unique(events["thread"][candidates]).tolist():
        rows = np.flatnonzero((events["thread"] == thread) & (kind == Kind.OPERATOR))
        start, end = events["start_ns"][rows], events["start_ns"][rows] + events["duration_ns"][rows]
        following = np.append(start[1:], np.iinfo(np.int64).max)
        # what an operator holds is the framework's, so its insides are no ranges; operators end in order of nesting
        covered = np.where(candidates[rows], np.iinfo(np.int64).min, end)
        inside = start < np.concatenate(([np.iinfo(np.int64).min], np.maximum.accumulate(covered)[:-1]))
        found = candidates[rows] & (following < end) & ~inside
        kind[rows[found]] = int(Kind.REGION)
