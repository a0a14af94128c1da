"""Analyses over events of a running program, each in one file: `leadline run --tool NAME|FILE.py`.

    from leadline.tools import Tool, option

Runs in the profiled process, on threads of its own, and only where it was asked for.
"""

from __future__ import annotations

from leadline.tools.batch import Batch, Column
from leadline.tools.errors import ToolError
from leadline.tools.out import Out
from leadline.tools.sums import Counter, Sums
from leadline.tools.tool import Tool, option

__all__ = ["Batch", "Column", "Counter", "Out", "Sums", "Tool", "ToolError", "option"]
