"""The native AMD provider as Python sees it."""

from __future__ import annotations

from typing import Any, Protocol, TypedDict

from leadline.capture.providers.gpu.native import CounterDetails, InstructionDetails


class Answer(TypedDict):
    """What starting and stopping say."""

    measuring: bool
    """Kernels, copies and waits are measured."""
    awaiting: bool
    """Nothing yet, because the program has not started HIP."""
    message: str
    """One sentence: what, why, what to do; empty when all is well."""


class AmdCounterDetails(CounterDetails):
    """Dispatch by dispatch."""

    dropped: int


class Details(Answer, total=False):
    """For the file and the doctor. All from `source` on are missing where nothing has been measured."""

    copies: list[str]
    source: str
    """`rocprofiler-sdk`, or `roctracer` where there is none; the next two are that library's."""
    sdk_path: str
    sdk_version: str
    late: bool
    clock_uncertainty_ns: int
    calls_followed: int
    calls: int
    launches: int
    requests: int
    records: int
    unattributed: int
    dropped: int
    outstanding: int
    kernels: int
    graph_nodes: int
    graph_nodes_unknown: int
    fold_ns: int
    held_bytes: int
    instructions: InstructionDetails
    """Its mode: `stochastic`, with reasons, or `host-trap`, without."""
    counters: AmdCounterDetails


class AmdNative(Protocol):
    """The part of `leadline._native` that is about AMD GPUs."""

    def attach_amd(self, info: dict[str, Any]) -> Answer: ...
    def detach_amd(self) -> Answer: ...
    def amd_status(self) -> Details: ...
    def amd_yield(self, tool: str) -> None: ...
    def amd_take_back(self) -> Answer: ...
