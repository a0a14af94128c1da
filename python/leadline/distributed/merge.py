"""Names in; one profile of all ranks, and what became of every file, out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from leadline._dataclass import dataclass, replace
from leadline.distributed.engines import Engine, here
from leadline.distributed.heap import give_back_at_once
from leadline.distributed.listing import list_files
from leadline.distributed.plan import Plan, make_plan, missing_ranks
from leadline.distributed.reduce import Reducer
from leadline.distributed.tasks import Task, do, tasks_of
from leadline.profiles.errors import ProfileFileError
from leadline.profiles.fold.alone import with_ranks_alone
from leadline.profiles.fold.finish import finished
from leadline.profiles.fold.join import SameRankError
from leadline.profiles.fold.rare_paths import with_rare_together
from leadline.profiles.fold.state import Fold, Rank
from leadline.profiles.profile import Profile


@dataclass(frozen=True)
class Merged:
    """The profile and what became of the files: one sentence for each that is not in it."""

    profile: Profile
    plan: Plan
    ranks: int
    missing: tuple[int, ...]
    left_out: tuple[str, ...]
    passed_over: tuple[str, ...]


def merge_files(
    asked: Iterable[str],
    *,
    by: str = "role",
    job: str | None = None,
    output: str | None = None,
    engine: Engine = here,
    all_paths: bool = False,
    late: Callable[[Profile], Sequence[Rank]] | None = None,
) -> Merged:
    """The ranks in all files that `asked` names, folded into one profile. `late`: says of it which ranks to look at
    once more, and to keep by themselves, too. `all_paths`: also keep paths of few ranks and little time. Raises
    ProfileFileError where there is not one that can be read, and SchedulerError as the engine does."""
    give_back_at_once()
    listed = list_files(asked, output)
    plan = make_plan(listed.files, job)
    left_out = [*listed.nothing, *plan.left_out]
    reducer = Reducer()
    try:
        for done in engine(tasks_of(plan), by):
            left_out += done.left_out
            if done.fold is not None:
                reducer.add(done.fold)
        whole = reducer.whole()
    except SameRankError as error:
        raise ProfileFileError(
            f"{error} A merged file and the rank's own are among the files: give one of them."
        ) from None
    if whole is None:
        why = left_out[0] if left_out else "none of the names given is a profile."
        more = f" ({len(left_out) - 1} more files could not be used.)" if len(left_out) > 1 else ""
        raise ProfileFileError(f"There is nothing to merge: {why}{more}")
    whole = replace(whole, meta={**whole.meta, "world_size": plan.world_size, "job": plan.job})
    missing = missing_ranks(plan, (rank.rank for rank in whole.ranks))
    profile = finished(whole, missing, left_out)
    if late is not None and by != "rank":  # which keeps all ranks by themselves
        identities = {one.identity for one in late(profile)}
        parts = _parts_of(identities, plan, by)
        whole = with_ranks_alone(whole, parts, identities) if parts else whole
    shown = whole if all_paths or by == "rank" else with_rare_together(whole)
    if shown.alone or shown is not whole:
        profile = finished(shown, missing, left_out)
    return Merged(
        profile,
        plan,
        len(whole.ranks),
        tuple(rank.rank for rank in missing),
        tuple(left_out),
        plan.passed_over,
    )


def _parts_of(wanted: set[str], plan: Plan, by: str) -> list[Fold]:
    """What holds these ranks by themselves: their own files, read again, or a merged file that has kept them."""
    units = [unit for unit in plan.units if unit.identity in wanted]
    found = [do(Task(units=(unit,)), by).fold for unit in units]
    if len(units) < len(wanted):
        folded = (do(Task(folded=file), by).fold for file in plan.folded)
        found += [fold for fold in folded if fold is not None and _holds(fold, wanted)]
    return [fold for fold in found if fold is not None]


def _holds(fold: Fold, identities: set[str]) -> bool:
    return any(fold.ranks[row].identity in identities for row in fold.alone)
