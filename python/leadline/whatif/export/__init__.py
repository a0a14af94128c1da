"""Timelines of graphs for other viewers."""

from leadline.whatif.export.perfetto import perfetto_trace

__all__ = ["perfetto_trace"]
