"""The way of every collective of a window: when its inputs were ready, launched, on the wire, done, and used.

Of DistributedDataParallel a collective is a bucket of gradients. It is ready when the last of its gradients has been
added up: which those are its reducer says (`buckets` of a backward pass's graph), and before that is known the
gradients since the launch before. They are launched in their order, so one that is ready may wait for an earlier one of
its reducer; a reducer launches at once what it can, so of several the launch is that of the last whose turn it became.
A shard's gradients (FSDP) are ready when the last of them has been added up since the shard before was sent; parameters
are ready to be gathered since the optimizer last changed them. Both are used as soon as they are there, gradients by
the optimizer.
Work on the wire is a collective on a device that the launch's calls launched, or what a thread of gloo did: the k-th
launch of a name is the k-th work of that name; where a work would begin before its launch nothing is matched.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass, field, replace
from leadline.profiles.profile import Profile
from leadline.schema import EventKind

Numbers = NDArray[np.int64]
LAUNCH = "c10d::"
_GLOO = "gloo:"
_ADDED = "torch::autograd::AccumulateGrad"
_COPIED = "torch.distributed.ddp.reducer::copy_bucket_to_grad"
_AT_ONCE_NS = 2_000
_MESSAGES = ("send", "recv", "recvanysource")
_FSDP, _FSDP1 = "FSDP::", "FullyShardedDataParallel."
_GATHERED = f"{_FSDP}all_gather_copy_out"
_OPTIMIZER = "optimizer"
_WORDS = re.compile(r"coalesced|into_tensor|tensor|base|[^a-z]")


@dataclass(frozen=True)
class Exchange:
    """A collective. Rows are those of the profile's events, -1 where there is none; times are ns on their clock.
    `inputs`: gradients that its bucket is made of; `bucket`: its number in its reducer, -1 where it is none."""

    process: int
    name: str
    launch: int
    launched_ns: int
    bucket: int = -1
    reducer: int = -1
    inputs: tuple[int, ...] = ()
    ready_ns: int = -1
    wire: int = -1
    begun_ns: int = -1
    done_ns: int = -1
    use: int = -1
    used_ns: int = -1


@dataclass(frozen=True)
class Pass:
    """A backward pass: from when on, and by reducer and bucket the rows that add up the bucket's gradients."""

    begin_ns: int
    buckets: Mapping[tuple[int, int], Sequence[int]] = field(default_factory=dict)


def exchanges(profile: Profile, names: NDArray[Any], passes: Mapping[int, Sequence[Pass]]) -> list[Exchange]:
    """Every collective that was launched in the window, in order. `names`: of every event; `passes`: by process."""
    found: list[Exchange] = []
    process_of = np.array([thread.process for thread in profile.threads] + [-1], dtype=np.int64)
    owner = process_of[profile.events["thread"]]
    texts = names.astype(str)
    for process in range(len(profile.processes)):
        rows = np.flatnonzero(owner == process)
        launches = rows[np.char.startswith(texts[rows], LAUNCH)]
        if launches.size:
            found += _of_process(profile, texts, process, rows, launches, passes.get(process, ()))
    return sorted(found, key=lambda one: one.launched_ns)


def _of_process(
    profile: Profile, texts: NDArray[Any], process: int, rows: Numbers, launches: Numbers, passes: Sequence[Pass]
) -> list[Exchange]:
    events = profile.events
    start = events["start_ns"].astype(np.int64)
    end = start + np.maximum(events["duration_ns"], 0)
    launches = _outermost(launches, texts, np.asarray(events["thread"]), start, end)
    made = [Exchange(process, str(texts[row]), row, int(start[row])) for row in launches.tolist()]
    made = _with_wires(made, profile, texts, rows, start, end)
    made = _with_inputs(made, events, texts, rows, end, passes)
    made = _with_shards(made, events, texts, rows, start, end)
    return _with_uses(made, texts, rows, start)


def _outermost(launches: Numbers, texts: NDArray[Any], thread: Numbers, start: Numbers, end: Numbers) -> Numbers:
    """Without those inside of one of the same name: torch dispatches some operators twice."""
    last: dict[tuple[int, str], int] = {}
    kept = []
    for row in launches[np.lexsort((-end[launches], start[launches]))].tolist():
        key = (int(thread[row]), str(texts[row]))
        if key not in last or start[row] >= end[last[key]]:
            kept.append(row)
            last[key] = row
    return np.array(kept, dtype=np.int64)


