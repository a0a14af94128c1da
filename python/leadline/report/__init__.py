"""Reports on a profile: `build_report` computes one data model; text, markdown, JSON and HTML draw it."""

from __future__ import annotations

from leadline.report.build import BadPatternError, UnknownMetricError, build_report
from leadline.report.model import Report, ReportOptions
from leadline.report.paths import TooLargeError

__all__ = ["BadPatternError", "Report", "ReportOptions", "TooLargeError", "UnknownMetricError", "build_report"]
