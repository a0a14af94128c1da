"""What a person can mend in a tool, its options or the choice of a backend."""

from __future__ import annotations


class ToolError(Exception):
    """One sentence: what is wrong, why, and what to do."""
