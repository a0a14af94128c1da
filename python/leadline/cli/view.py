"""`leadline view`: one profile, or two to compare, in the browser, served on this machine to this machine only.
`--tui`: one in the terminal.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import sys
import threading
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from leadline.cli.errors import CommandError
from leadline.cli.files import add_newest, add_source_root, port

if TYPE_CHECKING:
    from leadline.report.view import View


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_newest(parser)
    parser.add_argument(
        "after", metavar="FILE2", nargs="?", help="a second profile, from after a change, to compare with"
    )
    parser.add_argument("--tui", action="store_true", help="show it in this terminal (needs leadline[tui])")
    parser.add_argument(
        "--live", action="store_true", help="FILE is a running process, or the file that its run will write"
    )
    parser.add_argument("--port", type=port, default=0, help="port on the loopback address (default: any free port)")
    add_source_root(parser)
    parser.add_argument(
        "--data", metavar="OUT", help="write what the page asks for as JSON to OUT (- is the terminal), for editors"
    )
    parser.add_argument("--no-browser", action="store_true", help="only print the address")


def run(arguments: argparse.Namespace) -> int:
    if arguments.tui:
        if arguments.after is not None:
            raise CommandError("leadline view --tui shows one profile; `leadline diff A B` compares two in text.")
        if arguments.live:
            raise CommandError("--live needs the browser; use `leadline top` in the terminal.")
        return _in_terminal(arguments.file)
    if arguments.live:
        if arguments.after is not None:
            raise CommandError("--live shows one run; compare its files with `leadline diff`.")
        return _live(arguments)
    names = [name for name in (arguments.file, arguments.after) if name is not None]
    if arguments.data is not None:
        from leadline.cli.files import write_result

        write_result(_opened(names).data(), arguments.data, force=True)
        return 0
    for name in names:
        if "://" not in name and not Path(name).exists():
            _opened([name])  # which says so: a name that is mistyped has no address
    return _in_browser(names, lambda: _opened(names), arguments)


def _opened(names: list[str]) -> View:
    from leadline.cli.files import open_profile
    from leadline.report.view import View

    return View.opened(names, open_profile)


def _live(arguments: argparse.Namespace) -> int:
    from leadline.cli.top import find_part
    from leadline.profiles import ProfileFileError
    from leadline.report.live_view import LiveView

    try:
        view = LiveView(find_part(arguments.file))
    except ProfileFileError as error:
        raise CommandError(str(error)) from error
    print("the page follows the running program")
    return _in_browser([arguments.file], lambda: view, arguments)


def _in_browser(names: list[str], opened: Callable[[], View], arguments: argparse.Namespace) -> int:
    """The address comes before what takes time: whoever follows it early waits for the rest."""
    from leadline._view_server import Opening, ViewServer

    def page() -> str:
        from leadline.report.html import render_server_page

        return render_server_page(names)

    opening = Opening(page)
    try:
        server = ViewServer(opening, arguments.port)
    except OSError as error:
        raise CommandError(f"Port {arguments.port} cannot be used: {error.strerror}; give another --port.") from error
    try:
        threading.Thread(target=server.serve, daemon=True).start()
        print(f"{server.address}  (Ctrl-C ends it)", flush=True)
        opening.opened(opened())
        if not arguments.no_browser:
            with contextlib.suppress(webbrowser.Error):
                webbrowser.open(server.address)
        server.ended.wait()
    except KeyboardInterrupt:
        print()
    finally:
        server.close()
    return 0


def _in_terminal(file: str) -> int:
    """Raises CommandError where the file, the terminal or Textual is missing."""
    from leadline.cli.files import open_profile

    if importlib.util.find_spec("textual") is None:
        raise CommandError("leadline view --tui needs Textual; install it with `pip install 'leadline[tui]'`.")
    profile = open_profile(file)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise CommandError("leadline view --tui needs a terminal; `leadline report` writes to files and pipes.")
    from leadline.terminal.app import ViewApp

    ViewApp(profile, file).run()
    return 0
