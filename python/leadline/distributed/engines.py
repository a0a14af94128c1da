"""Where tasks are done: here, in processes of this machine, or on a Dask cluster; the result is the same.

    (nothing)          here, one by one
    processes[:N]      N processes of this machine
    dask[:N]           a Dask cluster of this machine with N workers
    tcp://HOST:PORT    a Dask scheduler that is running; tls:// where its connections are secured

Eight tasks are one step, so that little is sent: folds of single ranks never leave the process that made them. Workers
that die are replaced and their steps done again. A scheduler that cannot be reached, or is lost on the way, costs a
sentence: the merge is then done here.
"""

from __future__ import annotations

import ipaddress
import os
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from leadline._dataclass import replace
from leadline._version import __version__
from leadline.distributed.heap import give_back_at_once
from leadline.distributed.tasks import Done, Task, do
from leadline.profiles.errors import ProfileFileError
from leadline.profiles.fold.join import SameRankError, join

Engine = Callable[[Sequence[Task], str], Iterator[Done]]
"""Does tasks, in any order, perhaps several of them as one."""

_STEP = 8
"""Tasks of a step, and folds that a cluster joins at once."""
_LOST_WORKERS = 100  # Dask gives a step up after three lost workers; on clusters with time limits that is nothing


class SchedulerError(Exception):
    """A scheduler that cannot be used; `str(error)` is one sentence."""


def engine_for(scheduler: str, *, trusted: bool = False) -> Engine:
    """The engine that `scheduler` names. Raises SchedulerError."""
    kind, _, number = scheduler.partition(":")
    if not scheduler:
        return here
    if kind in ("processes", "dask") and (not number or number.isdigit()):
        workers = int(number) if number and int(number) else os.cpu_count() or 1
        return _in_processes(workers) if kind == "processes" else _on_dask(scheduler, workers)
    if kind not in ("tcp", "tls"):
        raise SchedulerError(
            f"There is no scheduler {scheduler!r}; write processes, dask, tcp://HOST:PORT or tls://..."
        )
    if kind == "tcp" and not trusted and not _is_here(scheduler):
        raise SchedulerError(
            f"{scheduler} is another machine and its connection is not encrypted, so anyone on the network could "
            "run code on both; use tls://, or --trust-scheduler on a network of your own."
        )
    return _on_dask(scheduler, 0)


def here(tasks: Sequence[Task], by: str) -> Iterator[Done]:
    """One by one, in this process."""
    for task in tasks:
        yield do(task, by)


def do_some(tasks: Sequence[Task], by: str) -> Done:
    """Several tasks as one, wherever that is done."""
    give_back_at_once()
    return together([do(task, by) for task in tasks])


def together(several: Sequence[Done]) -> Done:
    """What several steps made, as one."""
    give_back_at_once()
    folds = [done.fold for done in several if done.fold is not None]
    return Done(join(folds) if folds else None, tuple(text for done in several for text in done.left_out))


def _steps(tasks: Sequence[Task]) -> list[Sequence[Task]]:
    return [tasks[begin : begin + _STEP] for begin in range(0, len(tasks), _STEP)]


def _in_processes(workers: int) -> Engine:
    def engine(tasks: Sequence[Task], by: str) -> Iterator[Done]:
        from multiprocessing import get_context

        steps = _steps(tasks)
        if workers < 2 or len(steps) < 2:
            yield from here(tasks, by)
            return
        with ProcessPoolExecutor(min(workers, len(steps)), mp_context=get_context("spawn")) as pool:
            waiting = deque(steps)
            under_way: deque[tuple[Sequence[Task], Future[Done] | None]] = deque()
            while waiting or under_way:
                while waiting and len(under_way) <= workers:  # what is done waits here, so few at a time
                    under_way.append((waiting[0], _submitted(pool, waiting.popleft(), by)))
                step, future = under_way.popleft()
                try:
                    yield do_some(step, by) if future is None else future.result()
                except BrokenProcessPool:  # memory ran out, or somebody killed it: here it goes on
                    yield do_some(step, by)

    return engine


def _submitted(pool: ProcessPoolExecutor, step: Sequence[Task], by: str) -> Future[Done] | None:
    """None where the pool takes no work any more."""
    try:
        return pool.submit(do_some, step, by)
    except BrokenProcessPool:
        return None


def _on_dask(address: str, workers: int) -> Engine:
    def engine(tasks: Sequence[Task], by: str) -> Iterator[Done]:
        try:
            import dask
            import distributed
        except ImportError:
            raise SchedulerError(
                f"{address} needs Dask, which is not installed: pip install 'leadline[cluster]', or use processes."
            ) from None
        try:
            with dask.config.set({"distributed.scheduler.allowed-failures": _LOST_WORKERS}):
                yield _reduced(distributed, address, workers, _with_whole_paths(tasks), by)
        except (SchedulerError, SameRankError, ProfileFileError):
            raise
        except Exception as error:  # Dask has many ways to say that a cluster is gone
            why = str(error).strip().splitlines()
            reason = f"{type(error).__name__}: {why[0]}" if why else type(error).__name__
            print(f"leadline: {address} cannot be used ({reason[:200]}); the merge is done here.", file=sys.stderr)
            yield from here(tasks, by)

    return engine


def _reduced(distributed: Any, address: str, workers: int, tasks: Sequence[Task], by: str) -> Done:
    """All tasks as one, reduced on the cluster eight by eight."""
    import contextlib
    import logging

    with contextlib.ExitStack() as stack:
        if workers:
            cluster = stack.enter_context(
                distributed.LocalCluster(
                    n_workers=workers,
                    threads_per_worker=1,
                    dashboard_address=None,
                    silence_logs=logging.CRITICAL,
                    protocol="tcp",
                    host="127.0.0.1",
                )
            )
            client = stack.enter_context(distributed.Client(cluster))
        else:
            client = stack.enter_context(distributed.Client(address, timeout=10))
        _check_versions(client, address)
        level = [client.submit(do_some, step, by, pure=False, retries=2) for step in _steps(tasks)]
        while len(level) > 1:
            groups = [level[begin : begin + _STEP] for begin in range(0, len(level), _STEP)]
            level = [client.submit(together, group, pure=False, retries=2) for group in groups]
        done: Done = level[0].result()
        return done


def worker_version() -> str:
    """Asked of every worker."""
    return __version__


def _check_versions(client: Any, address: str) -> None:
    found = client.run(worker_version, on_error="ignore")  # one that dies meanwhile is replaced
    for worker, version in sorted(found.items()):
        if version != __version__:
            raise SchedulerError(
                f"The worker {worker} of {address} has leadline {version}, and this is {__version__}; install the same "
                "on both."
            )


def _with_whole_paths(tasks: Sequence[Task]) -> list[Task]:
    """Workers have working directories of their own."""

    def whole(name: str) -> str:
        return str(Path(name).absolute())

    changed = []
    for task in tasks:
        units = []
        for unit in task.units:
            mains = [replace(one, file=whole(one.file)) for one in unit.mains]
            helpers = [replace(one, file=whole(one.file)) for one in unit.helpers]
            units.append(replace(unit, mains=mains, helpers=helpers))
        beside = tuple(replace(one, file=whole(one.file)) for one in task.beside)
        changed.append(Task(tuple(units), beside, whole(task.folded) if task.folded else ""))
    return changed


def _is_here(address: str) -> bool:
    host = urlsplit(address).hostname or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
