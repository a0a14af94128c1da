"""`leadline symbolize`: names for the native frames of a profile, written into the file so that it can travel."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from leadline.capture.messages import say
from leadline.cli.errors import CommandError
from leadline.cli.files import add_output, open_profile, write_file

if TYPE_CHECKING:
    from leadline.profiles.debuginfod import DebugServers


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The file, and where else to look for what ran."""
    parser.add_argument("file", metavar="FILE", help="a profile made with --native")
    add_output(parser, "write to OUT instead of the same file")
    parser.add_argument(
        "--search",
        action="append",
        default=[],
        metavar="FOLDER",
        help="also search FOLDER for files that have moved; may be repeated",
    )
    parser.add_argument(
        "--debuginfod",
        action="store_true",
        help="download missing debug information from DEBUGINFOD_URLS (the servers learn the build ids)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Name what can be named; 0 also where a file gave no names, which is said."""
    folders = [Path(folder) for folder in arguments.search]
    servers = _servers() if arguments.debuginfod else None
    symbolize(arguments.file, arguments.output or arguments.file, folders, servers, force=arguments.force)
    return 0


def _servers() -> DebugServers:
    from leadline.profiles.debuginfod import servers_of

    if servers := servers_of(os.environ, lambda sentence: print(f"leadline: {sentence}", file=sys.stderr)):
        return servers
    raise CommandError("No debuginfod server is named; set DEBUGINFOD_URLS to the address of one, as for gdb.")


def symbolize(
    file: str, output: str, folders: list[Path], servers: DebugServers | None = None, *, force: bool = False
) -> None:
    """Read, name, write, and say on stderr what was done. Raises CommandError."""
    from leadline.profiles.symbols import symbolized

    done = symbolized(open_profile(file), folders, servers)
    for sentence in done.sentences:
        print(f"leadline: {sentence}", file=sys.stderr)
    if not done.named + done.unnamed:
        print(f"leadline: {file} has no native frames to name; measure with --native.", file=sys.stderr)
        return
    write_file(done.profile, output, force=force)
    left = f"; {done.unnamed:,} stay addresses" if done.unnamed else ""
    frames = "frame" if done.named == 1 else "frames"
    print(f"leadline: named {done.named:,} native {frames} in {output}{left}.", file=sys.stderr)


def symbolize_here(path: Path) -> None:
    """Names while the files that ran are surely there."""
    try:
        from leadline.profiles import open_profile
        from leadline.profiles.symbols import symbolized
        from leadline.profiles.writer import write_profile

        done = symbolized(open_profile(path))
        for sentence in done.sentences:
            say(sentence)
        if done.named:
            write_profile(path, done.profile)
    except Exception as error:
        say(f"Native frames have no names ({error}); `leadline symbolize {path}` may find them.")
