"""What of `leadline run` belongs to accelerators that files describe."""

from __future__ import annotations

from pathlib import Path

from leadline.cli.more_options import MoreOptions


def add_accelerator_arguments(more: MoreOptions) -> None:
    """`--accelerator`, which may be repeated."""
    more.add(
        "--accelerator",
        action="append",
        default=[],
        metavar="FILE",
        help="measure the device that this TOML file describes (library, functions, arguments); may be repeated",
    )


def unseen(path: Path) -> str:
    """One sentence where no process of the profile has called any function that was described; else empty."""
    from leadline.profiles import open_profile

    try:
        processes = open_profile(path).meta.get("processes", [])
        found = [one.get("available", {}).get("accelerator", {}) for one in processes]
    except Exception:  # the summary will say what is wrong with it
        return ""
    if not found or any(one.get("calls") or "calls" not in one for one in found):
        return ""  # who was killed has not told
    if not any(one.get("libraries") for one in found):
        return "No process loaded a library of the accelerator; compare `library` in its file with /proc/PID/maps."
    return "The accelerator's library was loaded, but no function in its file was called."
