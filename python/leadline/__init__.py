"""Leadline profiles deep-learning programs in context: Python line, module, operator, kernel, and what each cost.

    with leadline.profile("out.leadline"):
        train()
    p = leadline.open("out.leadline")

Importing this package loads nothing else, because it is imported while Python starts wherever LEADLINE is set: each
public name loads its module when it is first used.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

from leadline._version import __version__

TYPE_CHECKING = False  # type checkers know the name; importing `typing` for it would cost more than all the rest
if TYPE_CHECKING:
    from typing import Any

    from leadline.capture.api import pause, profile, resume, start, step, stop
    from leadline.capture.config import Options, TraceWindow
    from leadline.capture.errors import ProfileError
    from leadline.capture.region import region
    from leadline.profile.reader import open_profile as open

__all__ = [
    "Options",
    "ProfileError",
    "TraceWindow",
    "__version__",
    "open",
    "pause",
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
        case "region":
            return "leadline.capture.region", name
        case "Options" | "TraceWindow":
            return "leadline.capture.config", name
        case "ProfileError":
            return "leadline.capture.errors", name
        case "open":
            return "leadline.profile", "open_profile"
    return None


def __getattr__(name: str) -> Any:
    source = _source(name)
    if source is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(source[0]), source[1])
    globals().setdefault(name, value)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _ProfilePackage(ModuleType):
    """The package `leadline.profile`, callable as the function of the same name."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        from leadline.capture.api import profile

        return profile(*arguments, **options)


class _LeadlinePackage(ModuleType):
    """Python binds a subpackage to its name in the parent when it is imported, so `leadline.profile` means the function
    before and the package after `import leadline.profile`: the package is made callable when it is bound."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "profile" and isinstance(value, ModuleType):
            value.__class__ = _ProfilePackage
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _LeadlinePackage
