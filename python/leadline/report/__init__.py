"""Reports on a profile: `build_report` computes one data model; text, markdown, JSON and HTML draw it.

What is named here is loaded when it is first used: a verdict takes two small files of this package.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from leadline.report.build import BadPatternError, UnknownMetricError, build_report
    from leadline.report.model import Report, ReportOptions
    from leadline.report.paths import TooLargeError

__all__ = ["BadPatternError", "Report", "ReportOptions", "TooLargeError", "UnknownMetricError", "build_report"]

_SOURCES = {"Report": "model", "ReportOptions": "model", "TooLargeError": "paths"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_SOURCES.get(name, 'build')}"), name)
