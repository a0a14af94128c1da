"""One step of a merge, for whoever does it: some files in, one fold and what could not be read out."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from leadline._dataclass import dataclass, replace
from leadline.distributed.plan import Plan, ProcessHead, Unit, label_of, role_of
from leadline.profiles.errors import ProfileFileError
from leadline.profiles.fold.join import join
from leadline.profiles.fold.leaf import Member, RankFacts, Source, fold_rank
from leadline.profiles.fold.restore import restored
from leadline.profiles.fold.state import Fold
from leadline.profiles.profile import Profile
from leadline.profiles.reader import open_profile


@dataclass(frozen=True)
class Task:
    """Ranks that share files, processes beside them, or a file that was folded before."""

    units: tuple[Unit, ...] = ()
    beside: tuple[ProcessHead, ...] = ()
    folded: str = ""


@dataclass(frozen=True)
class Done:
    """`fold` is None where nothing could be read."""

    fold: Fold | None
    left_out: tuple[str, ...]


def tasks_of(plan: Plan) -> list[Task]:
    """Tasks that share no file, in the order of their first file."""
    group: dict[str, str] = {}

    def found(file: str) -> str:
        while group.setdefault(file, file) != file:
            file = group[file]
        return file

    pieces: list[tuple[list[str], Unit | ProcessHead]] = [(unit.files, unit) for unit in plan.units]
    pieces += [([one.file], one) for one in plan.beside]
    for files, _ in pieces:
        first = found(files[0])
        for file in files[1:]:
            group[found(file)] = first
    together: dict[str, list[Unit | ProcessHead]] = {}
    for files, piece in pieces:
        together.setdefault(found(files[0]), []).append(piece)
    tasks = [
        Task(
            units=tuple(piece for piece in several if isinstance(piece, Unit)),
            beside=tuple(piece for piece in several if isinstance(piece, ProcessHead)),
        )
        for several in together.values()
    ]
    return [*tasks, *(Task(folded=file) for file in plan.folded)]


def _attached(fold: Fold) -> Fold:
    """See `facts.rank_values`."""
    (rank,) = fold.ranks
    return replace(fold, ranks=[replace(rank, values={"attached": (0, 1), **rank.values})])


def do(task: Task, by: str) -> Done:
    """Read the files of a task and fold what is in them. Raises nothing that a file could cause."""
    left_out: list[str] = []
    if task.folded:
        try:
            profile = open_profile(task.folded)
            fold = restored(profile, task.folded)
        except ProfileFileError as error:
            return Done(None, (str(error),))
        if fold.by != by:
            return Done(None, (f"{task.folded} was folded by {fold.by}, not by {by}; fold its ranks' own files.",))
        return Done(fold, ())
    sources: dict[str, Source | None] = {}

    def source(file: str) -> Source | None:
        if file not in sources:
            try:
                sources[file] = _opened(file)
            except ProfileFileError as error:
                left_out.append(str(error))
                sources[file] = None
        return sources[file]

    folds = []
    for unit in task.units:
        label = label_of(unit, by)
        pieces = _pieces(unit, label, source)
        mains = [one for one in unit.mains if sources.get(one.file) is not None]
        if not mains:
            continue
        first = mains[0]
        role = role_of(first.record)
        note = f"It was started {len(unit.mains)} times." if _restarted(unit) else ""
        facts = RankFacts(
            unit.rank,
            unit.identity,
            first.local_rank,
            first.host,
            json.dumps(role, sort_keys=True) if role else "",
            note,
        )
        made = fold_rank(pieces, facts, by)
        attached = any(one.record.get("attached") is True for one in mains)
        folds.append(_attached(made) if attached else made)
    for one in task.beside:
        opened = source(one.file)
        if opened is not None:
            member = Member(one.row, f"{short_command(opened.profile, one.row)} (no rank)", False)
            folds.append(fold_rank([(opened, [member])], None, by))
    return Done(join(folds) if folds else None, tuple(left_out))


def _restarted(unit: Unit) -> bool:
    """Whether its processes are several; files that follow one another are of one."""
    return len({(one.host, one.pid) for one in unit.mains}) > 1


def _pieces(unit: Unit, label: str, source: Callable[[str], Source | None]) -> list[tuple[Source, Sequence[Member]]]:
    members: dict[str, list[tuple[ProcessHead, bool]]] = {}
    for one in unit.mains:
        members.setdefault(one.file, []).append((one, True))
    for one in unit.helpers:
        members.setdefault(one.file, []).append((one, False))
    pieces: list[tuple[Source, Sequence[Member]]] = []
    for file, several in sorted(members.items()):
        opened = source(file)
        if opened is None:
            continue
        pieces.append((opened, [_member(opened, one, main, label) for one, main in several]))
    return pieces


def _member(source: Source, one: ProcessHead, main: bool, label: str) -> Member:
    if main:
        return Member(one.row, label, True)
    kind = "forked" if isinstance(one.record.get("forked_from"), int) else short_command(source.profile, one.row)
    return Member(one.row, f"{kind}, started by {label}", False)


def short_command(profile: Profile, row: int) -> str:
    """`train.py` of `/usr/bin/python3 -u /job/train.py --lr 1`: what a person would call the program."""
    tables = profile.tables
    words = tables.strings[int(tables["processes"]["name"][row])].split()
    for number, word in enumerate(words):
        if word == "-m" and number + 1 < len(words):
            return words[number + 1]
        if word.endswith(".py"):
            return word.rpartition("/")[2]
    return words[0].rpartition("/")[2] if words else "a process"


def _opened(file: str) -> Source:
    if Path(file).is_dir():
        from leadline.profiles.recover import recover_part

        profile = recover_part(file).profile
    else:
        profile = open_profile(file, with_events=False)
    nodes, processes = profile.tables["nodes"], profile.tables["processes"]
    below_root = nodes["parent"][processes["node"].astype("i8")] == 0
    if not below_root.all():
        raise ProfileFileError(f"{file} cannot be folded: one of its processes is not a child of the root.")
    return Source(profile, Path(file).name)
