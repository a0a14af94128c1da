"""Which network a job of some size runs on, where the user does not say: links inside a machine up to eight workers (as
the profile tells them, else by the GPU's model), rails between machines beyond. The table is factors/topologies.json;
every answer names what was assumed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from leadline.hardware.gpus import Gpu
from leadline.whatif.collectives import Network
from leadline.whatif.draws import Draw, Range
from leadline.whatif.tables import DeviceInfo

MACHINE = 8
"""Workers that share a machine where nothing else is said."""
DEFAULT_BANDWIDTH = 12.5e9
_RAIL = {
    "blackwell": "infiniband-ndr", "hopper": "infiniband-ndr", "ampere": "infiniband-hdr", "volta": "infiniband-edr",
    "cdna": "infiniband-ndr",
}  # fmt: skip
_INSIDE = ("nvlink", "xgmi", "pcie")
_BETWEEN = "infiniband-edr"  # of GPUs that are seldom built into clusters
_ASSUMED = Range(1.0, 1.0, 0.5, name="assumed network")


@lru_cache(maxsize=1)
def topologies() -> dict[str, dict[str, Any]]:
    """The table by name."""
    text = Path(__file__).with_name("factors").joinpath("topologies.json").read_text(encoding="utf-8")
    return {entry["name"]: entry for entry in json.loads(text)["topologies"]}


def network_of_topology(
    name: str,
    workers: int,
    gpu: Gpu | None,
    latency_ns: float | None,
    draw: Draw,
    devices: Sequence[DeviceInfo] = (),
) -> tuple[Network, str]:
    """The network of a named topology, or (`auto`) of what joins the `devices`, or of the usual one for so many
    workers; and a sentence on it."""
    if name == "auto" and (told := _told(devices, workers)) is not None:
        kind, bandwidth, said = told
        latency = latency_ns if latency_ns is not None else float(topologies()[kind]["latency_us"]) * 1e3
        return Network(bandwidth, latency), said
    chosen = name if name != "auto" else _usual(workers, gpu)
    entry = topologies()[chosen]
    bandwidth = _inside(chosen, gpu) if chosen in _INSIDE else float(entry["gb_s"]) * 1e9
    latency = latency_ns if latency_ns is not None else float(entry["latency_us"]) * 1e3
    said = f"{chosen}, {bandwidth / 1e9:.3g} GB/s for each worker"
    if name != "auto":
        return Network(bandwidth, latency), said
    where = "one machine" if workers <= MACHINE else f"machines of {MACHINE}"
    return Network(bandwidth * _ASSUMED.at(draw), latency), (
        f"the network is not given: {said} ({where}) is assumed, and half of it at the long end; --set topology=... or "
        "bandwidth=... says it"
    )


def _usual(workers: int, gpu: Gpu | None) -> str:
    if workers > MACHINE:
        return _RAIL.get(gpu.generation.lower() if gpu is not None else "", _BETWEEN)
    if gpu is not None and not gpu.link_gb_s:
        return "pcie"
    return "xgmi" if gpu is not None and gpu.vendor == "amd" else "nvlink"


def _told(devices: Sequence[DeviceInfo], workers: int) -> tuple[str, float, str] | None:
    """The topology, the bandwidth of a worker and a sentence on it, for one worker on each of so many devices of the
    program; None where their links are not known. A device sends over all of its own links at once; where some pair has
    none (PCIe between them), the slowest link holds up all."""
    if not 1 < workers <= len(devices):
        return None
    links = [[one for one in device.links if one.device < workers] for device in devices[:workers]]
    if any(len({one.device for one in mine}) < workers - 1 or min(one.bytes_s for one in mine) <= 0 for mine in links):
        return None
    kinds = Counter(one.kind for mine in links for one in mine)
    if set(kinds) == {"xGMI"}:
        bandwidth = min(sum(one.bytes_s for one in mine) for mine in links)
        each = min(one.bytes_s for mine in links for one in mine)
        said = f"{workers - 1} xGMI link{'s' if workers > 2 else ''} of {each / 1e9:.3g} GB/s from each device"
        return "xgmi", bandwidth, f"{said}, as the profile states: {bandwidth / 1e9:.3g} GB/s for each worker"
    bandwidth = min(one.bytes_s for mine in links for one in mine)
    some = " and ".join(sorted(kinds))
    said = f"{some} between the devices, as the profile states: the slowest link, {bandwidth / 1e9:.3g} GB/s"
    return "pcie", bandwidth, said


def _inside(name: str, gpu: Gpu | None) -> float:
    if gpu is None:
        return DEFAULT_BANDWIDTH
    if name != "pcie" and gpu.link_gb_s:
        return gpu.link_gb_s * 1e9
    return gpu.pcie_gb_s * 1e9 / 2
