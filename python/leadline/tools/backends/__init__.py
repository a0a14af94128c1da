"""Where events come from, one file each. A backend says which events it can give and whether it would work here."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from leadline.tools.batch import Batch
from leadline.tools.errors import ToolError
from leadline.tools.ranges import Ranges
from leadline.tools.tool import Context


@dataclass(frozen=True)
class Wants:
    """What the tools of a run ask of the backends."""

    events: frozenset[str]
    ranges: Ranges
    gpu: Mapping[str, str]
    """Text to compile, by the tool's name."""
    columns: frozenset[str] = frozenset()
    """EVENT.COLUMN that some tool names."""
    pages: tuple[int, ...] = (4096,)
    """Sizes of the pages that tools count in; a backend of real accesses gives a column `pages@SIZE` for each."""
    source: str = ""
    """The file that the backend reads, where it was named with one (`replay:events.npz`)."""

    def needs(self, event: str, column: str) -> bool:
        """Whether a tool names a column that costs something to fill."""
        return f"{event}.{column}" in self.columns


class Backend(Protocol):
    """One source. `name` as `--backend` calls it; `events` it can give; `traits` in words, for people."""

    name: str
    events: frozenset[str]
    traits: tuple[str, ...]

    def start(self) -> None:
        """Begin; raises ToolError."""

    def drain(self) -> Iterable[Batch]:
        """What has come since the last call. Called on one thread only."""

    def wait(self, seconds: float) -> None:
        """Until there is a lot to drain, or the time is over."""

    def stop(self) -> None:
        """No event begins after it; what has come can still be drained."""

    def lost(self) -> dict[str, int]:
        """What could not be kept or seen, by the reason in words."""


BACKENDS: dict[str, str] = {
    "monitor": "leadline.tools.backends.monitor",
    "declared": "leadline.tools.backends.declared",
    "inductor-cpu": "leadline.tools.backends.inductor_cpu",
    "triton-interpreter": "leadline.tools.backends.triton_interpreter",
    "pages": "leadline.tools.backends.pages",
    "kernels": "leadline.tools.backends.kernels",
    "sanitizer": "leadline.tools.backends.sanitizer",
    "replay": "leadline.tools.backends.replay",
    "fake": "leadline.tools.backends.fake",
}
"""Modules by name, with `EVENTS`, `TRAITS`, `DOC`, `NOTHING` (why a run had no such events, in words), `probe() -> str`
(why not, or empty) and `create(...)`."""
_AUTO = ("monitor", "declared")
"""Asked in this order without `--backend`; the others change how the program runs, so they are taken by name only."""
_ALIASES = {"inductor": "inductor-cpu", "triton": "triton-interpreter"}
_WITH_FILE = ("replay", "fake")
_WITHOUT_OTHERS = ("sanitizer", "kernels")
"""Each sees every launch itself and numbers them: what another backend tells would come twice, by other numbers."""


def parse_backend(asked: str) -> tuple[tuple[str, ...], str]:
    """`NAME`, `NAME+NAME` or `NAME:FILE` as names and file; raises ToolError."""
    words, colon, file = asked.partition(":")
    names = tuple(dict.fromkeys(_ALIASES.get(name, name) for name in words.split("+")))
    for name in names:
        if name not in BACKENDS and names != ("auto",):
            raise ToolError(f"There is no backend {name!r}; there are auto, {', '.join(BACKENDS)}.")
        if name in _WITH_FILE and len(names) > 1:
            raise ToolError(f"The backend {name} reads a whole run from a file; it goes with no other.")
        if name in _WITHOUT_OTHERS and set(names) - {name, "monitor"}:
            raise ToolError(
                f"The backend {name} sees every launch itself, so another would report it twice; name it alone."
            )
        if name in _WITH_FILE and not file:
            raise ToolError(f"The backend {name} reads events from a file; write --backend {name}:FILE.")
        if name == "pages" and "declared" in names:
            raise ToolError("The backends declared and pages both report every operator; name one of them.")
        if colon and name not in _WITH_FILE:
            raise ToolError(f"The backend {name} reads no file; write --backend {name}.")
    return names, file


def choose(asked: str, events: Iterable[str], tool_of: Mapping[str, str]) -> list[str]:
    """The backends that together give these events; raises ToolError for an event that none gives.

    `asked`: auto, or those to take what they can give from, all of them; events of the program itself (operators,
    memory, regions) come from the monitor, but for a recording, which has its own. `tool_of`: event to a tool that
    wants it.
    """
    names, _ = parse_backend(asked)
    alone = names[0] in _WITH_FILE
    chosen: list[str] = []
    for event in events:
        if not alone and event in module_of("monitor").EVENTS:
            chosen.append("monitor")
            continue
        giving = [one for one in (_AUTO if names == ("auto",) else names) if event in module_of(one).EVENTS]
        if not giving:
            raise ToolError(_nobody_gives(event, "+".join(names), tool_of.get(event, "")))
        chosen += giving
    chosen = list(dict.fromkeys(chosen))
    for one in chosen:
        if why := module_of(one).probe():
            raise ToolError(f"The backend {one} does not work here: {why}.")
    return chosen


def module_of(name: str) -> Any:
    """The module of a backend."""
    return importlib.import_module(BACKENDS[name])


def _nobody_gives(event: str, asked: str, tool: str) -> str:
    others = [
        f"--backend {name} ({module_of(name).DOC})"
        for name in BACKENDS
        if name not in _WITH_FILE and event in module_of(name).EVENTS
    ]
    remedy = f"give it {' or '.join(others)}" if others else "a recording can have it (--backend replay:FILE)"
    who = f"The tool {tool}" if tool else "A tool"
    by = "no backend gives by itself" if asked == "auto" else f"the backend {asked} does not give"
    return f"{who} wants the event {event!r}, which {by}; {remedy}."


__all__ = ["BACKENDS", "Backend", "Context", "Wants", "choose", "module_of", "parse_backend"]
