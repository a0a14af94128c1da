"""What a job that stands leaves by itself: the answer of `leadline dump --job`, in a file beside the profiles.

Started by `leadline.capture.hang_watch` as a process of its own.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from pathlib import Path

from leadline._output import write_text
from leadline.cli.job_dump import inspect_job, job_text
from leadline.profiles.errors import ProfileFileError


def main() -> int:
    """Arguments: a process's part directory, its number, the file to make, and for how many seconds it has stood. The
    first sentence goes to standard output; where nobody is behind there is no file."""
    part, pid, path, standing_s = Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4]
    with contextlib.suppress(OSError):
        os.nice(5)
    try:
        job = inspect_job([str(part.parent)], of=pid, deep=False)
    except ProfileFileError:
        return 0
    if job.moved or not job.verdict.sentences:
        return 0
    when = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
    head = f"{when}: a collective of process {pid} on {os.uname().nodename} has not ended for {standing_s} s."
    write_text(path, f"{head}\n{job_text(job)}\n")
    print(f"No collective has begun for {standing_s} s. {job.verdict.sentences[0]}")
    return 0
