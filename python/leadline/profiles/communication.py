"""Which frames are communication between ranks. The one place that knows how providers say so."""

from __future__ import annotations

from leadline.schema import FrameKind

_SIGNS = ('"role":"communication"', '"collective":')
"""A provider says so in the detail of an operator or region, or names the collective there."""
_ABLE = (int(FrameKind.OPERATOR), int(FrameKind.REGION))


def says_communication(kind: int, detail: str) -> bool:
    """Whether a frame of that kind and detail is communication: an operator or region of which a provider says so."""
    return kind in _ABLE and any(sign in detail.replace(" ", "") for sign in _SIGNS)


def device_communication(kind: int, name: str) -> bool:
    """Whether a frame is a collective's work on a device."""
    return kind == int(FrameKind.COLLECTIVE) or (kind == int(FrameKind.KERNEL) and name.startswith("nccl"))