def _with_wires(
    made: list[Exchange], profile: Profile, texts: NDArray[Any], rows: Numbers, start: Numbers, end: Numbers
) -> list[Exchange]:
    events = profile.events
    gloo = rows[np.char.startswith(texts[rows], _GLOO)]
    by_word: dict[str, list[int]] = {}
    begins = start.copy()
    for row in gloo.tolist():
        word = _word(str(texts[row]).removeprefix(_GLOO))
        works = by_word.setdefault(word, [])
        follows = works and events["thread"][works[-1]] == events["thread"][row]
        if follows and start[row] < end[works[-1]] and word not in _MESSAGES:
            continue  # its end, told from inside of it
        if follows and word in _MESSAGES and 0 <= start[row] - end[works[-1]] < _AT_ONCE_NS:
            begins[row] = begins[works.pop()]  # a message has two ranges: what begins it, and until it is through
        works.append(row)
    pairs: dict[int, int] = {}
    for word, works in by_word.items():
        mine = [one for one in made if _carried_by(one, by_word) == word]
        first = min((one.launched_ns for one in mine), default=0)
        there = [row for row in works if begins[row] >= first]
        matched = list(zip(mine, there, strict=False))
        if all(begins[row] >= one.launched_ns for one, row in matched):
            pairs.update((one.launch, row) for one, row in matched)
    pairs.update(_on_devices(made, events, start, end))
    return [
        replace(one, wire=row, begun_ns=int(begins[row]), done_ns=int(end[row]))
        if (row := pairs.get(one.launch, -1)) >= 0
        else one
        for one in made
    ]


def _on_devices(made: list[Exchange], events: Any, start: Numbers, end: Numbers) -> Iterator[tuple[int, int]]:
    """Collectives of devices, launched by a call inside of an operator."""
    work = np.flatnonzero(
        (events["kind"] == EventKind.COLLECTIVE) & (events["thread"] < 0) & (events["correlation"] != 0)
    )
    if not work.size:
        return
    row_of = dict(zip(events["correlation"][work].tolist(), work.tolist(), strict=True))
    calls = np.flatnonzero(np.isin(events["kind"], [EventKind.API, EventKind.GRAPH_LAUNCH]))
    for one in made:
        inside = calls[(start[calls] >= one.launched_ns) & (start[calls] < end[one.launch])]
        inside = inside[events["thread"][inside] == events["thread"][one.launch]]
        for number in events["correlation"][inside].tolist():
            if number in row_of:
                yield one.launch, row_of[number]
                break


def _with_inputs(
    made: list[Exchange], events: Any, texts: NDArray[Any], rows: Numbers, end: Numbers, passes: Sequence[Pass]
) -> list[Exchange]:
    """Buckets: all-reduces that are launched while gradients are added up."""
    added = rows[texts[rows] == _ADDED]
    if not added.size:
        return made
    borders = [*(one.begin_ns for one in passes), 1 << 62]
    turns: dict[int, _Turns] = {}
    found = []
    for one in made:
        number = int(np.searchsorted(borders, one.launched_ns, side="right")) - 1
        known = passes[number].buckets if 0 <= number < len(passes) else {}
        turn = turns.setdefault(number, _Turns(known, borders[number] if number >= 0 else 0))
        thread = events["thread"][one.launch]
        near = added[
            (events["thread"][added] == thread) & (end[added] > turn.before_ns) & (end[added] <= one.launched_ns)
        ]
        reducer, inputs = turn.whose(one.launched_ns, end)
        inputs = inputs or tuple(near.tolist())
        if _word(one.name.removeprefix(LAUNCH)) != "allreduce" or not inputs:
            found.append(one)
            continue
        ready = int(end[list(inputs)].max())
        bucket = turn.took(reducer, one.launched_ns)
        found.append(replace(one, bucket=bucket, reducer=reducer, inputs=inputs, ready_ns=ready))
    return found


