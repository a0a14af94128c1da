"""`leadline mcp`: profiles for agents, over the Model Context Protocol on stdin and stdout."""

from __future__ import annotations

import argparse

from leadline.cli.errors import CommandError
from leadline.cli.files import add_source_root


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_source_root(parser)
    parser.epilog = "Tools: why (ask it first), summary, findings, query, diff, source, whatif. See docs/agents.md."


def run(arguments: argparse.Namespace) -> int:
    from leadline.agent.server import serve

    try:
        serve()
    except ImportError as error:
        if not (error.name or "").startswith("mcp"):
            raise
        raise CommandError("leadline mcp needs the MCP SDK; install it with `pip install 'leadline[mcp]'`.") from error
    return 0
