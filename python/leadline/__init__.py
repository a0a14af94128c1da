"""Leadline profiles deep-learning programs in context: Python line, module, operator, kernel, and what each cost.

    with leadline.profile("out.leadline"):
        train()
    p = leadline.open("out.leadline")

Importing this package loads nothing else, because it is imported while Python starts wherever LEADLINE is set: each
public name loads its module when it is first used.
"""

from __future__ import annotations

import importlib

from leadline._version import __version__

TYPE_CHECKING = False  # type checkers know the name; importing `typing` for it would cost more than all the rest
if TYPE_CHECKING:
    from typing import Any

    from leadline.capture.api import pause, profile, resume, start, step, stop
    from leadline.capture.booking import PathFrame, Place, Total, book, place
    from leadline.capture.config import Options, TraceWindow
    from leadline.capture.errors import ProfileError
    from leadline.capture.handle import current
    from leadline.capture.region import region
    from leadline.capture.training.profiler import build_profiler
    from leadline.capture.training.timers import CUDATimer, CUDATimerCollection
    from leadline.compare import diff
    from leadline.opening import open_any as open
    from leadline.report.training import print_summary

__all__ = [
    "CUDATimer",
    "CUDATimerCollection",
    "Options",
    "PathFrame",
    "Place",
    "ProfileError",
    "Total",
    "TraceWindow",
    "__version__",
    "book",
    "build_profiler",
    "current",
    "diff",
    "open",
    "pause",
    "place",
    "print_summary",
    "profile",
    "region",
    "resume",
    "start",
    "step",
    "stop",
]


def _source(name: str) -> tuple[str, str] | None:
    """Module and attribute behind a public name."""
    match name:
        case "start" | "stop" | "pause" | "resume" | "step" | "profile":
            return "leadline.capture.api", name
        case "book" | "place" | "PathFrame" | "Place" | "Total":
            return "leadline.capture.booking", name
        case "current":
            return "leadline.capture.handle", "current"
        case "serving":
            return "leadline.serving", ""
        case "region":
            return "leadline.capture.region", name
        case "Options" | "TraceWindow":
            return "leadline.capture.config", name
        case "build_profiler":
            return "leadline.capture.training.profiler", name
        case "CUDATimer" | "CUDATimerCollection":
            return "leadline.capture.training.timers", name
        case "print_summary":
            return "leadline.report.training", name
        case "training":
            return "leadline.training", ""
        case "ProfileError":
            return "leadline.capture.errors", name
        case "diff":
            return "leadline.compare", "diff"
        case "load_ipython_extension":
            return "leadline.notebook.magic", "load_ipython_extension"
        case "open":
            return "leadline.opening", "open_any"
    return None


def __getattr__(name: str) -> Any:
    source = _source(name)
    if source is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(source[0])
    value = getattr(module, source[1]) if source[1] else module
    globals().setdefault(name, value)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
