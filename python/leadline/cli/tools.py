"""`leadline tool`: which event tools and backends there are, and what a tool wants and can be told."""

from __future__ import annotations

import argparse
import sys

from leadline.cli.errors import CommandError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tool", nargs="?", metavar="NAME|FILE", help="describe this tool")
    parser.add_argument("--list", action="store_true", help="list all tools and backends (as without a name)")
    parser.add_argument("--include", action="store_true", help="print the folder of <leadline/tool.h>, for tools in C")
    parser.add_argument(
        "--events",
        metavar="FILE",
        help="run the tool on the events of a file, without a program: from --tool record (.npz), or JSON lines",
    )
    parser.add_argument(
        "--tool-option", action="append", default=[], metavar="TOOL.NAME=VALUE", help="set an option of the tool"
    )


def run(arguments: argparse.Namespace) -> int:
    from leadline.tools.errors import ToolError

    try:
        if arguments.include:
            from leadline.tools.c_tool import include_folder

            print(include_folder())
        elif arguments.tool and arguments.events:
            return _on_events(arguments)
        elif arguments.tool and not arguments.list:
            _one(arguments.tool)
        else:
            _all()
    except ToolError as error:
        raise CommandError(str(error)) from error
    return 0


class NoProgram:
    """What tools ask of the profiled process, where there is none."""

    def path_of(self, place: int) -> list[tuple[str, str, str, int]]:
        return []


def _on_events(arguments: argparse.Namespace) -> int:
    from leadline.report.encoding import for_stream
    from leadline.report.tools import ToolResult, tools_text
    from leadline.tools.hub import Hub

    backend = "replay" if arguments.events.endswith(".npz") else "fake"
    hub = Hub(NoProgram(), [arguments.tool], arguments.tool_option, f"{backend}:{arguments.events}")
    hub.start()
    results = hub.stop()
    width, colour = for_stream(sys.stdout)
    print(tools_text([ToolResult("", found) for found in results], width, 20, colour=colour).lstrip("\n"), end="")
    return 1 if any(found["problem"] for found in results) else 0


def _all() -> None:
    from leadline.tools.backends import BACKENDS, module_of
    from leadline.tools.loading import known_tools

    tools = known_tools()
    width = max(len(name) for name in (*tools, *BACKENDS))
    print("Tools (leadline run --tool NAME program.py; a Python file of your own works as well):")
    for name, tool in tools.items():
        print(f"  {name:<{width}}  {tool if isinstance(tool, str) else _doc(tool)}")
    print("\nBackends (--backend NAME; auto takes what a tool needs):")
    for name in BACKENDS:
        module = module_of(name)
        why = module.probe()
        print(f"  {name:<{width}}  {module.DOC}{f'; not here: {why}' if why else ''}")


def _one(name: str) -> None:
    from leadline.tools.backends import choose
    from leadline.tools.errors import ToolError
    from leadline.tools.loading import find_tools

    for tool, file in find_tools([name]):
        print(f"{tool.name()}: {_doc(tool)}" + (f" ({file})" if file else ""))
        for event, columns in tool.wanted().items():
            print(f"  wants {event}: {', '.join(columns)}")
        for key, option in tool.options().items():
            default = option.default
            print(f"  --tool-option {tool.name()}.{key}={default}  {option.doc}")
        try:
            backends = choose("auto", tool.wanted(), dict.fromkeys(tool.wanted(), tool.name()))
        except ToolError as error:
            print(f"  cannot run here: {error}")
        else:
            print(f"  runs here with {' and '.join(backends)}")


def _doc(tool: type) -> str:
    return (tool.__doc__ or "").strip().split("\n")[0]
