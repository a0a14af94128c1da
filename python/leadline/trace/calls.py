"""What the names of CUDA and HIP calls and kernels mean."""

from __future__ import annotations

import re

from leadline.trace.tables import Kind

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
_COLLECTIVE = re.compile(r"^(nccl|rccl|void nccl|msccl|oneccl|hccl)", re.IGNORECASE)


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


def waits_for_event(name: str) -> bool:
    """A call that waits for a recorded event."""
    return _EVENT_SYNC.match(name) is not None


def is_blocking_copy(call: str, copy: str) -> bool:
    """A copy whose call returns only when the copy is done: synchronous calls, and pageable host memory."""
    return _BLOCKING_COPY.match(call) is not None or "pageable" in copy.lower()


def is_collective(kernel: str) -> bool:
    """A kernel of a communication library."""
    return _COLLECTIVE.match(kernel) is not None
