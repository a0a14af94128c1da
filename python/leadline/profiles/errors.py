"""What goes wrong with profile files, as one exception whose message is one sentence for a person."""

from __future__ import annotations


class ProfileFileError(Exception):
    """A file could not be read as a profile. `str(error)` is one sentence: what, why and, where there is one, the way
    out."""
