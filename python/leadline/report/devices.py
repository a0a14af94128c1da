"""Tensor memory and accelerators: what was held at each peak, what each device did. None where nothing was measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.profiles import Profile, Tree
from leadline.profiles.records import Device as DeviceRecord
from leadline.report.breakdown import distributions
from leadline.report.hotpaths import HotPaths
from leadline.report.model import Busy, Device, Gpu, KernelRow, Memory, Peak
from leadline.report.timesplit import process_labels
from leadline.schema import FrameKind, MetricKind

Mask = NDArray[np.bool_]


def devices_of(tree: Tree, metric: MetricKind) -> list[int]:
    """Rows of devices (-1: the CPU) for which `metric` was measured, in order."""
    metrics = tree.tables["metrics"]
    here = (metrics["metric"] == int(metric)) & (metrics["count"] > 0)
    return sorted(int(device) for device in np.unique(metrics["device"][here]))


def memory(profile: Profile, hot: HotPaths, kept: Mask, top: int) -> Memory | None:
    """Allocations in all and the holders at each device's peak."""
    tree = profile.tree
    allocated, freed = tree.exclusive("alloc_bytes"), tree.exclusive("free_bytes")
    peaks = []
    for device in devices_of(tree, MetricKind.PEAK_LIVE_BYTES):
        bytes_held = int(tree.exclusive("peak_live_bytes", device).sum[kept].sum())
        if bytes_held > 0:
            holders = hot.ranked("peak_live_bytes", top, device=device).entries
            peaks.append(Peak(_memory_name(profile, device), bytes_held, holders))
    if not peaks and not allocated.count.any():
        return None
    return Memory(
        allocated_bytes=int(allocated.sum[kept].sum()),
        freed_bytes=int(freed.sum[kept].sum()),
        allocations=int(allocated.count[kept].sum()),
        frees=int(freed.count[kept].sum()),
        peaks=tuple(sorted(peaks, key=lambda peak: -peak.peak_bytes)),
    )


def _memory_name(profile: Profile, device: int) -> str:
    found = [one for one in profile.devices if one.row == device]
    return _device_name(profile, found[0]) if found else "CPU"


def _device_name(profile: Profile, device: DeviceRecord) -> str:
    name = f"{device.name or 'device'} (device {device.index})"
    label = process_labels(profile).get(device.process, "")
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
    known = {device.row: device for device in profile.devices}
    kernels = _kernels(tree, kept)
    return Gpu(
        devices=tuple(_device(profile, row, known.get(row), kept) for row in sorted(set(rows))),
        kernels=tuple(kernels[:top]),
        kernels_hidden=max(0, len(kernels) - top),
        work_ns=int(tree.exclusive("gpu_time").sum[kept].sum()),
        sync_ns=sync_ns,
    )


def _kernels(tree: Tree, kept: Mask) -> list[KernelRow]:
    """By name and kind, the most expensive first."""
    time = tree.exclusive("gpu_time")
    nodes = np.flatnonzero((time.count > 0) & kept)
    if not len(nodes):
        return []
    names = tree.frames["name"][tree.frame_of[nodes]].astype(np.int64)
    distinct, group = np.unique(names * 256 + tree.kinds[nodes], return_inverse=True)
    counts, own = np.zeros(len(distinct), np.int64), np.zeros(len(distinct), np.int64)
    np.add.at(counts, group, time.count[nodes])
    np.add.at(own, group, time.sum[nodes])
    rows = []
    for i, one in enumerate(distributions(time, nodes, group, own)):
        name, kind = divmod(int(distinct[i]), 256)
        rows.append(KernelRow(tree.tables.strings[name], str(FrameKind(kind)), int(counts[i]), one))
    return sorted(rows, key=lambda kernel: (-kernel.gpu_time.sum, kernel.name))


def _device(profile: Profile, row: int, record: DeviceRecord | None, kept: Mask) -> Device:
    tree = profile.tree
    time = tree.exclusive("gpu_time", row)
    copies = tree.kinds == int(FrameKind.COPY)
    return Device(
        process=process_labels(profile).get(record.process, "") if record else "",
        name=_device_name(profile, record) if record else f"device {row}",
        work_ns=int(time.sum[kept].sum()),
        kernels_ns=int(time.sum[kept & ~copies].sum()),
        copies_ns=int(time.sum[kept & copies].sum()),
        idle_ns=int(tree.exclusive("gpu_idle_time", row).sum[kept].sum()),
        launches=int(time.count[kept & ~copies].sum()),
        copy_bytes=int(tree.exclusive("copy_bytes", row).sum[kept].sum()),
        busy=_busy(record.detail) if record else None,
    )


def _busy(detail: Mapping[str, Any]) -> Busy | None:
    """The unions in a device's `detail`, which the NVIDIA provider writes; None unless all of them are there."""
    names = ("busy_ns", "idle_ns", "compute_ns", "copy_ns", "communication_ns")
    values = [detail.get(name) for name in (*names, "copy_under_compute_ns", "communication_under_compute_ns")]
    whole = [value for value in values if isinstance(value, int) and not isinstance(value, bool) and value >= 0]
    return Busy(*whole) if len(whole) == len(values) else None
