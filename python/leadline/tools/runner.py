"""One tool on a thread of its own: what it raises ends this tool only, and what it is too slow for is counted. So do
holding too much memory and forking the process, whose other threads a child would not have."""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import time
import traceback
from collections.abc import Callable, Iterable
from typing import Any

from leadline.tools.batch import Batch
from leadline.tools.held import held_bytes
from leadline.tools.out import Out
from leadline.tools.sizes import size_text
from leadline.tools.tool import Tool

QUEUE_BATCHES = 512
QUEUE_BYTES = 256 << 20
"""What waits for a slow tool; beyond either its rows are lost, and counted."""
STALL_S = 5.0
"""A single call of a tool's method that takes longer ends the tool."""
_MEMORY_LOOK_S = 0.2
_MEMORY_SHARE = 0.02
"""Looking at what a tool holds is done this often at most, and takes this share of the thread's time at most."""
_END = None


class Runner:
    """`file`: where the tool's code is, to name the line of an exception; empty for those shipped."""

    def __init__(self, tool: Tool, file: str = "", stall_s: float = STALL_S) -> None:
        self.tool = tool
        self.wanted = dict(tool.wanted())
        self.page = int(getattr(tool, "page", 4096) or 4096)
        self.lost_rows = 0
        self.rows = 0
        self.seen: set[str] = set()
        self.problem = ""
        self.out = Out(tool.context)
        self._file = file
        self._stall_s = stall_s
        self._queue: queue.Queue[Batch | None] = queue.Queue(QUEUE_BATCHES)
        self._offered_bytes = 0  # written by who offers
        self._taken_bytes = 0  # written by the tool's thread
        self._process = os.getpid()
        self._not_its_own = (*vars(tool), "stopped")
        self._look_again = 0.0
        self._ending = False
        self._since: float | None = None
        self._thread = threading.Thread(target=self._run, name=f"leadline tool {tool.name()}", daemon=True)
        self._done = threading.Event()

    @property
    def name(self) -> str:
        return self.tool.name()

    def take_optional(self, given: Iterable[str]) -> None:
        """Of the events that the tool can do without, take those that are given."""
        self.tool.taken = frozenset(given).intersection(self.tool.optional)
        self.wanted |= {event: self.tool.optional[event] for event in self.tool.taken}

    @property
    def alive(self) -> bool:
        """Whether it still wants events."""
        return not self.problem and not self.tool.stopped

    def start(self) -> None:
        """Start the tool's thread; `Tool.start` is the first that runs there."""
        vars(self._thread).update(leadline_own=True, leadline_runner=self)
        self._thread.start()

    def offer(self, batch: Batch) -> None:
        """Hand over rows without waiting; where the tool is too far behind they are lost and counted."""
        if not self.alive or batch.event.name not in self.wanted or not len(batch):
            return
        try:
            if self._offered_bytes - self._taken_bytes > QUEUE_BYTES:
                raise queue.Full
            self._queue.put_nowait(batch)
            self._offered_bytes += batch.nbytes
        except queue.Full:
            self.lost_rows += len(batch)
        self.check()

    def check(self) -> None:
        """End the tool if it is stuck in one call."""
        since = self._since
        if since is not None and not self.problem and time.monotonic() - since > self._stall_s:
            self._fail(f"one call took longer than {self._stall_s:g} s")

    def finish(self) -> dict[str, Any]:
        """Wait until the tool has seen everything or is stuck, and answer with what it found."""
        self._ending = True
        while not self._done.is_set() and not self.problem:
            try:
                self._queue.put(_END, timeout=0.05)
                break
            except queue.Full:
                self.check()
        while not self._done.wait(0.05) and not self.problem:
            self.check()
        return self.result()

    def missing(self) -> frozenset[str]:
        """Events that never came, where the tool has found nothing for want of them."""
        found = self.problem or (self.rows and (self.out.outputs or "found" in vars(self.tool)))
        return frozenset() if found else frozenset(self.tool.wanted()) - self.seen

    def result(self) -> dict[str, Any]:
        """As it goes into the profile."""
        found: dict[str, Any] = {
            "tool": self.name,
            "doc": (self.tool.__doc__ or "").strip().split("\n")[0] if type(self.tool).__doc__ else "",
            "outputs": list(self.out.outputs),
            "rows": self.rows,
            "lost_rows": self.lost_rows,
            "problem": self.problem,
            "options": {name: getattr(self.tool, name) for name in self.tool.options()},
        }
        first = self.tool.__dict__.get("found")
        if first is not None:
            found["first"] = first["text"]
        return found

    def _run(self) -> None:
        try:
            self._call(self.tool.start)
            while not self.problem:
                batch = self._queue.get()
                if batch is _END:
                    break
                if self.tool.stopped:
                    continue
                self.rows += len(batch)
                self.seen.add(batch.event.name)
                self._call(getattr(self.tool, batch.event.name), self._prepared(batch))
                self._taken_bytes += batch.nbytes
                del batch  # so that what is counted next is what the tool holds
                self._look_at_memory()
            if not self.problem:
                self._call(self.tool.finish, self.out)
        finally:
            self._done.set()

    def _prepared(self, batch: Batch) -> Batch:
        if batch.event.name != "touched" or "pages" in batch:
            return batch
        raw = batch.columns()
        if f"pages@{self.page}" in raw:  # counted, not implied
            return batch.with_column("pages", raw[f"pages@{self.page}"])
        extent = -(-raw["end"] // self.page) - raw["first"] // self.page
        pages = extent.clip(0, raw["elements"]) if "elements" in raw else extent
        return batch.with_column("pages", pages)

    def _call(self, method: Callable[..., Any], *arguments: Any) -> None:
        self._since = time.monotonic()
        try:
            method(*arguments)
        except BaseException as error:
            self._fail(f"{type(error).__name__}: {error}{self._where(error)}")
        finally:
            self._since = None
            if os.getpid() != self._process:  # the tool has forked, and nothing of the program is here
                os._exit(0)

    def forked(self) -> None:
        """The tool's thread has forked the process."""
        self._fail("it forked the process, which threads of others do not survive; start programs with subprocess")

    def _look_at_memory(self) -> None:
        before = time.monotonic()
        if before < self._look_again or self.problem:
            return
        own = {name: value for name, value in vars(self.tool).items() if name not in self._not_its_own}
        shared = [vars(self.tool).get(name) for name in self._not_its_own]
        with contextlib.suppress(RuntimeError):  # threads of the tool's own change what is looked at
            held = held_bytes([*own.values(), self.out.outputs], shared)
            if held > self.tool.most_bytes:
                limit = size_text(self.tool.most_bytes)
                self._fail(f"it held about {size_text(held)}, more than the {limit} of its most_bytes")
                for name in own:
                    del vars(self.tool)[name]
        now = time.monotonic()
        self._look_again = now + max(_MEMORY_LOOK_S, (now - before) / _MEMORY_SHARE)

    def _where(self, error: BaseException) -> str:
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if frame.filename == self._file]
        return f" ({own[-1].filename.rpartition('/')[2]}:{own[-1].lineno})" if own else ""

    def _fail(self, why: str) -> None:
        if not self.problem:
            self.problem = why
            self.tool.context.say(f"the tool {self.name} was stopped: {why}; the program and other tools continue.")


def _after_fork_in_parent() -> None:
    runner = vars(threading.current_thread()).get("leadline_runner")
    if runner is not None:
        runner.forked()


os.register_at_fork(after_in_parent=_after_fork_in_parent)
