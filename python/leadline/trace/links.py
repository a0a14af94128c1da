"""What joins the devices of a program, as their records in a profile say it (AMD's driver does)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leadline.trace.tables import Link


def links_of(detail: Mapping[str, Any]) -> tuple[Link, ...]:
    """Of a device, by its `detail`; those that make no sense are left out, as a file may be anybody's."""
    told = detail.get("links")
    made = []
    for one in told if isinstance(told, list) else []:
        if not isinstance(one, dict):
            continue
        device, kind, rate = one.get("device"), one.get("type"), one.get("mb_per_s")
        if isinstance(device, int) and device >= 0 and isinstance(kind, str) and isinstance(rate, int) and rate >= 0:
            made.append(Link(device, kind, rate * 1e6))
    return tuple(made)
