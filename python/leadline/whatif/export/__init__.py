"""Timelines of graphs for other viewers, and a report as a page."""

from leadline.whatif.export.page import html_page
from leadline.whatif.export.perfetto import perfetto_trace
from leadline.whatif.export.strips import strips

__all__ = ["html_page", "perfetto_trace", "strips"]
