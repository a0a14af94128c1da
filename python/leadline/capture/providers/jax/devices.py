"""The devices that JAX runs programs on, and who measures them.

XLA's profiler and a vendor provider of ours want the same library of the vendor's, and it serves one. Where ours has
it, kernels are measured exactly on the line that called the program; where not, XLA's profiler times operations in
windows. Asking initialises no backend.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from leadline.capture.providers.jax import places as jax_places

_VENDORS = ("nvidia", "amd")
_TYPES = {"cpu": "cpu", "cuda": "cuda", "rocm": "hip", "tpu": "xla"}
Place = tuple[str, int]
"""Device type as files name it, and the device's number in this process; -1 for the CPU."""
CPU: Place = ("cpu", -1)
_TOLD = {"bytes_limit": "memory_bytes", "peak_bytes_in_use": "peak_bytes", "largest_alloc_size": "largest_bytes"}


class DeviceNative(Protocol):
    """What is needed of the native module here."""

    def provider_status(self, name: str) -> dict[str, Any]: ...
    def describe_device(self, device_type: str, index: int, name: str, memory_bytes: int, detail: str) -> None: ...


def type_of(device: Any) -> str:
    """`cuda`, `hip`, `xla` and the like, `cpu` for the host."""
    platform = str(device.platform)
    if platform == "gpu":
        version = str(getattr(getattr(device, "client", None), "platform_version", ""))
        platform = "rocm" if "rocm" in version.lower() else "cuda"
    return _TYPES.get(platform, "xla")


def place_of(device: Any) -> Place:
    """Where a profile has the device, as XLA's profiler numbers it."""
    kind = type_of(device)
    if kind == "cpu":
        return CPU
    number = getattr(device, "local_hardware_id", None)
    return kind, int(device.id if number is None else number)


def others() -> Iterator[Any]:
    """The devices of this process that are no CPUs, of the backends that the program has initialised."""
    for client in jax_places.clients():
        for device in client.local_devices():
            if type_of(device) != "cpu":
                yield device


def other_type() -> str:
    """The type of these devices."""
    return next((type_of(device) for device in others()), "xla")


def measured_by(native: DeviceNative) -> str:
    """The vendor provider of ours that measures these devices; empty where none does."""
    return next((name for name in _VENDORS if native.provider_status(name).get("measuring")), "")


def describe(native: DeviceNative) -> list[dict[str, Any]]:
    """Say what the devices are, unless a vendor provider does; returns what their allocators told."""
    told = []
    known = measured_by(native)
    for device in others():
        kind, index = place_of(device)
        memory = _memory(device)
        if not known:
            native.describe_device(kind, index, str(device.device_kind), memory.get("memory_bytes", 0), "")
        told.append({"device": f"{kind}:{index}", "name": str(device.device_kind), **memory})
    return told


def _memory(device: Any) -> dict[str, int]:
    """What the allocator of a device says of itself; nothing where it says nothing."""
    try:
        stats = device.memory_stats() or {}
    except Exception:  # of a plug-in that has none
        return {}
    return {ours: int(stats[theirs]) for theirs, ours in _TOLD.items() if isinstance(stats.get(theirs), int)}
