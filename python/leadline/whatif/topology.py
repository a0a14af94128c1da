"""Which network a job of some size runs on, where the user does not say: links inside a machine up to eight workers,
rails between machines beyond. The table is factors/topologies.json; every answer names what was assumed."""

from __future__ import annotations

import json
from functools import lru_cache
from importlib import resources
from typing import Any

from leadline.whatif.collectives import Network
from leadline.whatif.gpus import Draw, Gpu, Range

MACHINE = 8
"""Workers that share a machine where nothing else is said."""
DEFAULT_BANDWIDTH = 12.5e9
_RAIL = {
    "blackwell": "infiniband-ndr", "hopper": "infiniband-ndr", "ampere": "infiniband-hdr", "volta": "infiniband-edr",
    "cdna": "infiniband-ndr",
}  # fmt: skip
_BETWEEN = "infiniband-edr"  # of GPUs that are seldom built into clusters
_ASSUMED = Range(1.0, 1.0, 0.5, name="assumed network")


@lru_cache(maxsize=1)
def topologies() -> dict[str, dict[str, Any]]:
    """The table by name."""
    text = resources.files(__package__).joinpath("factors").joinpath("topologies.json").read_text(encoding="utf-8")
    return {entry["name"]: entry for entry in json.loads(text)["topologies"]}


def network_of_topology(
    name: str, workers: int, gpu: Gpu | None, latency_ns: float | None, draw: Draw
) -> tuple[Network, str]:
    """The network of a named topology, or of the usual one (`auto`) for so many workers, and a sentence on it."""
    chosen = name if name != "auto" else _usual(workers, gpu)
    entry = topologies()[chosen]
    bandwidth = _inside(chosen, gpu) if chosen in ("nvlink", "pcie") else float(entry["gb_s"]) * 1e9
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
    return "nvlink" if gpu is None or gpu.link_gb_s else "pcie"


def _inside(name: str, gpu: Gpu | None) -> float:
    if gpu is None:
        return DEFAULT_BANDWIDTH
    if name == "nvlink" and gpu.link_gb_s:
        return gpu.link_gb_s * 1e9
    return gpu.pcie_gb_s * 1e9 / 2
