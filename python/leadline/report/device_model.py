"""Accelerators as a report shows them. Times are nanoseconds (`_ns`), sizes bytes (`_bytes`)."""

from __future__ import annotations

from leadline._dataclass import dataclass
from leadline.analysis.device_copies import LinkRow
from leadline.analysis.hardware import Hardware
from leadline.analysis.rows import KernelRow
from leadline.analysis.scratch import ScratchRow


@dataclass(frozen=True)
class Busy:
    """Unions of what ran on a device, so overlapping work counts once; from the provider's device record.

    `copies_hidden_ns` and `communication_hidden_ns`: the parts that ran while kernels computed.
    """

    busy_ns: int
    idle_ns: int
    compute_ns: int
    copies_ns: int
    communication_ns: int
    copies_hidden_ns: int
    communication_hidden_ns: int


@dataclass(frozen=True)
class Device:
    """One accelerator of one process. Times are sums over its streams, so they can exceed the wall time; `busy` cannot.

    `idle_ns`: time without work that was charged to what the CPU was doing. `busy` is None where the file does not say.
    """

    process: str
    name: str
    work_ns: int
    kernels_ns: int
    copies_ns: int
    idle_ns: int
    launches: int
    copy_bytes: int
    busy: Busy | None


@dataclass(frozen=True)
class Gpu:
    """`work_ns`: device time of all devices, `kernels`: what it went to. `sync_ns`: time threads waited for any
    device.
    """

    devices: tuple[Device, ...]
    kernels: tuple[KernelRow, ...]
    kernels_hidden: int
    work_ns: int
    sync_ns: int
    counters: tuple[Hardware, ...] = ()
    """What hardware counters said of kernels; empty where none were read."""
    scratch: tuple[ScratchRow, ...] = ()
    """Scratch memory that the driver took for kernels; empty where none was seen."""
    links: tuple[LinkRow, ...] = ()
    """Copies between devices; empty where none said between which."""
