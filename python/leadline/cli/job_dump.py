"""`leadline dump --job DIR`: all ranks of a job side by side, and which of them did not arrive.

What is read: the flight recorder and the last segment that every rank has in its part directory, and, of ranks on this
machine that live, the memory of the process. Nothing is sent to any of them.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from leadline._dataclass import dataclass, field
from leadline._package import PackageError, ProcessPart, read_part
from leadline.analysis.hang import GroupState, Verdict, diagnose
from leadline.analysis.ranks import ranges
from leadline.attach.dump import ThreadDump, dump
from leadline.attach.target import AttachError
from leadline.capture.identity import Life, ProcessIdentity
from leadline.profiles.errors import ProfileFileError
from leadline.profiles.flight import Collective, Flight, read_flight
from leadline.profiles.thread_states import open_places
from leadline.report.source import visible
from leadline.units import duration

_PARTS = "*.leadline.part"
_OWN = str(Path(__file__).parents[1] / "capture")
"""Wrappers of ours on the way into a collective say nothing."""
STILL_S = 2.0
"""A job in which nothing begins for so long is said to stand."""


@dataclass(frozen=True)
class RankNow:
    """A process of a job. `life`: as far as can be seen from this machine; `places`: by thread number, what it was
    inside of when it wrote last; `problem`: why there are no stacks; `job`, `restart`: as the launcher calls them."""

    rank: int
    host: str
    pid: int
    life: Life
    ended: bool
    world_size: int
    flight: Flight | None
    places: dict[int, str]
    threads: tuple[ThreadDump, ...] = ()
    problem: str = ""
    job: str = ""
    restart: int = 0
    started_ns: int = 0
    written_ns: int = 0
    attached: bool = False

    @property
    def begun(self) -> int:
        return self.flight.begun if self.flight is not None else 0

    def states(self) -> list[GroupState]:
        """In every group whose collectives it has begun."""
        if self.flight is None:
            return []
        made = []
        for group in self.flight.groups:
            mine = [one for one in self.flight.collectives if one.group == group]
            last = mine[-1] if mine else None
            made.append(
                GroupState(
                    self.rank,
                    (group.name, group.description, group.size),
                    group.begun,
                    last.name if last else "a collective",
                    last.elements if last else -1,
                    not self.ended and (last is None or not last.done_ns),
                    group.since,
                    group.sure,
                )
            )
        return made


@dataclass(frozen=True)
class JobNow:
    """All ranks by number. `moved`: whether a collective began between two looks; None where nobody lives to tell."""

    ranks: tuple[RankNow, ...]
    moved: bool | None
    verdict: Verdict
    silent: tuple[int, ...] = field(default=())
    other_jobs: tuple[str, ...] = field(default=())

    def as_object(self) -> dict[str, Any]:
        """With stable keys, for JSON."""
        return {
            "moved": self.moved,
            "roots": list(self.verdict.roots),
            "sentences": list(self.verdict.sentences),
            "silent": list(self.silent),
            "other_jobs": list(self.other_jobs),
            "ranks": [_rank_object(one) for one in self.ranks],
        }


def inspect_job(folders: Iterable[str], wait_s: float = STILL_S, of: int = 0, deep: bool = True) -> JobNow:
    """Of several jobs that of the process `of`, else the one that runs, or began last; `deep`: also in folders below.
    Raises ProfileFileError where no process of a job is found."""
    parts = [part for folder in folders for part in _parts(Path(folder), deep)]
    first, other_jobs = _of_one_job(_processes(parts), of)
    if not first:
        raise ProfileFileError(
            "No rank of a job that runs, or was killed, was found there; give the folder of its profiles."
        )
    living = [one for one in first if one.life is not Life.GONE and not one.ended]
    moved = None
    if living:
        time.sleep(wait_s)
        now_there, _ = _of_one_job(_processes(parts), of)
        again = {(one.rank, one.pid, one.host): one for one in now_there}
        moved = any((now := again.get((one.rank, one.pid, one.host))) and now.begun != one.begun for one in living)
        first = list(again.values()) or first
    first = _one_each(first)
    ranks = tuple(sorted((_with_stacks(one) for one in first), key=lambda one: (one.rank < 0, one.rank, one.pid)))
    known = {one.rank for one in ranks if one.rank >= 0}
    size = max((one.world_size for one in ranks), default=0)
    everyone = known | set(range(size))
    silent = tuple(sorted(everyone - known))
    states = [] if moved else [one for rank in ranks if rank.rank >= 0 for one in rank.states()]
    attached = [one.rank for one in ranks if one.attached]
    return JobNow(ranks, moved, diagnose(states, everyone, silent, attached), silent, other_jobs)


def job_text(job: JobNow) -> str:
    """The verdict first, then ranks that stand at the same line together."""
    lines = [_headline(job), *job.verdict.sentences]
    if job.silent:
        lines.append(f"Ranks {ranges(job.silent)} left no file here.")
    if job.other_jobs:
        lines.append(f"The folder also has ranks of other jobs, which are left out: {', '.join(job.other_jobs)}.")
    if not job.verdict.sentences and job.moved is False:
        lines.append("The recorders show no rank that waits for another in a collective.")
    lines.append("")
    for rank in job.ranks:
        lines.append(_rank_line(rank))
    by_stack: dict[tuple[Any, ...], list[tuple[RankNow, ThreadDump]]] = {}
    for rank in job.ranks:
        for thread in rank.threads:
            if thread.main or thread.state == "running":
                by_stack.setdefault((thread.main, thread.state, thread.frames), []).append((rank, thread))
    for (main, state, frames), there in by_stack.items():
        who = ranges([rank.rank for rank, _ in there])
        name = "main thread" if main else f"thread {there[0][1].name}"
        lines += ["", f"{'rank' if len(there) == 1 else 'ranks'} {who}, {name}: {state}"]
        inside = sorted({place for rank, thread in there if (place := rank.places.get(thread.tid))})
        lines += [f"    inside {place}" for place in inside[:3]]
        shown = [one for one in frames if not one.file.startswith(_OWN)]
        lines += [f"    {one.file}:{one.line} {one.name}" for one in shown] or ["    (no Python frame)"]
    problems = sorted({one.problem for one in job.ranks if one.problem})
    lines += [""] * bool(problems) + problems
    return "\n".join(visible(line) for line in lines)


def _headline(job: JobNow) -> str:
    ranks = sum(one.rank >= 0 for one in job.ranks)
    if job.moved is None:
        return f"{ranks} ranks, none of which is running; these are their last records."
    if job.moved:
        return f"{ranks} ranks; the job makes progress: collectives began during the check."
    return f"{ranks} ranks; no collective began in {STILL_S:g} s."


def _rank_line(rank: RankNow) -> str:
    state = "ended" if rank.ended else {Life.ALIVE: "runs", Life.GONE: "gone", Life.UNKNOWN: "elsewhere"}[rank.life]
    last = rank.flight.last if rank.flight is not None else None
    label = f"rank {rank.rank}" if rank.rank >= 0 else "no rank"
    told = collective_text(last) if last else "no collective recorded"
    return f"{label:<10}{rank.host} {rank.pid:<10}{state:<16}{told}"


def collective_text(last: Collective) -> str:
    """What it is, how large, and how far it has come."""
    size = f", {last.elements} elements" if last.elements >= 0 else ""
    age = duration(max(time.time_ns() - last.begin_ns, 0))
    if last.done_ns:
        return f"{last}{size}: done, begun {age} ago"
    return f"{last}{size}: begun {age} ago, {'launched' if last.returned_ns else 'not even launched'}"


def _parts(folder: Path, deep: bool) -> list[Path]:
    if folder.name.endswith(".leadline.part"):
        return [folder]
    return sorted(folder.rglob(_PARTS) if deep else folder.glob(_PARTS))


def _processes(parts: Sequence[Path]) -> list[RankNow]:
    found = []
    for part in parts:
        try:
            processes = read_part(part).processes
        except PackageError:
            continue  # its file was made meanwhile
        found += [one for process in processes if (one := _process(process)) is not None]
    return [one for one in found if one.rank >= 0]


def _of_one_job(found: Sequence[RankNow], of: int) -> tuple[list[RankNow], tuple[str, ...]]:
    """The ranks of one job, of its last start, and the names of the others that are there."""
    jobs: dict[str, list[RankNow]] = {}
    for one in found:
        jobs.setdefault(one.job, []).append(one)
    if not jobs:
        return [], ()

    def order(ranks: Sequence[RankNow]) -> tuple[bool, bool, int]:
        living = [one for one in ranks if one.life is Life.ALIVE and not one.ended]
        return any(one.pid == of for one in living), bool(living), max(one.started_ns for one in ranks)

    name = max(jobs, key=lambda job: order(jobs[job]))
    last = max(one.restart for one in jobs[name])
    ranks = [one for one in jobs[name] if one.restart == last]
    since_ns = min((one.started_ns for one in ranks if one.life is Life.ALIVE and not one.ended), default=0)
    ranks = [one for one in ranks if one.life is not Life.GONE or one.written_ns >= since_ns]
    return ranks, tuple(sorted(job or "one without a name" for job in jobs if job != name))


def _one_each(found: Sequence[RankNow]) -> list[RankNow]:
    """Workers of a rank inherit its number, and begin no collective."""
    mains: dict[tuple[int, str], RankNow] = {}
    for one in found:
        key = (one.rank, one.host)
        if key not in mains or (one.begun, -one.pid) > (mains[key].begun, -mains[key].pid):
            mains[key] = one
    return list(mains.values())


def _process(process: ProcessPart) -> RankNow | None:
    record = process.record
    identity = ProcessIdentity.in_record(record)
    rank, pid = record.get("rank"), record.get("pid")
    if identity is None or not isinstance(rank, int) or not isinstance(pid, int):
        return None
    launch = record.get("launch")
    launch = launch if isinstance(launch, dict) else {}
    size, restart, started_ns = launch.get("world_size"), launch.get("restart"), record.get("started_at_ns")
    life = identity.life()
    try:
        flight = read_flight(process.flight, here=life is Life.ALIVE) if process.flight is not None else None
    except ProfileFileError:
        flight = None
    return RankNow(
        rank=rank,
        host=str(record.get("hostname", "")),
        pid=pid,
        life=life,
        ended=process.complete,
        world_size=size if isinstance(size, int) else 0,
        flight=flight,
        places=open_places(process.segment) if process.segment is not None else {},
        job=str(launch.get("job", "")),
        restart=restart if isinstance(restart, int) else 0,
        started_ns=started_ns if isinstance(started_ns, int) else 0,
        written_ns=_written_ns(process),
        attached=record.get("attached") is True,
    )


def _written_ns(process: ProcessPart) -> int:
    times = [0]
    for path in filter(None, (process.segment, process.flight)):
        with contextlib.suppress(OSError):
            times.append(path.stat().st_mtime_ns)
    return max(times)


def _with_stacks(one: RankNow) -> RankNow:
    if one.life is not Life.ALIVE:
        return one
    try:
        return RankNow(**{**vars(one), "threads": dump(one.pid).threads})
    except AttachError as error:
        return RankNow(**{**vars(one), "problem": str(error)})


def _rank_object(one: RankNow) -> dict[str, Any]:
    return {
        "rank": one.rank,
        "host": one.host,
        "pid": one.pid,
        "state": "ended" if one.ended else one.life.value,
        **flight_object(one.flight),
        "threads": [
            {**{name: getattr(thread, name) for name in ("tid", "name", "main", "state", "cpu_s")},
             "inside": one.places.get(thread.tid, ""),
             "frames": [vars(frame) for frame in thread.frames]}
            for thread in one.threads
        ],
        "problem": one.problem,
    }  # fmt: skip


def flight_object(flight: Flight | None) -> dict[str, Any]:
    """Groups and last collectives of a process, for JSON."""
    return {
        "groups": [vars(group) for group in flight.groups] if flight else [],
        "collectives": [_collective_object(last) for last in flight.collectives] if flight else [],
    }


def _collective_object(one: Collective) -> dict[str, Any]:
    return {**vars(one), "group": one.group.name if one.group else ""}
