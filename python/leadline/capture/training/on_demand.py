"""Windows in a job that runs: asked for by a signal, a file in the trace folder, or a request to the loopback address.

A signal opens the window on the rank that it is sent to. A file or a request for all ranks names an absolute step that
lies ahead, so that every rank opens at the same one without a collective: the first rank that sees a file without a
step number writes the number down, and everyone reads it at the end of each step (one `stat`). A rank that is past it
by then puts it further ahead, for all of them.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

from leadline._local_server import TEXT, LocalHandler, LocalServer, is_token
from leadline._output import write_text
from leadline._own_thread import OwnThread
from leadline.capture.messages import say
from leadline.capture.training.config import TrainingConfig
from leadline.capture.training.files import stem_of_rank

REQUEST = "record-now"
"""Name of the file that asks: empty, or JSON such as {"steps": 3} or {"first": 1200, "steps": 3}."""
AGREED = ".record-at"
AHEAD = 5
"""Steps between a request and its window: what ranks may be apart."""
MOST_TRIES = 3
"""How often a window that ranks have passed is put further ahead."""


def moved(asked: Mapping[str, int], ended: int) -> dict[str, int] | None:
    """The request with a step that this rank has still ahead; None for one that names its own step, or has been moved
    too often. What is chosen here counts its `tries`."""
    tries = asked.get("tries", MOST_TRIES)
    if tries >= MOST_TRIES:
        return None
    return {**asked, "first": ended + 1 + AHEAD, "tries": tries + 1}


class Demand:
    """The window that was asked for: [first, first + steps). The loop reads it, other threads and signals set it."""

    def __init__(self) -> None:
        self._asked: tuple[int, int | None] | None = None
        self._from = 0
        self._to = 0
        self.now = -1

    def ask(self, steps: int, first: int | None = None) -> None:
        """Record `steps` steps from `first` on, or from the next one to begin. Safe in a signal handler."""
        self._asked = (max(1, steps), first)

    def settle(self, ended: int) -> None:
        """The step `ended` has ended: what was asked meanwhile begins with the next one."""
        self.now = ended
        asked, self._asked = self._asked, None
        if asked is not None:
            steps, first = asked
            self._from = ended + 1 if first is None else first
            self._to = self._from + steps

    def covers(self, step: int) -> bool:
        return self._from <= step < self._to


class Listener(Protocol):
    """A way to ask."""

    def poll(self, ended: int) -> None:
        """The step `ended` has ended."""

    def close(self) -> None:
        """Nobody can ask any more."""


def listen(config: TrainingConfig, demand: Demand, folder: Path, rank: int) -> Listener | None:
    """Open the configured way to ask; a sentence and None when that is impossible."""
    kind, steps = config.on_demand, config.on_demand_steps
    try:
        if kind == "signal":
            return SignalListener(demand, steps)
        if kind == "file":
            return FileListener(demand, folder, steps)
        if kind == "store":
            from leadline.capture.training.on_store import StoreListener

            return StoreListener(demand, steps)
        return HttpListener(demand, folder, rank, steps)
    except (OSError, ValueError) as error:
        say(f"windows cannot be opened by {kind} here: {error}.")
        return None


class SignalListener:
    """SIGUSR2 opens a window on this rank. A handler that the program had is called too."""

    def __init__(self, demand: Demand, steps: int, number: int = signal.SIGUSR2) -> None:
        self._demand = demand
        self._number = number

        def ask(received: int, frame: Any) -> None:
            demand.ask(steps)
            if callable(self._before):
                self._before(received, frame)

        self._handler = ask
        self._before = signal.getsignal(number)
        if self._before is None:  # set by a C library: Python could neither call it nor put it back
            raise ValueError(f"a library handles {signal.Signals(number).name} already")
        signal.signal(number, ask)  # ValueError outside of the main thread

    def poll(self, ended: int) -> None:
        self._demand.settle(ended)

    def close(self) -> None:
        if signal.getsignal(self._number) is self._handler:
            with contextlib.suppress(ValueError, TypeError):
                signal.signal(self._number, self._before)


class FileListener:
    """A file called `record-now` in the trace folder opens a window on all ranks, at the same step."""

    def __init__(self, demand: Demand, folder: Path, steps: int) -> None:
        self._demand = demand
        self._folder = folder
        self._steps = steps
        self._seen = self._stamp(folder / AGREED)

    def poll(self, ended: int) -> None:
        agreed = self._folder / AGREED
        if self._stamp(self._folder / REQUEST) is not None:
            self._agree(ended)
        stamp = self._stamp(agreed)
        if stamp is not None and stamp != self._seen:
            self._seen = stamp
            self._take(agreed, ended)
        self._demand.settle(ended)

    def close(self) -> None:
        pass

    def _agree(self, ended: int) -> None:
        """One rank alone can rename the request; it writes down the step."""
        mine = self._folder / f".{REQUEST}.{os.getpid()}"
        try:
            (self._folder / REQUEST).rename(mine)
            asked = _numbers(mine.read_text())
            mine.unlink()
            chosen = {} if "first" in asked else {"tries": 0}
            first = asked.get("first", ended + 1 + AHEAD)
            self._write({"first": first, "steps": asked.get("steps", self._steps), **chosen})
        except (OSError, ValueError, RecursionError):
            return  # another rank was faster, or what was written is no request

    def _take(self, agreed: Path, ended: int) -> None:
        try:
            asked = _numbers(agreed.read_text())
        except (OSError, ValueError, RecursionError):
            return
        first = asked.get("first", ended + 1)
        if first <= ended:
            if (later := moved(asked, ended)) is not None:
                with contextlib.suppress(OSError):
                    self._write(later)
                    self._seen = self._stamp(agreed)
                    self._demand.ask(later.get("steps", self._steps), later["first"])
                    return
            say(f"the window asked for at step {first} has passed on this rank, which is at step {ended}.")
            return
        self._demand.ask(asked.get("steps", self._steps), first)

    def _write(self, agreed: Mapping[str, int]) -> None:
        write_text(self._folder / AGREED, json.dumps(agreed))

    @staticmethod
    def _stamp(path: Path) -> tuple[int, int] | None:
        try:
            status = path.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_ino


class HttpListener:
    """POST http://127.0.0.1:PORT/window?steps=3[&first=120][&all=1] with the token of the port file.

    HOST_rankR.port in the trace folder, readable by this user only, holds `PORT TOKEN`.
    """

    def __init__(self, demand: Demand, folder: Path, rank: int, steps: int) -> None:
        self._demand = demand
        self._files = FileListener(demand, folder, steps)
        self._port_file = folder / f"{stem_of_rank(rank)}.port"
        token = secrets.token_hex(16)

        class Handler(LocalHandler):
            def do_POST(self) -> None:
                if not is_token(self.headers.get("X-Leadline-Token", ""), token):
                    return self._answer(403, "the token of the port file is missing")
                try:
                    url = urlsplit(self.path)
                except ValueError:
                    return self._answer(400, "that is not an address")
                if url.path != "/window":
                    return self._answer(404, "there is only /window")
                asked = {name: values[-1] for name, values in parse_qs(url.query).items()}
                if not all(value.isascii() and value.isdigit() and len(value) < 16 for value in asked.values()):
                    return self._answer(400, "steps, first and all are numbers")
                numbers = {name: int(value) for name, value in asked.items()}
                if numbers.pop("all", 0):
                    write_text(folder / REQUEST, json.dumps(numbers))
                else:
                    demand.ask(numbers.get("steps", steps), numbers.get("first"))
                return self._answer(200, "asked")

            def _answer(self, code: int, text: str) -> None:
                self.reply(code, TEXT, f"{text}\n".encode())

        self._server = LocalServer(0, Handler)
        OwnThread(self._server.serve_forever).start()
        self._port_file.unlink(missing_ok=True)  # whoever may read an old one shall not read this one
        private = os.open(self._port_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(private, "w") as file:
            file.write(f"{self._server.server_port} {token}\n")

    def poll(self, ended: int) -> None:
        self._files.poll(ended)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        with contextlib.suppress(OSError):
            self._port_file.unlink()


def _numbers(text: str) -> dict[str, int]:
    """The whole numbers of a JSON object; nothing of anything else."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    if not isinstance(found, dict):
        return {}
    return {str(name): value for name, value in found.items() if type(value) is int and value >= 0}
