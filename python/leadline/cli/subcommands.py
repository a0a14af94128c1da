"""The subcommands of `leadline`, in the groups and the order of `leadline --help`.

What is one question is one subcommand: another form of its answer is a mode of it (`timeline --stats`), with options
of its own. Names of earlier versions stay as aliases that `--help` does not list.

Constraint: the standard library only, since `leadline run` starts the user's program through it.
"""

from __future__ import annotations

from collections.abc import Sequence

from leadline._dataclass import dataclass


@dataclass(frozen=True)
class Mode:
    """Another form of a subcommand: a word (`--stats`, or `uvm` after `tool`), its module, what it does."""

    word: str
    module: str
    help: str


@dataclass(frozen=True)
class Subcommand:
    """A subcommand; its module is imported when it is used. `modes`: see `Mode`."""

    name: str
    module: str
    help: str
    modes: tuple[Mode, ...] = ()

    def mode(self, words: Sequence[str]) -> Mode | None:
        """The mode that `words`, the arguments, ask for."""
        ours = words[: words.index("--")] if "--" in words else words
        for one in self.modes:
            if one.word in (ours if one.word.startswith("-") else ours[:1]):
                return one
        return None


GROUPS: dict[str, tuple[Subcommand, ...]] = {
    "Record": (
        Subcommand("run", "leadline.cli.run", "run a program and profile it and its children"),
        Subcommand("demo", "leadline.cli.demo", "profile the bundled training program"),
        Subcommand("recover", "leadline.cli.recover", "make a profile from the files of a killed run"),
        Subcommand("doctor", "leadline.cli.doctor", "check what can be measured on this machine"),
    ),
    "Read": (
        Subcommand(
            "report",
            "leadline.cli.report",
            "print a profile as text, Markdown, JSON or one HTML file",
            (
                Mode("--meta", "leadline.cli.info", "print what a profile holds: tables, sizes, processes"),
                Mode("--training", "leadline.cli.summary", "write a training run's page for the experiment log"),
            ),
        ),
        Subcommand("view", "leadline.cli.view", "open a profile in the browser or, with --tui, in this terminal"),
        Subcommand(
            "query",
            "leadline.cli.query",
            "list call paths by a condition, grouped and sorted",
            (Mode("--sql", "leadline.cli.sql", "query a profile in SQL"),),
        ),
        Subcommand(
            "timeline",
            "leadline.cli.timeline",
            "show each thread's phases and waits in the trace window",
            (Mode("--stats", "leadline.cli.stats", "summarise durations and latencies in the trace window"),),
        ),
    ),
    "Explain": (
        Subcommand("why", "leadline.cli.why", "say why the step is slow: of a script, a PID, a profile or a trace"),
        Subcommand("analyze", "leadline.cli.analyze", "name the problems of a profile, with evidence, fix and gain"),
        Subcommand("whatif", "leadline.cli.whatif", "predict what a change would gain, from one trace window"),
    ),
    "Try": (
        Subcommand("try", "leadline.cli.try_", "measure fixes on your program, in alternating runs"),
        Subcommand("prove", "leadline.cli.prove", "say whether your change is faster and still computes the same"),
        Subcommand("ledger", "leadline.cli.ledger", "show how accurate earlier predictions were"),
    ),
    "Compare": (
        Subcommand("diff", "leadline.cli.diff", "compare profiles from before and after a change"),
        Subcommand("gate", "leadline.cli.gate", "fail when profiles are slower or larger than a baseline"),
    ),
    "Many ranks": (
        Subcommand("merge", "leadline.cli.merge", "merge the profiles of a job's ranks into one"),
        Subcommand("watch", "leadline.cli.watch", "show which ranks of a running job are late or silent"),
        Subcommand("clock-sync", "leadline.cli.clock_sync", "compute the clock offset of two machines"),
    ),
    "Running processes": (
        Subcommand(
            "attach",
            "leadline.cli.attach",
            "profile a running process for a while",
            (Mode("--stop", "leadline.cli.detach", "stop an attached measurement early"),),
        ),
        Subcommand("top", "leadline.cli.top", "show hottest paths, steps and memory of a running program"),
        Subcommand("dump", "leadline.cli.dump", "print what each thread of a running process does"),
    ),
    "Convert": (
        Subcommand("import", "leadline.cli.import_", "make a profile from another profiler's trace"),
        Subcommand("export", "leadline.cli.export", "write a profile for another viewer"),
        Subcommand("redact", "leadline.cli.redact", "remove paths, names and arguments, to share a profile"),
    ),
    "Tools": (
        Subcommand("mcp", "leadline.cli.mcp", "answer a coding agent over the Model Context Protocol"),
        Subcommand("skill", "leadline.cli.skill", "print a guide of one page for a coding agent"),
        Subcommand(
            "tool",
            "leadline.cli.tools",
            "list event tools and the sources of their events, or explain one",
            (
                Mode("join", "leadline.cli.join", "combine tool results with the timings of an uninstrumented run"),
                Mode("uvm", "leadline.cli.uvm", "plan managed memory for a device that is too small"),
            ),
        ),
    ),
}

ALIASES: dict[str, tuple[str, ...]] = {
    "sql": ("query", "--sql"),
    "info": ("report", "--meta"),
    "summary": ("report", "--training"),
    "stats": ("timeline", "--stats"),
    "detach": ("attach", "--stop"),
    "tools": ("tool",),
    "join": ("tool", "join"),
    "uvm": ("tool", "uvm"),
}
"""What earlier versions called it: the words that it is today."""

HIDDEN: tuple[Subcommand, ...] = (
    Subcommand("completion", "leadline.cli.completion", "print a script that completes words in bash, zsh or fish"),
    Subcommand("symbolize", "leadline.cli.symbolize", "name the native frames of a profile made on another machine"),
)
"""What is done without asking, or once: `--help` leaves them out."""

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
        lines += ["", f"{title}:"]
        for one in group:
            lines.append(f"  {one.name:<{width}}  {one.help}")
            lines += [f"  {'':<{width}}    {mode.word}: {mode.help}" for mode in one.modes]
    return "\n".join(lines[1:])
