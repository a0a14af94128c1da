"""Tensor memory and accelerators: what was held at each peak, what each device did. None where nothing was measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from leadline.analysis import Analysis, breakdown, peaks, scratch
from leadline.analysis.between import between_devices
from leadline.analysis.columns import Mask
from leadline.analysis.hardware import by_kernel
from leadline.profiles import Profile, Tree
from leadline.profiles.records import Device as DeviceRecord
from leadline.report.model import Busy, Device, Gpu, Memory, Peak
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
    for number, peak in enumerate(analysis.peaks):
        holding = peaks.only(len(tree), peak, kept)
        if not holding.any():
            continue
        rows = top if number < MOST_HELD else 0
        holders = analysis.hot_paths.ranked("peak_live_bytes", rows, holding, device=peak.device).entries
        made.append(Peak(_memory_name(profile, peak), peak.held, tuple(words.path(entry) for entry in holders)))
    return Memory(
        allocated_bytes=int(allocated.sum[kept].sum()),
        freed_bytes=int(freed.sum[kept].sum()),
        allocations=int(allocated.count[kept].sum()),
        frees=int(freed.count[kept].sum()),
        peaks=tuple(made),
    )


def _memory_name(profile: Profile, peak: peaks.Peak) -> str:
    """`NVIDIA H200 (device 0), rank 1`; `CPU` or, of several processes, `CPU, rank 1`."""
    if peak.device >= 0:
        found = [one for one in profile.devices if one.row == peak.device]
        if found:
            return _device_name(profile, found[0])
    owner = [process.row for process in profile.processes if process.node.row == peak.process]
    label = process_labels(profile).get(owner[0], "") if owner else ""
    place = "CPU" if peak.device < 0 else f"device {peak.device}"
    return f"{place}, {label}" if label else place


def _device_name(profile: Profile, device: DeviceRecord) -> str:
    name = f"{device.name or device.detail.get('type', 'device')} (device {device.index})"
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
    kernels = breakdown.kernels(tree, kept)
    return Gpu(
        devices=tuple(_device(profile, row, known.get(row), kept) for row in sorted(set(rows))),
        kernels=tuple(kernels[:top]),
        kernels_hidden=max(0, len(kernels) - top),
        work_ns=int(tree.exclusive("gpu_time").sum[kept].sum()),
        sync_ns=sync_ns,
        counters=tuple(by_kernel(tree, kept)[:top]),
        scratch=tuple(scratch.by_kernel(tree, kept)[:top]),
        links=tuple(between_devices(profile, kept)[:MOST_LINKS]),
    )


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
