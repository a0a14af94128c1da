"""`leadline.book`: what another source has measured, in the profile at the path where it belongs.

For compiled programs that report about themselves, other profilers, and files read afterwards: what they say hangs
below a place of the running program, next to what Leadline measured there. Costs a look at one attribute while nothing
is measured.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from leadline.capture.contained import lose
from leadline.capture.current import CURRENT
from leadline.capture.native import PLACE_HERE, PLACE_THREAD


@dataclass(frozen=True)
class PathFrame:
    """One level of a path. `kind` is a frame kind of docs/schema.md, such as "region", "operator" or "kernel"."""

    kind: str
    name: str
    file: str = ""
    line: int = 0
    """The line being executed; 0 where unknown."""
    first_line: int = 0
    """The first line of the function; 0 where unknown."""
    module: str = ""
    """The class of an `nn.Module`, the build id of a native frame."""
    detail: Mapping[str, Any] | None = None
    """A JSON-serialisable mapping kept with the frame; every distinct one is a call path of its own."""
    address: int = 0


@dataclass(frozen=True)
class Total:
    """Any number of values of one metric, in its unit."""

    count: int
    sum: int
    min: int
    max: int
    sum_squares: float = 0.0
    """0 where unknown: as if all values were equal."""

    @classmethod
    def of(cls, values: Iterable[int]) -> Total:
        """What these values add up to. Raises ValueError when there are none."""
        known = list(values)
        return cls(len(known), sum(known), min(known), max(known), float(sum(value * value for value in known)))


@dataclass(frozen=True)
class Place:
    """Where something was, in the session that runs; from `leadline.place` and `leadline.book`."""

    token: int
    generation: int


def place() -> Place | None:
    """Where the calling thread is now, for what is booked later, from any thread.

    None while nothing is measured or measuring is paused.
    """
    native = CURRENT.native
    if native is None:
        return None
    try:
        token = native.place()
    except Exception as error:
        lose(native, "A place could not be taken", error)
        return None
    return Place(token, CURRENT.generation) if token else None


def book(
    path: Sequence[PathFrame | tuple[str, str]],
    values: Mapping[str, int | Total],
    *,
    below: Place | Literal["here", "thread"] | None = "here",
    device: str = "cpu",
    stream: int = -1,
) -> Place | None:
    """Add `values` at the last frame of `path`, and answer with its place, for what hangs below it.

    `path`: frames from the outermost on, as PathFrame or (kind, name); empty: `below` itself. `values`: by metric (see
    docs/schema.md, in the metric's unit: nanoseconds, bytes), one value or a Total. They are exclusive: what is booked
    below a frame is not part of its own values. `below`: a place, "here" (where the calling thread is) or "thread"
    (the calling thread itself). `device`: "cpu", or a type and a number such as "cuda:0". `stream`: -1 for none.

    Does nothing and answers with None while nothing is measured, for a place of an earlier session, for `below=None`
    (a place taken while nothing was measured), and "here" while measuring is paused. Raises ValueError when a kind,
    metric, device or total makes no sense; nothing is booked then.

    >>> leadline.book([("operator", "fusion.3"), ("kernel", "loop_add")], {"gpu_time": 12_000}, device="cuda:0")
    """
    native = CURRENT.native
    if native is None or below is None:
        return None
    if isinstance(below, Place):
        if below.generation != CURRENT.generation:
            return None
        token = below.token
    elif below in ("here", "thread"):
        token = PLACE_HERE if below == "here" else PLACE_THREAD
    else:
        raise ValueError(f'`below` is a place, "here" or "thread", not {below!r}.')
    kind, _, number = device.partition(":")
    if number and not number.isdecimal():
        raise ValueError(f'A device is "cpu" or a type and a number, such as "cuda:0", not {device!r}.')
    index = -1 if kind == "cpu" else int(number or 0)
    totals = [(metric, *_numbers(value)) for metric, value in values.items()]
    frames = [_frame(frame) for frame in path]
    try:
        booked = native.book(token, frames, totals, kind, index, stream)
    except (ValueError, TypeError):  # of what was given
        raise
    except Exception as error:
        lose(native, "What the program measured could not be booked", error)
        return None
    return Place(booked, CURRENT.generation) if booked else None


def _numbers(value: int | Total) -> tuple[int, int, int, int, float]:
    if isinstance(value, Total):
        return value.count, value.sum, value.min, value.max, float(value.sum_squares)
    return 1, int(value), int(value), int(value), 0.0


def _frame(frame: PathFrame | tuple[str, str]) -> tuple[str, str, str, str, str, int, int, int]:
    given = frame if isinstance(frame, PathFrame) else PathFrame(*frame)
    detail = "" if given.detail is None else json.dumps(given.detail, sort_keys=True)
    return (
        given.kind,
        given.name,
        given.module,
        given.file,
        detail,
        given.line,
        given.first_line,
        given.address,
    )
