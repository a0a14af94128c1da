"""Can a profile be written here."""

from __future__ import annotations

import tempfile
from pathlib import Path

from leadline.cli.checks import FAILED, OK, Finding

TITLE = "output"
_NAME = "leadline-doctor-probe.leadline"


def check() -> list[Finding]:
    """See `leadline.cli.checks`."""
    from leadline.capture.errors import ProfileError
    from leadline.capture.output import check_output, free_space_bytes

    try:
        folder = Path.cwd()
        check_output(folder / _NAME)
        with tempfile.NamedTemporaryFile(dir=folder, prefix="leadline-doctor-") as probe:
            probe.write(b"x")
            probe.flush()
        free_bytes = free_space_bytes(folder)
    except (ProfileError, OSError) as error:
        text = str(error).replace(_NAME, "a profile")
        return [Finding("folder", FAILED, text, "go to another folder, or name the file with -o")]
    return [Finding("folder", OK, f"{folder} can be written, {free_bytes >> 20:,} MiB free")]