def _with_shards(
    made: list[Exchange], events: Any, texts: NDArray[Any], rows: Numbers, start: Numbers, end: Numbers
) -> list[Exchange]:
    """Reduce-scatters that are launched while gradients are added up, and FSDP's gathers of parameters."""
    added = rows[texts[rows] == _ADDED]
    steps = rows[(texts[rows] == _OPTIMIZER) & (events["kind"][rows] == EventKind.PHASE)]
    sharded = any(np.char.startswith(texts[rows], one).any() for one in (_FSDP, _FSDP1))
    since: dict[int, int] = {}
    found = []
    for one in made:
        word, thread = _word(one.name.removeprefix(LAUNCH)), int(events["thread"][one.launch])
        if word == "reducescatter":
            mine = (events["thread"][added] == thread) & (end[added] <= one.launched_ns)
            inputs = added[mine & (end[added] > since.get(thread, 0))]
            since[thread] = one.launched_ns
            if inputs.size:
                later = steps[start[steps] >= max(one.done_ns, one.launched_ns)] if one.done_ns >= 0 else steps[:0]
                one = replace(
                    one,
                    inputs=tuple(inputs.tolist()),
                    ready_ns=int(end[inputs].max()),
                    use=int(later[0]) if later.size else -1,
                    used_ns=int(start[later[0]]) if later.size else -1,
                )
        elif sharded and "gather" in word:
            changed = steps[end[steps] <= one.launched_ns]
            if changed.size:
                one = replace(one, ready_ns=int(end[changed].max()))
        found.append(one)
    return found


class _Turns:
    """Which bucket of each reducer comes next in one backward pass."""

    def __init__(self, buckets: Mapping[tuple[int, int], Sequence[int]], begin_ns: int) -> None:
        self._buckets = buckets
        self._next = {reducer: (0, begin_ns) for reducer, _ in buckets} or {0: (0, begin_ns)}
        self.before_ns = begin_ns
        """When the launch before was."""

    def whose(self, launched_ns: int, end: Numbers) -> tuple[int, tuple[int, ...]]:
        """The reducer whose bucket is launched, and what is known of the bucket's gradients."""
        turns = []
        for reducer, (bucket, since_ns) in self._next.items():
            rows = self._buckets.get((reducer, bucket), ())
            there = tuple(int(row) for row in rows if end[row] <= launched_ns)
            ready = max((int(end[row]) for row in there), default=0)
            turns.append((bool(there) and len(there) == len(rows), max(ready, since_ns), reducer, there))
        _, _, reducer, there = max(turns, key=lambda one: one[:2])
        return reducer, there

    def took(self, reducer: int, launched_ns: int) -> int:
        """A bucket of a reducer is launched: its number."""
        bucket, _ = self._next[reducer]
        self._next[reducer] = (bucket + 1, launched_ns)
        self.before_ns = launched_ns
        return bucket


def _with_uses(made: list[Exchange], texts: NDArray[Any], rows: Numbers, start: Numbers) -> list[Exchange]:
    """Buckets are copied into their gradients one after the other, as many copies as there are gradients, and reducers
    one after the other, first who launched its last bucket first; what FSDP has gathered is copied out by the next
    range of that name, where there are as many as gathers."""
    copies = rows[texts[rows] == _COPIED].tolist()
    gathered = rows[np.char.startswith(texts[rows], _GATHERED)].tolist()
    if len(gathered) != sum("gather" in one.name for one in made):
        gathered = []  # other gathers than FSDP's, or some outside the window: whose is whose is not known
    found = []
    for one in _in_order_of_use(made):
        later = [
            row for row in (copies if one.bucket >= 0 else gathered) if start[row] >= max(one.done_ns, one.launched_ns)
        ]
        if one.done_ns < 0 or not later or (one.bucket < 0 and "gather" not in one.name):
            found.append(one)
            continue
        found.append(replace(one, use=later[0], used_ns=int(start[later[0]])))
        if one.bucket >= 0:
            copies = copies[copies.index(later[0]) + len(one.inputs) :]
        else:
            gathered = gathered[gathered.index(later[0]) + 1 :]
    return found


def _in_order_of_use(made: list[Exchange]) -> list[Exchange]:
    """Buckets of several reducers of one backward pass, each reducer's together."""
    runs: list[list[Exchange]] = []
    of_reducer: dict[int, list[Exchange]] = {}
    for one in made:
        if one.bucket <= 0:
            runs.append([])
            if one.bucket == 0:
                of_reducer[one.reducer] = runs[-1]
        (of_reducer[one.reducer] if one.bucket > 0 else runs[-1]).append(one)
    return [one for run in sorted(runs, key=lambda run: run[-1].launched_ns) for one in run]


def _carried_by(one: Exchange, works: Mapping[str, Any]) -> str:
    """The word of gloo's work for a launch. Releases without a reduce-scatter of gloo's reduce for all and cut."""
    word = _word(one.name.removeprefix(LAUNCH))
    return "allreduce" if word == "reducescatter" and word not in works else word


def _word(name: str) -> str:
    return _WORDS.sub("", name.lower())
