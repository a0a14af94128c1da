"""Whose file is whose. From the heads of all files: the job, its ranks, and for each rank its processes.

Nothing here stops at a bad file: it is named in a sentence, and the rest goes on. What decides:

- A file that cannot be read, or that is no profile, is left out.
- A file whose processes stand in other files too (a merged one, a copy) is passed over: nothing is lost by that.
- Files of several jobs: the job with most ranks is merged, those of the others are left out.
- A rank that two files hold at the same time, when no job is named: the second one is left out.
- Ranks of the job of which no file is there are missing.

Files of one rank that follow one another (rolling files, a start after a failure) are that rank together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from leadline._dataclass import dataclass, field, replace
from leadline.profiles.errors import ProfileFileError
from leadline.profiles.fold.restore import is_folded
from leadline.profiles.fold.state import LAWFUL, MISSING, Rank
from leadline.profiles.reader import open_head

BY = ("role", "node", "rank")


_MOST_RANKS = 1 << 18


@dataclass(frozen=True)
class ProcessHead:
    """A process as the head of its file has it."""

    file: str
    row: int
    pid: int
    parent_pid: int
    rank: int
    local_rank: int
    start_ns: int
    end_ns: int
    host: str
    record: Mapping[str, Any]

    @property
    def identity(self) -> str:
        """What tells it from all other processes of all machines."""
        return f"{self.host}:{self.pid}:{self.start_ns}"


@dataclass(frozen=True)
class Head:
    """A file as far as the plan needs it. `folded`: ranks of a file that a merge has made, by identity."""

    file: str
    processes: tuple[ProcessHead, ...]
    job: str
    world_size: int
    folded: bool = False


@dataclass
class Unit:
    """A rank: its processes by file; `helpers`: those that its processes started."""

    rank: int
    identity: str
    mains: list[ProcessHead] = field(default_factory=list)
    helpers: list[ProcessHead] = field(default_factory=list)

    @property
    def files(self) -> list[str]:
        return sorted({one.file for one in (*self.mains, *self.helpers)})


@dataclass(frozen=True)
class Plan:
    """`units` by number; `beside`: processes that are no rank's (a launcher); `folded`: files that were merged
    before."""

    job: str
    world_size: int
    units: tuple[Unit, ...]
    beside: tuple[ProcessHead, ...]
    folded: tuple[str, ...]
    left_out: tuple[str, ...]
    """One sentence for each file that is not in the result though something in it is missing there."""
    passed_over: tuple[str, ...]
    """One sentence for each file that is not needed."""


def make_plan(files: Iterable[str], job: str | None = None) -> Plan:
    """The plan for these files; `job`: merge this one, where there are several."""
    left_out: list[str] = []
    passed_over: list[str] = []
    heads = []
    for file in files:
        try:
            heads.append(read_head(file))
        except ProfileFileError as error:
            left_out.append(str(error))
    heads, chosen = _of_one_job(heads, job, left_out)
    heads = _without_doubles(heads, passed_over)
    plain = [head for head in heads if not head.folded]
    units, beside = _units(plain, left_out)
    return Plan(
        job=chosen,
        world_size=max((head.world_size for head in heads), default=0),
        units=tuple(units),
        beside=tuple(beside),
        folded=tuple(head.file for head in heads if head.folded),
        left_out=tuple(left_out),
        passed_over=tuple(passed_over),
    )


def read_head(file: str) -> Head:
    """The head of a file or of a part directory. Raises ProfileFileError."""
    if Path(file).is_dir():
        from leadline.profiles.recover import recover_part

        profile = recover_part(file).profile
        meta, columns = profile.meta, profile.tables["processes"]
    else:
        meta, columns = open_head(file)
    records = meta["processes"]
    processes = []
    listed = {name: values.tolist() for name, values in columns.items()}
    for row in range(len(listed["pid"])):
        pid, start_ns = listed["pid"][row], listed["start_ns"][row]
        record = _record(records, pid, start_ns)
        processes.append(
            ProcessHead(
                file=file,
                row=row,
                pid=pid,
                parent_pid=listed["parent_pid"][row],
                rank=listed["rank"][row],
                local_rank=listed["local_rank"][row],
                start_ns=start_ns,
                end_ns=listed["end_ns"][row],
                host=_text(record.get("hostname")) or _text(meta["host"].get("hostname")),
                record=record,
            )
        )
    launches = [launch for one in processes if isinstance(launch := one.record.get("launch"), dict)]
    jobs = Counter(str(launch["job"]) for launch in launches if launch.get("job"))
    world = max((_world(launch.get("world_size")) for launch in launches), default=0)
    folded = is_folded(meta)
    if folded:
        world = _world(meta["fold"].get("world_size"))
        jobs = Counter([str(meta["fold"]["job"])] if meta["fold"].get("job") else [])
    return Head(file, tuple(processes), max(sorted(jobs), key=jobs.__getitem__, default=""), world, folded)


def missing_ranks(plan: Plan, there: Iterable[int]) -> list[Rank]:
    """Ranks of the job that are not `there`, each with a sentence."""
    have = set(there)
    return [
        Rank(
            rank=rank,
            identity="",
            status=MISSING,
            note=f"Rank {rank} left no file that could be read; its share of the job is missing.",
        )
        for rank in range(plan.world_size)
        if rank not in have
    ]


def label_of(unit: Unit, by: str) -> str:
    """The group that a rank is folded into."""
    if by == "rank":
        return f"rank {unit.rank}" if unit.rank >= 0 else unit.identity
    if by == "node":
        return f"ranks on {unit.mains[0].host or 'an unknown machine'}"
    role = role_of(unit.mains[0].record)
    lawful = {name: place for name, place in role.items() if name in LAWFUL}
    return (
        "ranks of " + ", ".join(f"{name} {place}" for name, place in sorted(lawful.items())) if lawful else "all ranks"
    )


def role_of(record: Mapping[str, Any]) -> dict[str, int]:
    """Coordinates of a rank in its job's meshes and groups, as its process has found them."""
    available = record.get("available")
    torch = available.get("torch") if isinstance(available, dict) else None
    role = torch.get("role") if isinstance(torch, dict) else None
    if not isinstance(role, dict):
        return {}
    return {str(name): place for name, place in role.items() if isinstance(place, int) and not isinstance(place, bool)}


