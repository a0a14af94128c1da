"""Starts one process of a trial; called by `leadline._autostart`. An error here ends nothing but the trial's record."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from leadline.remedies.plan import VARIABLE, Plan


def start_from_environment() -> None:
    """The program runs whatever happens here; what went wrong is in the record of this process."""
    from leadline.remedies.trial import Trial

    try:
        trial = Trial(Plan.read(Path(os.environ[VARIABLE])))
    except Exception as error:
        print(f"leadline: this process takes no part in the trial ({error!r})", file=sys.stderr)
        return
    trial.start()
