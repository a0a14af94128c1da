"""A finding in the words of the devices' maker, and how many threads a device runs in step."""

from __future__ import annotations

from collections.abc import Iterable

from leadline._dataclass import replace
from leadline.analysis.findings import Finding
from leadline.profiles.makers import in_amds_words, is_amd
from leadline.profiles.records import Device

NVIDIA_WARP = 32


def device_graph(devices: Iterable[Device]) -> str:
    """`HIP graph`: what the maker calls work that is recorded once and replayed."""
    return "HIP graph" if is_amd(devices) else "CUDA graph"


def lanes(device: Device) -> int:
    """Threads that the device runs in step, 0 where the file does not tell: AMD makes devices of 32 and of 64."""
    told = device.detail.get("wavefront")
    if isinstance(told, int):
        return max(told, 0)
    return 0 if is_amd([device]) else NVIDIA_WARP


def in_words_of(devices: Iterable[Device], one: Finding) -> Finding:
    """The finding in the words of the devices' maker; names of kernels stay as they are."""
    if not is_amd(devices):
        return one
    return replace(
        one,
        title=in_amds_words(one.title),
        gain=replace(one.gain, basis=in_amds_words(one.gain.basis)),
        evidence=tuple(text if text.startswith("kernel ") else in_amds_words(text) for text in one.evidence),
        remedy=in_amds_words(one.remedy),
    )
