"""Profiles of XLA and TensorFlow (`.xplane.pb`), as JAX, TensorFlow, PyTorch/XLA and their servers write them."""

from __future__ import annotations

from leadline.profiles.profile import Profile
from leadline.trace.importers.xspace_tree import profile_of
from leadline.trace.source import Source
from leadline.trace.xspace import read_xspace

NAME = "a profile of XLA or TensorFlow (.xplane.pb)"

_PLANES, _ID, _NAME = 0x0A, 0x08, 0x12
"""Keys of the first fields: a plane of the profile; in it its number, and its name."""


def recognises(head: bytes, source: Source) -> bool:
    """Whether a file that begins so may be one: a message that begins with a plane that has a name."""
    if head[:1] != bytes([_PLANES]):
        return False
    _, at = _varint(head, 1)
    if head[at : at + 1] == bytes([_ID]):
        _, at = _varint(head, at + 1)
    if head[at : at + 1] != bytes([_NAME]):
        return False
    length, at = _varint(head, at + 1)
    name = head[at : at + length]
    return 0 < length < 256 and len(name) == length and name.isascii() and name.decode().isprintable()


def read(source: Source) -> Profile:
    """The profile of one host. Raises TraceError."""
    return profile_of(read_xspace(source), NAME)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number and where it ends."""
    value = shift = 0
    while at < len(data) and shift < 64:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if byte < 0x80:
            break
    return value, at
