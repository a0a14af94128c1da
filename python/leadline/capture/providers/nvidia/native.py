"""The native NVIDIA provider as Python sees it."""

from __future__ import annotations

from types import CodeType
from typing import Any, Protocol, TypedDict

from leadline.capture.providers.gpu.native import CounterDetails, InstructionDetails


class Answer(TypedDict):
    """What starting and stopping say."""

    measuring: bool
    """Kernels, copies and waits are measured."""
    timing_regions: bool
    """Without CUPTI: GPU time of regions only."""
    message: str
    """One sentence: what, why, what to do; empty when all is well."""
    holder: str
    """The tool that holds CUPTI, where CUPTI told."""
    awaiting: bool
    """Nothing yet, because the program has not started CUDA."""


class NvidiaInstructionDetails(InstructionDetails):
    """With what CUPTI cannot name by the launch."""

    by_window: int
    """Attributed to the kernels of that name that ran in the window, by their time."""
    buffer_full: int


class NvidiaCounterDetails(CounterDetails):
    """Read while kernels run."""

    overflows: int
    aligned: bool
    """The times of readings were laid into their window, since they are of another clock."""


class ReplayDetails(TypedDict):
    """Of kernels that were run again for their counters."""

    metrics: list[str]
    chips: str
    message: str
    """Why nothing, or less, is counted; empty when all is well."""
    windows: int
    spent_ns: int
    stretches: int
    """Of launches that were replayed one after the other."""
    launches: int
    """Whose counters are known."""
    passes: int
    """That each kernel was run."""


class Details(Answer, total=False):
    """For the file and the doctor. All from `cupti_path` on are missing where nothing has been measured."""

    yielded_to: str
    copies: list[str]
    cupti_path: str
    cupti_version: str
    driver_cuda: str
    subscription: str
    clock_uncertainty_ns: int
    calls_followed: int
    calls: int
    records: int
    unattributed: int
    dropped: int
    outstanding: int
    graph_nodes: int
    graph_nodes_unknown: int
    vendor_overhead_ns: int
    fold_ns: int
    held_bytes: int
    cupti_finalized: bool
    device_lost: bool
    instructions: NvidiaInstructionDetails
    counters: NvidiaCounterDetails
    replay: ReplayDetails


class NvtxDomain(TypedDict):
    """One domain of NVTX ranges."""

    ranges: int
    skipped: bool


class NvtxStatus(TypedDict):
    """What was seen of NVTX."""

    initialised: int
    """How many libraries found this tool."""
    marks: int
    ranges: int
    """Of no domain."""
    domains: dict[str, NvtxDomain]


class NvidiaNative(Protocol):
    """The part of `leadline._native` that is about NVIDIA GPUs."""

    def attach_nvidia(self, info: dict[str, Any]) -> Answer: ...
    def await_nvidia(self, info: dict[str, Any]) -> Answer: ...
    def detach_nvidia(self) -> Answer: ...
    def nvidia_yield(self, tool: str) -> None: ...
    def nvidia_take_back(self) -> Answer: ...
    def nvidia_status(self) -> Details: ...
    def nvtx_start(self, skipped_domains: list[str], left_alone: list[str]) -> None: ...
    def add_openers(self, codes: list[CodeType]) -> None: ...
    def nvtx_stop(self) -> None: ...
    def nvtx_status(self) -> NvtxStatus: ...
