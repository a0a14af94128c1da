"""Windows on all ranks at the same step through torch's store, which every rank of a job can reach: no file system that
all of them see is needed.

A request is one key. Who asks writes a step that lies ahead; every rank looks for the key at the end of each step (one
or two small messages to the store's host, none of which waits for anybody), so all of them open at the same step.
"""

from __future__ import annotations

import contextlib
import json
import signal
import sys
from typing import Any

from leadline.capture.messages import say
from leadline.capture.training.on_demand import AHEAD, Demand, SignalListener, moved

KEY = "leadline/window"


class StoreListener:
    """SIGUSR2 on any rank, or `request_window(all_ranks=True)`, opens a window on all ranks. `store`: for tests; by
    default that of torch.distributed, as soon as it is initialised."""

    def __init__(self, demand: Demand, steps: int, store: Any = None) -> None:
        self._demand = demand
        self._store = store
        self._asked: tuple[int, int | None] | None = None
        self._seen = b""
        self._signal: SignalListener | None = None
        asked = Demand()
        asked.ask = self.ask  # type: ignore[method-assign]  # a signal asks for all ranks
        with contextlib.suppress(ValueError):  # outside of the main thread nobody is told of signals
            self._signal = SignalListener(asked, steps, signal.SIGUSR2)

    def ask(self, steps: int, first: int | None = None) -> None:
        """Record `steps` steps on all ranks, from `first` on or from one that all of them still have ahead. Safe in a
        signal handler: the store is told at the end of the step."""
        self._asked = (max(1, steps), first)

    def poll(self, ended: int) -> None:
        store = self._store if self._store is not None else _default_store()
        if store is not None:
            self._store = store
            try:
                self._exchange(store, ended)
            except Exception as error:  # the store goes with its process; training may go on without
                say(f"torch's store does not answer, so it can no longer open windows ({error!r}).")
                self.poll = self._demand.settle  # type: ignore[method-assign]
        self._demand.settle(ended)

    def _exchange(self, store: Any, ended: int) -> None:
        asked, self._asked = self._asked, None
        if asked is not None:
            steps, first = asked
            chosen = {"first": ended + 1 + AHEAD, "tries": 0} if first is None else {"first": first}
            store.set(KEY, json.dumps({"steps": steps, **chosen}))
        if not store.check([KEY]):
            return
        value = store.get(KEY)  # it is there, so this does not wait
        if value == self._seen:
            return
        self._seen = value
        request = json.loads(value)
        first, steps = int(request["first"]), int(request["steps"])
        if first <= ended and (later := moved(request, ended)) is not None:
            self._seen = json.dumps(later).encode()
            store.set(KEY, self._seen.decode())
            first = later["first"]
        if first <= ended:
            say(f"the window asked for at step {first} has passed on this rank, which is at step {ended}.")
            return
        self._demand.ask(steps, first)

    def close(self) -> None:
        if self._signal is not None:
            self._signal.close()


def _default_store() -> Any:
    distributed: Any = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return distributed.distributed_c10d._get_default_store()
