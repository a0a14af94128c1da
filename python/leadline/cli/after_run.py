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


def print_the_summary(path: Path) -> None:
    try:
        from leadline.report.summary import print_summary

        print_summary(str(path))
        if any(path.parent.glob(f"{path.stem}_rank*.json")):  # the program had a training profiler
            from leadline.report.training import summarize_shared

            if (page := summarize_shared(path)) is not None:
                say(f"the training summary is {page}.")
    except Exception as error:  # the program's exit status is worth more than a summary
        say(f"Wrote {path}; its summary could not be shown ({type(error).__name__}: {error}).")
