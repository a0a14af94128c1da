"""`leadline tool uvm`: plan managed memory from a recording of events, and run a program by the plan."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from leadline.cli.errors import CommandError
from leadline.cli.files import add_output


def add_arguments(parser: argparse.ArgumentParser) -> None:
    kinds = parser.add_subparsers(dest="what", required=True, metavar="plan|apply")
    plan = kinds.add_parser(
        "plan", help="predict the cost of managed memory, and write a plan of which tensors to move when"
    )
    plan.add_argument(
        "file", metavar="FILE", help="the recording of `leadline run --tool record --backend declared` (.npz)"
    )
    plan.add_argument(
        "--memory", default="0", help="memory of the device, such as 24GB (default: a third of what the program holds)"
    )
    plan.add_argument("--ahead", default="4", help="number of launches that the plan looks ahead (default: 4)")
    add_output(plan, "the plan to write (default: FILE with the ending .plan.json)", metavar="PLAN")
    plan.add_argument(
        "--tool-option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="set an option of the tool uvm_advisor, such as link=50",
    )
    apply = kinds.add_parser("apply", help="run a program in managed memory and move its tensors by the plan")
    apply.add_argument("--discard", action="store_true", help="also discard the contents of dead tensors (CUDA 13)")
    apply.add_argument("plan", metavar="PLAN")
    apply.add_argument("program", nargs=argparse.REMAINDER, metavar="program.py ...", help="the program as recorded")


def run(arguments: argparse.Namespace) -> int:
    from leadline.tools.errors import ToolError

    try:
        return _plan(arguments) if arguments.what == "plan" else _apply(arguments)
    except ToolError as error:
        raise CommandError(str(error)) from error


def _plan(arguments: argparse.Namespace) -> int:
    from leadline._output import OutputError, check_kind, check_output, kind_of
    from leadline.cli.tools import NoProgram
    from leadline.report.encoding import for_stream
    from leadline.report.tools import ToolResult, tools_text
    from leadline.tools.hub import Hub
    from leadline.tools.managed_plan import PLAN_HEAD

    output = arguments.output or f"{arguments.file.removesuffix('.npz')}.plan.json"
    if output == "-":
        raise CommandError("A plan cannot be written to standard output; name a file with -o NAME.plan.json.")
    try:
        check_output(Path(output), [arguments.file])
        check_kind(Path(output), kind_of(PLAN_HEAD), force=arguments.force)
    except OutputError as error:
        raise CommandError(str(error)) from None
    said = {"memory": arguments.memory, "ahead": arguments.ahead, "plan": output}
    options = [f"uvm_advisor.{name}={value}" for name, value in said.items()]
    options += [f"uvm_advisor.{one}" for one in arguments.tool_option]
    hub = Hub(NoProgram(), ["uvm_advisor"], options, f"replay:{arguments.file}")
    hub.start()
    results = hub.stop()
    width, colour = for_stream(sys.stdout)
    print(tools_text([ToolResult("", found) for found in results], width, 20, colour=colour).lstrip("\n"), end="")
    return 1 if any(found["problem"] for found in results) else 0


def _apply(arguments: argparse.Namespace) -> int:
    from leadline.tools.managed_plan import ManagedPlan

    ManagedPlan.read(Path(arguments.plan))  # a sentence now, not in the middle of the program's start
    if not arguments.program:
        raise CommandError("apply needs a program; write leadline tool uvm apply PLAN program.py ARGS.")
    if not Path(arguments.program[0]).is_file():
        raise CommandError(f"There is no program {arguments.program[0]}; check the path.")
    words = [sys.executable, "-m", "leadline.tools.managed_run", *(["--discard"] if arguments.discard else [])]
    sys.stdout.flush()
    os.execv(sys.executable, [*words, arguments.plan, *arguments.program])
