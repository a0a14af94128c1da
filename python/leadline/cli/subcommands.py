"""The subcommands of `leadline`, in the groups and the order of `leadline --help`.

Constraint: the standard library only, since `leadline run` starts the user's program through it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Subcommand:
    """A subcommand; its module is imported when it is used."""

    name: str
    module: str
    help: str


GROUPS: dict[str, tuple[Subcommand, ...]] = {
    "Record": (
        Subcommand("run", "leadline.cli.run", "run a program and profile it and its children"),
        Subcommand("demo", "leadline.cli.demo", "profile the bundled training program"),
        Subcommand("recover", "leadline.cli.recover", "make a profile from what a killed run left behind"),
        Subcommand("doctor", "leadline.cli.doctor", "check what can be measured on this machine"),
    ),
    "Read": (
        Subcommand("report", "leadline.cli.report", "print a profile as text, Markdown, JSON or one HTML file"),
        Subcommand("view", "leadline.cli.view", "open a profile in the browser or, with --tui, in this terminal"),
        Subcommand("query", "leadline.cli.query", "list call paths by a condition, grouped and sorted"),
        Subcommand("sql", "leadline.cli.sql", "query a profile in SQL"),
        Subcommand("info", "leadline.cli.info", "print what a profile holds"),
        Subcommand("timeline", "leadline.cli.timeline", "show each thread's phases and waits in the trace window"),
        Subcommand("stats", "leadline.cli.stats", "summarise durations and latencies in the trace window"),
    ),
    "Explain": (
        Subcommand("why", "leadline.cli.why", "say why the step is slow: of a script, a PID, a profile or a trace"),
        Subcommand("analyze", "leadline.cli.analyze", "name the problems of a profile, with evidence, fix and gain"),
        Subcommand("whatif", "leadline.cli.whatif", "predict what a change would gain, from one trace window"),
    ),
    "Compare": (
        Subcommand("diff", "leadline.cli.diff", "compare profiles from before and after a change"),
        Subcommand("gate", "leadline.cli.gate", "fail when profiles are slower or larger than a baseline"),
    ),
    "Many ranks": (
        Subcommand("merge", "leadline.cli.merge", "merge the profiles of a job's ranks into one"),
        Subcommand("summary", "leadline.cli.summary", "write a training run's page for the experiment log"),
        Subcommand("watch", "leadline.cli.watch", "show which ranks of a running job are late or silent"),
        Subcommand("clock-sync", "leadline.cli.clock_sync", "compute the clock offset of two machines"),
    ),
    "Running processes": (
        Subcommand("attach", "leadline.cli.attach", "profile a running process for a while"),
        Subcommand("detach", "leadline.cli.detach", "stop an attached session early"),
        Subcommand("top", "leadline.cli.top", "show hottest paths, steps and memory of a running program"),
        Subcommand("dump", "leadline.cli.dump", "print what each thread of a running process is doing"),
    ),
    "Convert": (
        Subcommand("import", "leadline.cli.import_", "make a profile from another profiler's trace"),
        Subcommand("export", "leadline.cli.export", "write a profile for another viewer"),
        Subcommand("redact", "leadline.cli.redact", "remove paths, names and arguments, to share a profile"),
        Subcommand("symbolize", "leadline.cli.symbolize", "name the native frames of a profile, in the file itself"),
    ),
    "Tools": (
        Subcommand("mcp", "leadline.cli.mcp", "answer a coding agent over the Model Context Protocol"),
        Subcommand("tools", "leadline.cli.tools", "list event tools and the sources of their events"),
        Subcommand("join", "leadline.cli.join", "combine tool results with the timings of an uninstrumented run"),
        Subcommand("uvm", "leadline.cli.uvm", "plan managed memory for a device that is too small"),
    ),
}

SUBCOMMANDS: tuple[Subcommand, ...] = tuple(one for group in GROUPS.values() for one in group)

FIRST = """\
leadline shows where the time and memory of a deep-learning program go, down to the kernel.

  leadline why train.py            run a program and say why its step is slow
  leadline run train.py            profile a program; writes train.leadline
  leadline report train.leadline   read the profile as text
  leadline view train.leadline     read it in the browser

`leadline --help` lists all subcommands.
"""
"""What `leadline` alone prints."""


def overview() -> str:
    """All groups with one line for each subcommand."""
    width = max(len(one.name) for one in SUBCOMMANDS)
    lines: list[str] = []
    for title, group in GROUPS.items():
        lines += ["", f"{title}:", *(f"  {one.name:<{width}}  {one.help}" for one in group)]
    return "\n".join(lines[1:])