def _record(records: Sequence[Mapping[str, Any]], pid: int, start_ns: int) -> Mapping[str, Any]:
    mine = [record for record in records if record.get("pid") == pid]
    return min(mine, key=lambda record: abs(start_ns - _whole(record.get("started_at_ns"))), default={})


def _of_one_job(heads: list[Head], wanted: str | None, left_out: list[str]) -> tuple[list[Head], str]:
    ranks: dict[str, set[int]] = {}
    for head in heads:
        if head.job:
            ranks.setdefault(head.job, set()).update(one.rank for one in head.processes)
    if wanted is None and len(ranks) < 2:
        return heads, next(iter(ranks), "")
    chosen = wanted if wanted is not None else max(sorted(ranks), key=lambda job: len(ranks[job]))
    kept = []
    for head in heads:
        if head.job == chosen or not head.job:
            kept.append(head)
        else:
            left_out.append(
                f"{head.file} belongs to another job ({head.job}); the one that is merged is {chosen}. Merge it by "
                "itself, or with --job."
            )
    return kept, chosen


def _without_doubles(heads: list[Head], passed_over: list[str]) -> list[Head]:
    """Each process once: a file gives way whose processes all stand in others, the one with most first."""
    # each once for a file, of which a damaged one may hold equal ones
    held = Counter(
        identity for head in heads if not head.folded for identity in {one.identity for one in head.processes}
    )
    kept = []
    for head in sorted(heads, key=lambda head: (-len(head.processes), head.file), reverse=False):
        if head.folded or not head.processes or any(held[one.identity] < 2 for one in head.processes):
            kept.append(head)
            continue
        held.subtract({one.identity for one in head.processes})
        other = next(
            one.file
            for one in heads
            if one is not head and any(a.identity == head.processes[0].identity for a in one.processes)
        )
        passed_over.append(f"{head.file} holds what {other} holds too; it is counted once.")
    return sorted(kept, key=lambda head: head.file)


