"""Ranks of a large job read and built by helper processes, as many as there are cores: NumPy keeps one busy.

A helper is this Python with the same path for modules and nothing of the user's program. Requests and answers are
pickles; arrays follow them as they are.
"""

from __future__ import annotations

import json
import os
import pickle
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from leadline.trace.source import sources
from leadline.trace.tables import TraceError
from leadline.trace.window import read_window
from leadline.whatif.build.job import Drafted, Found, LocalRank, Rank
from leadline.whatif.columns import ColumnTable
from leadline.whatif.graph import Graph

_START = (
    "import json, sys\n"
    "sys.path[:] = json.loads(sys.argv[1])\n"
    "from leadline.whatif.build.helpers import serve\n"
    "serve()\n"
)
_LENGTH = struct.Struct("<q")

Place = tuple[str, int]
"""A path as it was given, and the number of the trace in it."""


class _Helper:
    """One process, which answers one request at a time."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, json.dumps(sys.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._turn = threading.Lock()

    def ask(self, *request: Any) -> Any:
        """The answer; what the helper raised is raised here."""
        assert self._process.stdin is not None and self._process.stdout is not None
        with self._turn:
            try:
                _send(self._process.stdin, request)
                answer = _receive(self._process.stdout)
            except (EOFError, BrokenPipeError) as error:
                raise TraceError(
                    "a process that reads the ranks ended early (is there enough memory?); give fewer ranks or steps"
                ) from error
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


class HelpedRank:
    """A rank that a helper holds."""

    def __init__(self, helper: _Helper, number: int, found: Found) -> None:
        self._helper, self._number, self._found = helper, number, found

    def found(self) -> Found:
        return self._found

    def draft(self, rank: int, note: str, steps: Collection[int]) -> Drafted:
        drafted: Drafted = self._helper.ask("draft", self._number, rank, note, steps)
        return drafted

    def place(self, zero_ns: int, drift: float) -> Graph:
        (tasks, edges, waits), *rest = self._helper.ask("place", self._number, zero_ns, drift)
        return Graph(ColumnTable(tasks), ColumnTable(edges), ColumnTable(waits), *rest)


@contextmanager
def helped(
    places: Sequence[Place], window: tuple[int, int] | None, count: int
) -> Iterator[tuple[list[Rank], Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]]]:
    """The ranks behind some places, read by `count` helpers, and what goes through them side by side."""
    with ExitStack() as stack:
        helpers = []
        for _ in range(count):
            helpers.append(_Helper())
            stack.callback(helpers[-1].close)
        pool = stack.enter_context(ThreadPoolExecutor(count))

        def read(number: int) -> Rank:
            helper = helpers[number % count]
            return HelpedRank(helper, number, helper.ask("read", number, places[number], window))

        yield list(pool.map(read, range(len(places)))), pool.map


def serve() -> None:
    """Answers requests from standard input until it ends."""
    requests = sys.stdin.buffer
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what anything prints goes elsewhere
    ranks: dict[int, LocalRank] = {}
    while True:
        try:
            what, number, *rest = _receive(requests)
        except EOFError:
            return
        try:
            answer = _answer(ranks, what, number, *rest)
        except Exception as error:
            answer = error
        _send(answers, answer)


def _answer(ranks: dict[int, LocalRank], what: str, number: int, *rest: Any) -> Any:
    if what == "read":
        (path, at), window = rest
        trace, steps = read_window(sources(Path(path))[at], window)
        ranks[number] = LocalRank(trace, steps)
        return ranks[number].found()
    if what == "draft":
        return ranks[number].draft(*rest)
    graph = ranks.pop(number).place(*rest)
    tables = [table.columns() for table in (graph.tasks, graph.edges, graph.waits)]
    return tables, graph.lanes, graph.names, graph.layers, graph.details, graph.info


def _send(stream: IO[bytes], value: Any) -> None:
    """A pickle, and behind it the arrays that it holds, each with its length."""
    buffers: list[pickle.PickleBuffer] = []
    first = memoryview(pickle.dumps(value, protocol=5, buffer_callback=buffers.append))
    parts = [first, *(item.raw() for item in buffers)]
    stream.write(_LENGTH.pack(len(parts)))
    for part in parts:
        stream.write(_LENGTH.pack(len(part)))
        stream.write(part)
    stream.flush()


def _receive(stream: IO[bytes]) -> Any:
    """Raises EOFError where nothing follows."""
    count = _LENGTH.unpack(_exactly(stream, _LENGTH.size))[0]
    first, *buffers = [_exactly(stream, _LENGTH.unpack(_exactly(stream, _LENGTH.size))[0]) for _ in range(count)]
    return pickle.loads(first, buffers=buffers)


def _exactly(stream: IO[bytes], size: int) -> memoryview:
    view = memoryview(np.empty(size, dtype=np.uint8))  # type: ignore[arg-type]
    at = 0
    while at < size:
        read = stream.readinto(view[at:])  # type: ignore[attr-defined]
        if not read:
            raise EOFError
        at += read
    return view
