"""Timelines of graphs for other viewers and for the page."""

from leadline.whatif.export.perfetto import perfetto_trace
from leadline.whatif.export.strips import strips

__all__ = ["perfetto_trace", "strips"]
