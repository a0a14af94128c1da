"""What profiles of XLA say of work on a device in one text, such as `regs:32 grid:2,2,1 block:128,1,1`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from leadline.xla.recorded import whole

_DETAIL = re.compile(r"(\w+):(\S+)")
_SUFFIX = re.compile(r"\.xplane\.pb(?:\.gz)?$")
_NUMBERED = re.compile(r"\((\d{1,20})\)$")


def facts_of(text: str) -> dict[str, str]:
    """Names and values."""
    return dict(_DETAIL.findall(text))


def launch(told: Mapping[str, str]) -> dict[str, Any]:
    """The shape of a launch, as traces of torch.profiler have it."""
    shape = {key: [whole(part) for part in told.get(key, "").split(",")] for key in ("grid", "block") if told.get(key)}
    shared = whole(told.get("dynamic_shared", ""))
    occupancy = {"est. achieved occupancy %": float(told["occ_pct"])} if _is_number(told.get("occ_pct", "")) else {}
    return {**shape, "registers per thread": whole(told.get("regs", "")), "shared memory": shared, **occupancy}


def moved(told: Mapping[str, str]) -> dict[str, Any]:
    """Bytes and kinds of memory of a copy or set."""
    size = whole(told.get("size", told.get("num_bytes", "")))
    return {"bytes": size, "from": told.get("kind_src", told.get("kind", "")), "to": told.get("kind_dst", "")}


def copy_name(name: str, facts: Mapping[str, Any]) -> str:
    """`Memcpy HtoD (pinned -> device)`, as other profilers call what is `MemcpyH2D` here."""
    direction = name.removeprefix("Memcpy").replace("2", "to") if name.startswith("Memcpy") else name
    if name.lower().startswith("memset"):
        return f"Memset ({facts['from'].title() or 'Unknown'})"
    return f"Memcpy {direction} ({facts['from'].title() or 'Unknown'} -> {facts['to'].title() or 'Unknown'})"


def _is_number(text: str) -> bool:
    return re.fullmatch(r"\d{1,6}(\.\d+)?", text) is not None


def host_of(hosts: Sequence[str], file: str) -> str:
    """The machine of a profile: as it says itself, or else as the file is called, which profilers name so."""
    return hosts[0] if hosts else _SUFFIX.sub("", file)


def program_number(name: str, key: int) -> int:
    """The number that events call a program by: newer profiles have it in the name only, `jit_step(58)`."""
    told = _NUMBERED.search(name)
    if told is None:
        return key
    number = int(told[1]) & (2**64 - 1)
    return number - 2**64 if number >= 2**63 else number  # as events have it, a number with a sign
