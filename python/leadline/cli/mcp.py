"""`leadline mcp`: profiles for agents, over the Model Context Protocol on stdin and stdout, or over HTTP."""

from __future__ import annotations

import argparse

from leadline.cli.errors import CommandError
from leadline.cli.files import add_source_root, port


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_source_root(parser)
    parser.add_argument(
        "--http", action="store_true", help="serve over HTTP on the loopback address; prints the address with its token"
    )
    parser.add_argument("--port", type=port, default=0, help="port for --http (default: any free port)")
    parser.epilog = "Tools: why (ask it first), summary, findings, query, diff, source, whatif. See docs/agents.md."


def run(arguments: argparse.Namespace) -> int:
    from leadline.agent.server import serve, serve_http

    try:
        if not arguments.http:
            serve()
            return 0
        serve_http(arguments.port, lambda address: print(f"{address}  (Ctrl-C ends it)", flush=True))
    except ImportError as error:
        if not (error.name or "").startswith("mcp"):
            raise
        raise CommandError("leadline mcp needs the MCP SDK; install it with `pip install 'leadline[mcp]'`.") from error
    except OSError as error:
        if not arguments.http:
            raise
        raise CommandError(f"Port {arguments.port} cannot be used: {error.strerror}; give another --port.") from error
    except KeyboardInterrupt:
        print()
    return 0
