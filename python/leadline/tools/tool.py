"""What a tool is: a class that names the events it wants and has a method for each.

    class KernelCount(Tool):
        events = {"launch": ["kernel"]}
        def start(self): self.n = self.counter()
        def launch(self, b): self.n.add(b["kernel"])
        def finish(self, out): out.table("kernels", self.n, sort="-count", show="stack of first")

The methods run on a thread of the tool's own, never on the program's; an exception ends this tool only.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from leadline.tools.errors import ToolError
from leadline.tools.events import EVENTS
from leadline.tools.sizes import parse_bytes
from leadline.tools.sums import Counter, Sums

if TYPE_CHECKING:
    from leadline.tools.batch import Batch
    from leadline.tools.out import Out
    from leadline.tools.registry import Launches, Names, Objects, Places


def _parse_bool(text: str) -> bool:
    if text.lower() in ("1", "true", "yes", "on"):
        return True
    if text.lower() in ("0", "false", "no", "off"):
        return False
    raise ValueError(f"{text!r} is neither yes nor no")


_PARSERS: dict[Any, Callable[[str], Any]] = {bytes: parse_bytes, bool: _parse_bool, int: int, float: float, str: str}


class option:
    """An option of a tool, set with `--tool-option TOOL.NAME=VALUE`: `page = option(bytes, "64KiB", "what it means")`.

    `kind`: bytes (a size, becomes an int), int, float, bool or str. Raises ToolError for a default that is none.
    """

    def __init__(self, kind: type, default: object, doc: str = "") -> None:
        if kind not in _PARSERS:
            raise ToolError(f"An option can be bytes, int, float, bool or str, not {kind!r}.")
        self.kind = kind
        self.default = default
        self.doc = doc
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, tool: Any, owner: type | None = None) -> Any:
        return self if tool is None else tool.__dict__.get(self.name, self.parse(self.default))

    def parse(self, value: object) -> Any:
        """A value of the option's kind; raises ValueError."""
        return _PARSERS[self.kind](value) if isinstance(value, str) else value


def _now_or_never(module: str, call: Callable[[Any], None]) -> None:
    if module in sys.modules:
        call(sys.modules[module])


class Context:
    """What the run gives to its tools: the registries behind the numbers in events, and where to speak."""

    def __init__(self, names: Names, objects: Objects, launches: Launches, places: Places) -> None:
        self.names = names
        self.objects = objects
        self.launches = launches
        self.places = places
        self.numbers = itertools.count()
        """Numbers of launches, for all backends of a run."""
        self.when_imported: Callable[[str, Callable[[Any], None]], None] = _now_or_never
        """Calls back when the program has imported a module, at once where it has already."""
        self.child = False
        """Whether the process was forked from one that has tools."""
        self.say: Callable[[str], None] = lambda sentence: print(f"leadline: {sentence}", file=sys.stderr)


class Tool:
    """Base of every tool. Class attributes: `events`, event to columns wanted; `optional`, the same of what it takes
    where the backend gives it; `gpu`, text that is compiled for where the data is (see docs/how-to/tools.md)."""

    events: ClassVar[Mapping[str, Sequence[str]]] = {}
    optional: ClassVar[Mapping[str, Sequence[str]]] = {}
    gpu: ClassVar[str] = ""
    tool_name: ClassVar[str] = ""
    most_bytes: ClassVar[int] = 1 << 30
    """Of memory that the tool may hold; with more it is ended."""

    objects: Objects
    launches: Launches
    names: Names
    places: Places

    def __init__(self, context: Context, values: Mapping[str, str] | None = None) -> None:
        self.context = context
        self.objects = context.objects
        self.launches = context.launches
        self.names = context.names
        self.places = context.places
        self.stopped = False
        self.taken: frozenset[str] = frozenset()
        for key, text in (values or {}).items():
            known = self.options().get(key)
            if known is None:
                have = ", ".join(self.options()) or "none"
                raise ToolError(f"The tool {self.name()} has no option {key!r}; it has {have}.")
            try:
                self.__dict__[key] = known.parse(text)
            except ValueError as error:
                raise ToolError(f"The option {self.name()}.{key} cannot be read: {error}.") from None

    @classmethod
    def name(cls) -> str:
        """What `leadline report --tool` calls it: its `tool_name`, or the name of the class."""
        return cls.__dict__.get("tool_name") or cls.__name__

    @classmethod
    def options(cls) -> dict[str, option]:
        """The options by name, those of base classes included."""
        found: dict[str, option] = {}
        for base in reversed(cls.__mro__):
            found.update({name: value for name, value in vars(base).items() if isinstance(value, option)})
        return found

    @classmethod
    def wanted(cls) -> Mapping[str, Sequence[str]]:
        """`events`, checked; raises ToolError for an event or column that does not exist."""
        for event, columns in [*cls.events.items(), *cls.optional.items()]:
            if event not in EVENTS:
                raise ToolError(
                    f"The tool {cls.name()} wants the event {event!r}, which does not exist; "
                    f"there are {', '.join(EVENTS)}."
                )
            if not callable(getattr(cls, event, None)):
                raise ToolError(f"The tool {cls.name()} wants the event {event!r} but has no method of that name.")
            for column in columns:
                if EVENTS[event].column(column) is None:
                    have = ", ".join(one.name for one in EVENTS[event].columns)
                    raise ToolError(
                        f"The tool {cls.name()} wants {event}.{column}, which does not exist; the event has {have}."
                    )
        return cls.events

    # ---------------------------------------------------------------- for the author to fill in

    def start(self) -> None:
        """Called once before the first event."""

    def finish(self, out: Out) -> None:
        """Called once after the last event: say what was found."""

    # ---------------------------------------------------------------- for the author to use

    def counter(self) -> Counter:
        """A new count by number."""
        return Counter()

    def sums(self, *fields: str) -> Sums:
        """New sums by number, of these fields."""
        return Sums(*fields)

    def first(self, batch: Batch, *, stop: bool = False) -> None:
        """Say where the first row of this batch came from, once, as a sentence on the terminal and in the results:
        Python line, module, operator, kernel, object. `stop`: the tool wants no more events."""
        if self.__dict__.get("found") is None and len(batch):
            self.found = self._describe(batch)
            self.context.say(f"{self.name()}: first at {self.found['text']}.")
        if stop:
            self.stopped = True

    def _describe(self, batch: Batch) -> dict[str, Any]:
        place = int(batch["place"][0]) if "place" in batch else 0
        launch = int(batch["launch"][0]) if "launch" in batch else -1
        parts = [self.places.line(place), self.places.module(place), self.places.operator(place)]
        kernel = self.names[self.launches.kernel[launch]] if launch >= 0 else ""
        if kernel and kernel.partition(".")[0] != parts[-1]:
            parts.append(kernel)
        text = " → ".join(part for part in parts if part) or "an unknown place"
        if "object" in batch:
            text += f", in {self.objects.label(int(batch['object'][0]))}"
        return {"text": text, "place": place, "launch": launch}
