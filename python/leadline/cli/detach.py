"""`leadline attach --stop`: end what `leadline attach` began, before its time."""

from __future__ import annotations

import argparse

from leadline.capture.messages import say
from leadline.cli.errors import CommandError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The process."""
    parser.add_argument("pid", type=int, metavar="PID", help="a process that was attached to")


def run(arguments: argparse.Namespace) -> int:
    """Returns when the profile is there."""
    from leadline.attach.control import Control
    from leadline.attach.target import AttachError

    try:
        control = Control(arguments.pid)
    except AttachError as error:
        raise CommandError(str(error)) from error
    control.next()  # that it measures
    control.stop()
    news = control.next()
    control.close()
    if news.get("state") != "done":
        raise CommandError(f"Process {arguments.pid} wrote no profile: {news.get('message')}")
    say(f"wrote {news['path']}; read it with `leadline report {news['path']}`.")
    return 0
