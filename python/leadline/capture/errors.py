"""What goes wrong when measuring is asked for, as exceptions whose message is one sentence for a person."""

from __future__ import annotations


class ProfileError(RuntimeError):
    """Measuring could not start, go on or be written. `str(error)` is one sentence: what, why, what to do."""
