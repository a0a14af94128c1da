"""The critical resource: what sets the length of the step, as a class of verdict. Follows from the account alone."""

from __future__ import annotations

from leadline._dataclass import dataclass
from leadline.verdict.model import Account, Part
from leadline.work.operators import class_of_operator

_LARGE = 0.25
"""Of the step: a wait that large is its cause where no device is busy; between `_NEAR` and it both are said."""
_NEAR = 0.2
_DEVICE_BUSY = 0.9
_UNEXPLAINED = 0.4
"""Of the step's own time: where more is not explained, no class is named unless one part is larger."""
_NINE_IN_TEN = 1.28 / 2
"""Of two standard deviations: what a part exceeds in nine cases of ten is so much less than its estimate."""
_OF_LARGEST = 0.3
"""A part that is smaller is not what the time goes to, however surely it is known."""
FEWEST_STEPS = 5
CALL_NS = 60_000.0
"""On a core: calling an operator from Python takes 5 to 30 µs; what takes more for each is no dispatch."""
_IDLE = ("other", "copy", "")
"""Classes of operators that compute nothing."""
_KIND_OF_PART = {
    "products": "compute",
    "transforms": "compute",
    "decompositions": "compute",
    "moves": "memory",
    "random": "random",
    "python": "python",
    "calling": "dispatch",
    "autograd": "dispatch",
    "optimizer": "optimizer",
    "pool": "compute",
    "data": "data",
    "ranks": "ranks",
    "device": "synchronisation",
    "compile": "compile",
    "lock": "blocked",
    **dict.fromkeys(("io", "network", "child", "process", "kernel"), "blocked"),
    "sleep": "blocked",
    "brief": "blocked",
    "saving": "saving",
    "rare": "rare",
    "collection": "collection",
    "imports": "imports",
}


@dataclass(frozen=True)
class Resource:
    """`kind`: a key of CLASSES; `part`: of the account that shows it; `second`: another of nearly its size, or None.
    `contended`: share of the step in which the thread stood in line for a core, where that is its largest part."""

    kind: str
    part: Part | None
    second: Part | None
    contended: float


def critical(account: Account) -> Resource:
    """The class of the step's length."""
    device = account.lane("device")
    queue = account.share("core")
    contended = queue if queue >= _NEAR else 0.0
    if device:
        return _with_device(account, contended)
    own = [one for one in account.lane("thread") if one.key not in ("core", "unexplained") and one.ns > 0]
    if not own:
        return Resource("core" if contended else "cannot_tell", None, None, contended)
    largest = max(one.ns for one in own)
    # by what it is at least: a few samples name no class, unless nothing else is of its size
    own.sort(key=lambda one: (one.ns < _OF_LARGEST * largest, _NINE_IN_TEN * one.sure_ns - one.ns))
    first, second = own[0], own[1] if len(own) > 1 else None
    if first.ns >= account.ns("core"):
        contended = 0.0  # it is among the facts
    base = max(account.wall_ns - account.ns("core"), 1)
    unexplained = account.ns("unexplained") / base
    if unexplained > _UNEXPLAINED and first.ns < account.ns("unexplained"):
        return Resource("cannot_tell", first, None, contended)
    near = second if second is not None and second.ns >= 0.8 * first.ns else None
    kind = _KIND_OF_PART.get(first.key, "cannot_tell")
    if first.key == "calling" and first.ns > CALL_NS * account.called:
        what = first.places[0].what if first.places else ""
        # an operator that works is called by another one, in a loop of C++
        kind = "framework" if "::" not in what else "operator" if class_of_operator(what) in _IDLE else "dispatch"
    return Resource(kind, first, near, contended)


def unsure(part: Part) -> bool:
    """Whether a part is known by so few samples that it may be half as large."""
    return part.sure_ns > 0.5 * part.ns


def _with_device(account: Account, contended: float) -> Resource:
    lane = account.lane("device")
    busy = sorted((one for one in lane if one.group == "busy"), key=lambda one: -one.ns)
    idle = sorted((one for one in lane if one.group == "idle"), key=lambda one: -one.ns)
    share = sum(one.ns for one in busy) / max(account.wall_ns, 1)
    if busy and share >= _DEVICE_BUSY:
        kind = "ranks" if busy[0].key == "communication" else "device"
        return Resource(kind, busy[0], None, contended)
    if not idle:
        return Resource("device" if busy else "cannot_tell", busy[0] if busy else None, None, contended)
    first = idle[0]
    second = idle[1] if len(idle) > 1 and idle[1].ns >= 0.8 * first.ns else None
    if busy and share >= 0.5 and first.ns < max(0.2 * account.wall_ns, 0.5 * busy[0].ns):
        kind = "ranks" if busy[0].key == "communication" else "device"
        return Resource(kind, busy[0], first, contended)
    if busy and busy[0].key == "communication" and busy[0].ns > first.ns:
        return Resource("ranks", busy[0], first, contended)  # it is what the device does most, and hides behind nothing
    kinds = {"launch": "launch", "device": "synchronisation", "data": "data", "ranks": "ranks", "core": "core",
             "compile": "compile", "unrecorded": "device"}  # fmt: skip
    return Resource(kinds.get(first.key, "launch"), first, second, contended)