def _units(heads: Sequence[Head], left_out: list[str]) -> tuple[list[Unit], list[ProcessHead]]:
    units: dict[tuple[int, str], Unit] = {}
    beside: list[ProcessHead] = []
    seen: set[str] = set()
    launchers = _launchers(heads)
    for head in heads:
        fresh = [one for one in _with_rank_of_parents(head.processes) if one.identity not in seen]
        with_ranks = any(one.rank >= 0 for one in fresh)
        of_rank: dict[int, list[ProcessHead]] = {}
        for one in fresh:
            of_rank.setdefault(one.rank, []).append(one)
        clash = _clash(of_rank, units)
        if clash is not None:
            left_out.append(
                f"{head.file} holds rank {clash[0]}, and so does {clash[1]} at the same time: files of two jobs? It is "
                "left out; merge each job by itself."
            )
            continue
        seen.update(one.identity for one in fresh)
        for rank, processes in of_rank.items():
            pids = {(one.pid) for one in processes}
            first = next((one for one in processes if one.parent_pid not in pids), processes[0])
            for one in sorted(processes, key=lambda one: (one.start_ns, one.pid, one.row)):
                inherited = one.parent_pid in pids and one.parent_pid != one.pid
                if rank < 0 and (with_ranks or _process(one) in launchers):
                    beside.append(one)
                    continue
                key = (rank, "") if rank >= 0 else (rank, _text(first.record.get("identity")) or first.identity)
                unit = units.setdefault(key, Unit(rank, one.identity))
                (unit.helpers if inherited else unit.mains).append(one)
    for unit in units.values():
        if not unit.mains:  # each the parent of another: of no machine, but a file may say so
            unit.mains, unit.helpers = unit.helpers[:1], unit.helpers[1:]
        unit.mains.sort(key=lambda one: (one.start_ns, one.identity))
        unit.identity = unit.mains[0].identity
    return sorted(units.values(), key=lambda unit: (unit.rank < 0, unit.rank, unit.identity)), beside


def _with_rank_of_parents(processes: Sequence[ProcessHead]) -> list[ProcessHead]:
    """What a rank has started is that rank's, also where no environment says so."""
    by_pid = {one.pid: one for one in processes}

    def rank_of(one: ProcessHead) -> int:
        seen = set()
        while one.rank < 0 and one.pid not in seen and one.parent_pid in by_pid:
            seen.add(one.pid)
            one = by_pid[one.parent_pid]
        return one.rank

    return [one if one.rank >= 0 else replace(one, rank=rank_of(one)) for one in processes]


def _launchers(heads: Sequence[Head]) -> set[str]:
    """Processes without a rank beside those that have one. Of files that roll, some hold a launcher alone."""
    of_jobs = [head.processes for head in heads if any(one.rank >= 0 for one in head.processes)]
    return {_process(one) for processes in of_jobs for one in processes if one.rank < 0}


def _process(one: ProcessHead) -> str:
    """A process, whatever stretch of it a file holds."""
    return _text(one.record.get("identity")) or f"{one.host}:{one.pid}"


def _clash(
    of_rank: Mapping[int, Sequence[ProcessHead]], units: Mapping[tuple[int, str], Unit]
) -> tuple[int, str] | None:
    """A rank that is there already, measured by another process at the same time: (rank, the other's file). Files of
    one process follow each other, whatever its clock says that was set back meanwhile."""
    for rank, processes in of_rank.items():
        known = units.get((rank, "")) if rank >= 0 else None
        for other in known.mains if known else ():
            for one in processes:
                same = bool(known_as := _text(one.record.get("identity"))) and known_as == other.record.get("identity")
                if not same and one.start_ns < other.end_ns and other.start_ns < one.end_ns:
                    return rank, other.file
    return None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _world(value: object) -> int:
    """Each rank of a job that left no file is listed, so that a number which no job has is not believed."""
    said = _whole(value)
    return said if 0 <= said <= _MOST_RANKS else 0
