"""What `leadline run` does with a file that is made. Nothing here may change the program's exit status."""

from __future__ import annotations

from pathlib import Path

from leadline.capture.config import Options
from leadline.capture.messages import say
from leadline.cli.accelerator_arguments import unseen


def attach_kernel(path: Path, recording: Path) -> None:
    """Into the file that is made already."""
    try:
        from leadline.trace.kernel.attach import attach

        attach(path, recording)
    except Exception as error:
        say(f"The events of the Linux kernel could not be added to {path} ({error}).")


def complete(path: Path, options: Options) -> None:
    """What takes the file itself."""
    try:
        if options.native:
            from leadline.cli.symbolize import symbolize_here

            symbolize_here(path)
        if options.accelerators and (sentence := unseen(path)):
            say(sentence)
    except Exception as error:
        say(f"{path} has no names of native functions, or no check of accelerators ({type(error).__name__}: {error}).")


_SHORT_NS = 1_000_000_000
_HEADER_BYTES = 128
"""Of a column without a value."""


def print_the_summary(path: Path) -> None:
    try:
        if sentence := _too_short(path):
            say(sentence)
            return
        from leadline.report.summary import print_summary

        print_summary(str(path))
        if any(path.parent.glob(f"{path.stem}_rank*.json")):  # the program had a training profiler
            from leadline.report.training import summarize_shared

            if (page := summarize_shared(path)) is not None:
                say(f"the training summary is {page}.")
    except Exception as error:  # the program's exit status is worth more than a summary
        say(f"Wrote {path}; its summary could not be shown ({type(error).__name__}: {error}).")


def _too_short(path: Path) -> str:
    """Of a run that ended within a second, used no framework and lost nothing: that there is nothing to break down. A
    summary takes many times as long as such a program, and a handful of CPU samples says nothing. Empty for others."""
    import json
    import zipfile

    with zipfile.ZipFile(path) as package:
        meta = json.loads(package.read("meta.json"))
        lost = package.getinfo("losses.count.npy").file_size > _HEADER_BYTES
    processes, asked = meta["processes"], meta["asked"]
    wall_ns = int(meta["wall_ns"])
    if lost or not meta["complete"] or wall_ns >= _SHORT_NS or asked.get("trace") or asked.get("tools"):
        return ""
    if asked.get("cpu_sample") and not asked.get("cpu_sample_unasked"):
        return ""
    if any(one["cost"]["events"] or one.get("engines") for one in processes):
        return ""
    return (
        f"the program ended after {wall_ns / 1e9:.2g} s and ran no operator, so there is nothing to break down; "
        f"the profile is {path.name}."
    )
