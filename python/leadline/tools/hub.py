"""One run of tools: backends on one side, tools on the other, one thread between them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from leadline.tools.backends import Backend, Wants, choose, module_of, parse_backend
from leadline.tools.errors import ToolError
from leadline.tools.loading import find_tools, parse_options
from leadline.tools.ranges import Ranges
from leadline.tools.registry import Launches, Names, Objects, Places
from leadline.tools.runner import Runner
from leadline.tools.tool import Context, Tool

_LOOK_EVERY_S = 0.02


class Hub:
    """Made at the start of a session; nothing runs before `start`."""

    def __init__(
        self,
        native: Any,
        tools: Sequence[str],
        options: Sequence[str] = (),
        backend: str = "auto",
        ranges: Ranges | None = None,
        is_library: Callable[[str], bool] = lambda file: False,
        say: Callable[[str], None] | None = None,
        when_imported: Callable[[str, Callable[[Any], None]], None] | None = None,
        found: Sequence[tuple[type[Tool], str]] = (),
    ) -> None:
        """`found`: the tools, where they have been loaded before. Raises ToolError when a tool, an option or the
        backend makes no sense."""
        self._native = native
        found = found or find_tools(tools)
        self._again = (tools, options, backend, ranges, is_library, say, when_imported, found)
        values = parse_options(options, [tool for tool, _ in found])
        self.context = Context(Names(), Objects(), Launches(), Places(native.path_of, is_library))
        if say is not None:
            self.context.say = say
        if when_imported is not None:
            self.context.when_imported = when_imported
        self._runners = [Runner(tool(self.context, values[tool.name()]), file) for tool, file in found]
        tool_of = {event: runner.name for runner in reversed(self._runners) for event in runner.wanted}
        self._backends_named = choose(backend, tool_of, tool_of)
        given = frozenset().union(*(module_of(name).EVENTS for name in self._backends_named))
        for runner in self._runners:
            runner.take_optional(given)
        tool_of |= {event: runner.name for runner in self._runners for event in runner.wanted if event not in tool_of}
        texts = {tool.name(): tool.gpu for tool, _ in found if tool.gpu}
        if "count" in tool_of and not texts:
            raise ToolError(
                f"The tool {tool_of['count']} wants the event 'count' but has no text in `gpu` that counts."
            )
        self.ranges = ranges or Ranges()
        named = [(event, name) for runner in self._runners for event, names in runner.wanted.items() for name in names]
        columns = {f"{event}.{name}" for event, name in named}
        pages = tuple(dict.fromkeys(runner.page for runner in self._runners))
        source = parse_backend(backend)[1]
        self._wants = Wants(frozenset(tool_of), self.ranges, texts, frozenset(columns), pages, source)
        self._backends: list[Backend] = []
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()

    @property
    def needs_torch(self) -> bool:
        """Whether a backend can only start once torch is imported."""
        return "declared" in self._backends_named

    def start(self) -> None:
        """Start the backends, then the tools; raises ToolError, and then nothing runs."""
        for name in self._backends_named:
            backend: Backend = module_of(name).create(self._native, self.context, self._wants)
            try:
                backend.start()
            except ToolError:
                for started in self._backends:
                    started.stop()
                self._backends.clear()
                raise
            self._backends.append(backend)
        for runner in self._runners:
            runner.start()
        self._thread = threading.Thread(target=self._run, name="leadline tools", daemon=True)
        vars(self._thread)["leadline_own"] = True
        self._thread.start()

    def stop(self) -> list[dict[str, Any]]:
        """End everything; what each tool has found, as JSON objects."""
        for backend in self._backends:
            backend.stop()
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
            self._drain()
        results = []
        for runner in self._runners:
            found = runner.finish()
            found["backends"] = list(self._backends_named)
            found["range"] = str(self.ranges)
            found["lost"] = {
                **self._lost_of(runner),
                **({"rows that the tool was too slow for": runner.lost_rows} if runner.lost_rows else {}),
            }
            found["launches"] = self.context.launches.count
            found["launches_left_out"] = sum(getattr(backend, "skipped", 0) for backend in self._backends)
            if missing := runner.missing():
                found["nothing"] = self._why_nothing(missing, found["launches_left_out"])
            results.append(found)
        return results

    def _lost_of(self, runner: Runner) -> dict[str, int]:
        """What the backends that this tool has events of could not keep or see."""
        lost: dict[str, int] = {}
        for backend in self._backends:
            if any(event in backend.events for event in runner.wanted):
                for what, count in backend.lost().items():
                    lost[what] = lost.get(what, 0) + count
        return lost

    def _why_nothing(self, events: frozenset[str], left_out: int) -> str:
        if left_out:
            return f"{left_out:,} launches were left out, because only {self.ranges} were selected"
        modules = [module_of(name) for name in self._backends_named]
        return " and ".join(one.NOTHING for one in modules if one.EVENTS.intersection(events))

    def in_child(self) -> Hub:
        """In a forked child: none of the threads is here, so this hub is done; one like it, to be started anew."""
        for backend in self._backends:
            backend.stop()
        tools, options, backend_name, ranges, is_library, say, when_imported, found = self._again
        hub = Hub(self._native, tools, options, backend_name, ranges, is_library, say, when_imported, found)
        hub.context.child = True
        return hub

    @property
    def started(self) -> bool:
        """Whether its backends were started."""
        return bool(self._backends)

    def _run(self) -> None:
        waits = next((backend for backend in self._backends if backend.name != "declared"), self._backends[0])
        while not self._stopping.is_set():
            waits.wait(_LOOK_EVERY_S)
            try:
                self._drain()
            except Exception as error:
                self.context.say(f"events for tools could not be read ({type(error).__name__}: {error}).")
                return

    def _drain(self) -> None:
        for backend in self._backends:
            for batch in backend.drain():
                for runner in self._runners:
                    runner.offer(batch)
        for runner in self._runners:
            runner.check()
