"""Tensor memory and accelerators: what was held at each peak, what each device did. None where nothing was measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from leadline.analysis import Analysis, breakdown, peaks, scratch
from leadline.analysis.allocators import Allocator, allocators
from leadline.analysis.columns import Mask
from leadline.analysis.device_copies import between_devices
from leadline.analysis.hardware import by_kernel
from leadline.analysis.hotpaths import Entry
from leadline.profiles import Profile, Tree
from leadline.profiles.records import Device as DeviceRecord
from leadline.report.model import AllocatorPools, Busy, Device, Gpu, Memory, Peak, Pool
from leadline.report.paths import PathWords
from leadline.report.timesplit import process_labels
from leadline.schema import FrameKind, MetricKind

MOST_LINKS = 64
MOST_HELD = 32
"""Largest peaks whose holders are listed; of hundreds of ranks the others are shown by their size alone."""


def devices_of(tree: Tree, metric: MetricKind) -> list[int]:
    """Rows of devices (-1: the CPU) for which `metric` was measured, in order."""
    metrics = tree.tables["metrics"]
    here = (metrics["metric"] == int(metric)) & (metrics["count"] > 0)
    return sorted(int(device) for device in np.unique(metrics["device"][here]))


def memory(analysis: Analysis, words: PathWords, kept: Mask, top: int) -> Memory | None:
    """Allocations in all and the holders at the peak of every process and device, the largest peak first."""
    tree, profile = analysis.tree, analysis.profile
    allocated, freed = tree.exclusive("alloc_bytes"), tree.exclusive("free_bytes")
    if not analysis.peaks and not allocated.count.any():
        return None
    made = []
    labels, devices = process_labels(profile), {device.row: device for device in profile.devices}
    for number, peak in enumerate(analysis.peaks):
        if not kept[peak.nodes].any():
            continue
        holders: Sequence[Entry] = ()
        if number < MOST_HELD:
            holding = peaks.only(len(tree), peak, kept)
            holders = analysis.hot_paths.ranked("peak_live_bytes", top, holding, device=peak.device).entries
        name = _memory_name(profile, peak, labels, devices)
        made.append(Peak(name, peak.held, tuple(words.path(entry) for entry in holders)))
    return Memory(
        allocated_bytes=int(allocated.sum[kept].sum()),
        freed_bytes=int(freed.sum[kept].sum()),
        allocations=int(allocated.count[kept].sum()),
        frees=int(freed.count[kept].sum()),
        peaks=tuple(made),
        allocators=tuple(_pools(one, labels, devices) for one in allocators(profile)),
    )


def _pools(held: Allocator, labels: Mapping[int, str], devices: Mapping[int, DeviceRecord]) -> AllocatorPools:
    known = devices.get(held.device)
    device = device_name(known, labels) if known is not None else labels.get(held.process, "") or "the device"
    pools = [Pool(one.name, one.reserved, one.in_use, one.free, one.largest_free, one.segments) for one in held.pools]
    return AllocatorPools(device, held.name, tuple(pools))


def _memory_name(
    profile: Profile, peak: peaks.Peak, labels: Mapping[int, str], devices: Mapping[int, DeviceRecord]
) -> str:
    """`NVIDIA H200 (device 0), rank 1`; `CPU` or, of several processes, `CPU, rank 1`."""
    if peak.device in devices:
        return device_name(devices[peak.device], labels)
    owner = [process.row for process in profile.processes if process.node.row == peak.process]
    label = labels.get(owner[0], "") if owner else ""
    place = "CPU" if peak.device < 0 else f"device {peak.device}"
    return f"{place}, {label}" if label else place


def device_name(device: DeviceRecord, labels: Mapping[int, str]) -> str:
    """Which of several alike: `NVIDIA H200 (device 0), rank 1`."""
    name, number = device.name or str(device.detail.get("type", "device")), f"device {device.index}"
    name = name if name.endswith(number) else f"{name} ({number})"
    label = labels.get(device.process, "")
    return f"{name}, {label}" if label else name


def gpu(profile: Profile, kept: Mask, top: int) -> Gpu | None:
    """Kernels, copies, idle and synchronisation; None where no device was measured."""
    tree = profile.tree
    rows = [
        row
        for metric in (MetricKind.GPU_TIME, MetricKind.GPU_IDLE_TIME)
        for row in devices_of(tree, metric)
        if row >= 0
    ]
    sync_ns = int(tree.exclusive("sync_time").sum[kept].sum())
    if not rows and not sync_ns:
        return None
    kernels = breakdown.kernels(tree, kept)
    return Gpu(
        devices=tuple(_devices(profile, sorted(set(rows)), kept)),
        kernels=tuple(kernels[:top]),
        kernels_hidden=max(0, len(kernels) - top),
        work_ns=int(tree.exclusive("gpu_time").sum[kept].sum()),
        sync_ns=sync_ns,
        counters=tuple(by_kernel(tree, kept)[:top]),
        scratch=tuple(scratch.by_kernel(tree, kept)[:top]),
        links=tuple(between_devices(profile, kept)[:MOST_LINKS]),
    )


def _devices(profile: Profile, rows: Sequence[int], kept: Mask) -> Iterator[Device]:
    tree = profile.tree
    copies = tree.kinds == int(FrameKind.COPY)
    kernels, copied = (_by_device(tree, MetricKind.GPU_TIME, kept & which) for which in (~copies, copies))
    idle, moved = (_by_device(tree, kind, kept) for kind in (MetricKind.GPU_IDLE_TIME, MetricKind.COPY_BYTES))
    known, labels = {device.row: device for device in profile.devices}, process_labels(profile)
    for row in rows:
        record = known.get(row)
        (kernels_ns, launches), (copies_ns, _) = kernels.get(row, (0, 0)), copied.get(row, (0, 0))
        yield Device(
            process=labels.get(record.process, "") if record else "",
            name=device_name(record, labels) if record else f"device {row}",
            work_ns=kernels_ns + copies_ns,
            kernels_ns=kernels_ns,
            copies_ns=copies_ns,
            idle_ns=idle.get(row, (0, 0))[0],
            launches=launches,
            copy_bytes=moved.get(row, (0, 0))[0],
            busy=_busy(record.detail) if record else None,
        )


def _by_device(tree: Tree, metric: MetricKind, kept: Mask) -> dict[int, tuple[int, int]]:
    """Sum and count of the kept nodes by row of devices: of ranks there are many, and each has few of the nodes."""
    metrics = tree.tables["metrics"]
    rows = np.flatnonzero((metrics["metric"] == int(metric)) & (metrics["count"] > 0))
    rows = rows[kept[metrics["node"][rows]]]
    devices, which = np.unique(metrics["device"][rows], return_inverse=True)
    sums, counts = np.zeros(len(devices), np.int64), np.zeros(len(devices), np.int64)
    np.add.at(sums, which, metrics["sum"][rows])
    np.add.at(counts, which, metrics["count"][rows].astype(np.int64))
    return {int(row): (int(ns), int(n)) for row, ns, n in zip(devices, sums, counts, strict=True)}


def _busy(detail: Mapping[str, Any]) -> Busy | None:
    """The unions in a device's `detail`, which the NVIDIA provider writes; None unless all of them are there."""
    names = ("busy_ns", "idle_ns", "compute_ns", "copy_ns", "communication_ns")
    values = [detail.get(name) for name in (*names, "copy_under_compute_ns", "communication_under_compute_ns")]
    whole = [value for value in values if isinstance(value, int) and not isinstance(value, bool) and value >= 0]
    return Busy(*whole) if len(whole) == len(values) else None
