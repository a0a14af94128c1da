"""`compare(a, b)`: what changed from side A to side B, per step, as data.

Every nanosecond of the difference stands in one row: own time of a path that both sides have, or all of what only one
side has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass, field
from leadline.analysis.layers import merged_layers
from leadline.analysis.origin import Origin, origin
from leadline.analysis.workclass import classes_of_work
from leadline.compare import statistics
from leadline.compare.align import Aligned, align
from leadline.compare.comparable import differences
from leadline.compare.limits import CROWDED, ENOUGH_RUNS, SURE_RATIO
from leadline.compare.runs import Floats, Run, runs_of
from leadline.profiles import Profile
from leadline.schema import FrameKind
from leadline.units import percent
from leadline.work.operators import CLASSES

_ENGINE = "autograd::engine::"  # says nothing that the phase does not
_KEPT = 1_000
_SHARE = 0.01
_ALIKE = 1.3  # paths within this factor of the whole's change followed it
_EXPLAINED = 0.5  # of the change: when the threads ran longer by so much, the program does more
_MOST = 0.75
_FEW_PATHS = 5
_NEWS = 1.05  # a smaller factor needs no explanation


class CompareError(ValueError):
    """The sides cannot be brought together at all."""


@dataclass(frozen=True)
class Figure:
    """One quantity per step on both sides: the median over the runs, their ratio B over A with the interval that holds
    it, and the verdict on that ratio: slower, faster, or no clear change."""

    a: float
    b: float
    ratio: float
    low: float
    high: float
    verdict: str


@dataclass(frozen=True)
class Change:
    """A path. `status`: both, added, removed or renamed; `was`: its name on side A where that is another. `time`: ns
    per step, its own where both sides have the path, else with all below."""

    status: str
    kind: str
    name: str
    path: tuple[str, ...]
    time: Figure
    calls: tuple[float, float]
    alloc_bytes: tuple[float, float]
    was: str = ""

    @property
    def delta_ns(self) -> float:
        return self.time.b - self.time.a


@dataclass(frozen=True)
class Diff:
    """`step`: ns of one step on the wall clock, where both sides measured it, else of its operators; `work`: ns of its
    operators, of which the changes of all paths are the difference; `gpu`: device time of one; `peak`, `alloc`: bytes;
    `calls`: operator and kernel calls. `sure`: from which ratio on the step's time can be told from noise.
    `changes`: the largest first. `renamed`: (name in A, name in B); `moved`: (function, place in A, place in B).
    `groups`: by module, operator class and kernel class: name, ns of A, ns of B. `doubt`: a sentence where the machine
    rather than the program seems to have changed."""

    runs: tuple[int, int]
    steps: tuple[int, int]
    differences: tuple[tuple[str, str], ...]
    step: Figure
    work: Figure
    gpu: Figure | None
    peak: tuple[float, float]
    alloc: tuple[float, float]
    calls: tuple[float, float]
    exact: bool
    changes: tuple[Change, ...]
    renamed: tuple[tuple[str, str], ...]
    moved: tuple[tuple[str, str, str], ...]
    groups: dict[str, tuple[tuple[str, float, float], ...]] = field(default_factory=dict)
    doubt: str = ""
    sure: float = SURE_RATIO

    @property
    def smallest(self) -> str:
        """The stated minimum: from which change on this comparison can tell it from noise."""
        if self.exact:
            return "Exact rank statistics over the runs separate changes from noise (95 % per end)."
        runs = "One run each" if self.runs == (1, 1) else f"{self.runs[0]} and {self.runs[1]} runs"
        return (
            f"{runs}: changes of the step time below {percent(self.sure - 1)} may be noise; "
            f"{ENOUGH_RUNS} runs for each side detect smaller changes."
        )


def compare(a: Sequence[Profile], b: Sequence[Profile], aligned: Aligned | None = None) -> Diff:
    """The comparison of side A (before) with side B (after), on their `aligned` tree where that is known already;
    raises CompareError for an empty side."""
    if not a or not b:
        raise CompareError("A comparison needs at least one profile on each side.")
    profiles = [*a, *b]
    aligned = aligned or align(profiles, [False] * len(a) + [True] * len(b))
    runs = runs_of(aligned, profiles)
    return _Comparison(aligned, profiles, runs, len(a)).diff()


class _Comparison:
    def __init__(self, aligned: Aligned, profiles: Sequence[Profile], runs: Sequence[Run], first: int) -> None:
        self.aligned, self.profiles, self.runs, self.first = aligned, profiles, runs, first
        size = aligned.shape.size
        self.on = np.zeros((2, size), np.bool_)
        for place, rows in enumerate(aligned.row_of):
            self.on[int(place >= first)][rows] = True
        self.gpu_only = not any(run.time.any() for run in runs)

    def side(self, read: Callable[[Run], Floats | float]) -> tuple[Floats, Floats]:
        values = [np.atleast_1d(np.asarray(read(run), np.float64)) for run in self.runs]
        return np.stack(values[: self.first], axis=1), np.stack(values[self.first :], axis=1)

    def diff(self) -> Diff:
        first = self.first
        own: Callable[[Run], Floats] = (lambda run: run.gpu) if self.gpu_only else (lambda run: run.time)
        noise = self._noise(lambda run: run.step_noise)
        work = self._whole(lambda run: float(own(run).sum()), noise)
        measured = not self.gpu_only and all(run.step_ns > 0 for run in self.runs)
        gpu = any(run.gpu.any() for run in self.runs) and not self.gpu_only
        steps = [run.steps for run in self.runs]
        return Diff(
            (first, len(self.runs) - first),
            (int(np.median(steps[:first])), int(np.median(steps[first:]))),
            tuple(differences(self.profiles[:first], self.profiles[first:], self.runs[:first], self.runs[first:])),
            self._whole(lambda run: run.step_ns, noise) if measured else work,
            work,
            self._whole(lambda run: float(run.gpu.sum()), noise) if gpu else None,
            self._pair(lambda run: run.peak),
            self._pair(lambda run: float(run.alloc.sum())),
            self._pair(lambda run: float(run.calls.sum())),
            min(first, len(self.runs) - first) >= ENOUGH_RUNS,
            tuple(self._changes(own, noise)),
            self._renamed(),
            tuple(self._moved()),
            self._groups(own),
            self._doubt(own),
            float(statistics.sure_ratio(noise)[0]),
        )

    def _noise(self, read: Callable[[Run], Floats | float]) -> Floats:
        """Per row the relative standard error of the ratio of both sides, from those of their runs."""
        sides = [np.square(side).sum(axis=1) / side.shape[1] ** 2 for side in self.side(read)]
        found: Floats = np.sqrt(sides[0] + sides[1])
        return found

    def _doubt(self, own: Callable[[Run], Floats]) -> str:
        """Few runs cannot tell a slow machine from a slow program, except that a machine slows everything down, and
        that a thread which waits for a core does not run longer."""
        a, b = (np.median(side, axis=1) for side in self.side(own))
        if min(self.first, len(self.runs) - self.first) >= ENOUGH_RUNS or not a.sum() or not b.sum():
            return ""
        step, waited = self._pair(lambda run: run.step_ns), self._pair(lambda run: run.core_wait)
        if max(waited) >= CROWDED and min(step) and max(step) >= _NEWS * min(step):
            return (
                f"Of a step {percent(waited[0])} in A and {percent(waited[1])} in B was spent waiting for a core: the "
                f"machine was busy. Compare on an idle one, or with {ENOUGH_RUNS} runs for each side, alternating "
                "A and B."
            )
        whole = float(b.sum() / a.sum())
        if max(whole, 1 / whole) < _NEWS:
            return ""
        ran = self._pair(lambda run: run.running)
        if min(ran) and not any(run.gpu.any() for run in self.runs):  # else a thread waits for the device, not a core
            if np.log(ran[1] / ran[0]) / np.log(whole) >= _EXPLAINED:
                return ""
            return (
                f"Operators took {whole:.2f} times as long, but the threads in them ran {ran[1] / ran[0]:.2f} times as "
                "long: the machine was busier on one side."
            )
        there = (a > 0) & (b > 0)
        ratio = b[there] / a[there]
        alike = float(a[there][(ratio > whole / _ALIKE) & (ratio < whole * _ALIKE)].sum() / a.sum())
        if alike < _MOST or int((a >= _SHARE * a.sum()).sum()) < _FEW_PATHS:
            return ""
        return (
            f"Nearly all paths changed by about the same factor ({whole:.2f}), as when the machine is busier or slower."
        )

    def _pair(self, read: Callable[[Run], float]) -> tuple[float, float]:
        a, b = self.side(read)
        return float(np.median(a)), float(np.median(b))

    def _whole(self, read: Callable[[Run], float], noise: Floats) -> Figure:
        return figures(*self.side(read), noise)[0]

    def _changes(self, own: Callable[[Run], Floats], step_noise: Floats) -> list[Change]:
        aligned = self.aligned
        both = self.on[0] & self.on[1]
        parent = np.maximum(aligned.shape.parent, 0)
        lone = ~both & both[parent]  # the top of what one side alone has
        below = [run.below(aligned, own(run)) for run in self.runs]
        a, b = (np.stack(part, axis=1) for part in (below[: self.first], below[self.first :]))
        own_a, own_b = self.side(own)
        a, b = np.where(lone[:, None], a, own_a), np.where(lone[:, None], b, own_b)
        median_a, median_b = np.median(a, axis=1), np.median(b, axis=1)
        weight = np.abs(median_b - median_a)
        shown = np.flatnonzero((lone | both) & (weight > 0))
        shown = shown[np.argsort(-weight[shown], kind="stable")][:_KEPT]
        whole = max(float(median_a.sum()), float(median_b.sum()), 1.0)
        heavy = np.maximum(median_a, median_b)[shown] >= _SHARE * whole
        # of a path that was called a few times only, the spread of the steps is the least there is
        noise = np.fmax(self._noise(lambda run: run.noise)[shown], step_noise)
        times = figures(a[shown], b[shown], np.where(np.isnan(step_noise), np.nan, noise), heavy)
        calls, alloc = self.side(lambda run: run.calls), self.side(lambda run: run.alloc)
        return [
            Change(
                self._status(row),
                str(FrameKind(self._key(row)[0])),
                aligned.renamed.get(row, self._key(row))[1],
                self._path(row),
                time,
                (float(np.median(calls[0][row])), float(np.median(calls[1][row]))),
                (float(np.median(alloc[0][row])), float(np.median(alloc[1][row]))),
                self._key(row)[1] if row in aligned.renamed else "",
            )
            for row, time in zip(shown.tolist(), times, strict=True)
        ]

    def _status(self, row: int) -> str:
        if row in self.aligned.renamed:
            return "renamed"
        on_a, on_b = bool(self.on[0, row]), bool(self.on[1, row])
        return "both" if on_a and on_b else "removed" if on_a else "added"

    def _renamed(self) -> tuple[tuple[str, str], ...]:
        """(name in A, name in B), each pair once."""
        pairs = {(self._key(row)[1], key[1]) for row, key in self.aligned.renamed.items()}
        return tuple(sorted((old, new) for old, new in pairs if old != new))  # `<module>` of another file is no news

    def _key(self, row: int) -> tuple[int, str, str]:
        return self.aligned.keys[int(self.aligned.key_of[row])]

    def _path(self, row: int) -> tuple[str, ...]:
        """As a person would name it: the user's function, module, phase, operators."""
        user = self._user_rows
        rows = self.aligned.path(row)
        kinds = [self._key(one)[0] for one in rows]
        functions = [one for one, kind in zip(rows, kinds, strict=True) if kind == FrameKind.PYTHON]
        mine = [one for one in functions if user[one]] or functions
        modules = [one for one, kind in zip(rows, kinds, strict=True) if kind == FrameKind.MODULE]
        phases = [one for one, kind in zip(rows, kinds, strict=True) if kind == FrameKind.PHASE]
        chosen = {*mine[-2:], *modules[-1:], *phases[-1:], row}
        work = (FrameKind.OPERATOR, FrameKind.KERNEL, FrameKind.COPY, FrameKind.REGION)
        last = max(chosen - {row}, default=0)
        chosen |= {one for one, kind in zip(rows, kinds, strict=True) if kind in work and one > last}
        listed = [one for one in rows if one in chosen]
        listed = [one for one in listed if one == row or not self._key(one)[1].startswith(_ENGINE)]
        names = [self.aligned.renamed.get(one, self._key(one))[1] for one in listed]
        return tuple(name for place, name in enumerate(names) if place == 0 or name != names[place - 1])

    @cached_property
    def _user_rows(self) -> NDArray[np.bool_]:
        """Rows that are Python frames of the user's own code."""
        user = np.zeros(self.aligned.shape.size, np.bool_)
        for profile, rows in zip(self.profiles, self.aligned.row_of, strict=True):
            tree = profile.tree
            files = np.unique(tree.frames["file"])
            mine = files[[bool(file) and origin(tree.tables.strings[file]) == Origin.USER for file in files.tolist()]]
            inside = np.isin(tree.frames["file"], mine)[tree.frame_of] & (tree.kinds == int(FrameKind.PYTHON))
            user[rows[inside]] = True
        return user

    def _moved(self) -> list[tuple[str, str, str]]:
        """(function, place in A, place in B) of the user's functions whose first line or file is another."""
        places: list[dict[str, set[str]]] = [{}, {}]
        for number, (profile, rows) in enumerate(zip(self.profiles, self.aligned.row_of, strict=True)):
            tree = profile.tree
            inside = np.flatnonzero(self._user_rows[rows] & (self.on[0] & self.on[1])[rows])
            for frame in np.unique(tree.frame_of[inside]).tolist():
                first = int(tree.frames["first_line"][frame])
                name = tree.text("name", frame)
                if first > 0 and not name.startswith("<"):
                    where = f"{tree.text('file', frame).rpartition('/')[2]}:{first}"
                    places[int(number >= self.first)].setdefault(name, set()).add(where)
        return [
            (name, ", ".join(sorted(here)), ", ".join(sorted(places[1][name])))
            for name, here in sorted(places[0].items())
            if name in places[1] and here.isdisjoint(places[1][name])
        ][:_KEPT]

    def _groups(self, own: Callable[[Run], Floats]) -> dict[str, tuple[tuple[str, float, float], ...]]:
        aligned = self.aligned
        kinds = np.array([kind for kind, _, _ in aligned.keys], np.int64)[aligned.key_of]
        device = np.isin(kinds, (int(FrameKind.KERNEL), int(FrameKind.COPY), int(FrameKind.COLLECTIVE)))
        classes = self._classes()
        found = {}
        if not self.gpu_only:
            found["module"] = self._group(self._modules(kinds), own)
            found["operator class"] = self._group(classes, own, kinds == int(FrameKind.OPERATOR))
        if device.any():
            found["kernel class"] = self._group(classes, lambda run: run.gpu, device)
        return found

    def _classes(self) -> list[str]:
        """Of every row its class of work; where the sides disagree, that of the side that knows one."""
        unknown = CLASSES.index("unknown")
        found = np.full(self.aligned.shape.size, unknown, np.int64)
        for profile, rows in zip(self.profiles, self.aligned.row_of, strict=True):
            here = classes_of_work(profile.tree)
            fresh = found[rows] == unknown
            found[rows[fresh]] = here[fresh]
        return [CLASSES[number] for number in found.tolist()]

    def _modules(self, kinds: NDArray[np.int64]) -> list[str]:
        """Of every row the nearest module, layers merged."""
        from leadline.analysis.columns import nearest

        rows = nearest(self.aligned.shape, kinds == int(FrameKind.MODULE))
        names = [merged_layers(name) if kind == FrameKind.MODULE else "" for kind, name, _ in self.aligned.keys]
        return [names[key] for key in self.aligned.key_of[rows].tolist()] if len(rows) else []

    def _group(
        self, labels: list[str], read: Callable[[Run], Floats], among: NDArray[np.bool_] | None = None
    ) -> tuple[tuple[str, float, float], ...]:
        unique = {label: place for place, label in enumerate(dict.fromkeys(labels))}
        codes = np.array([unique[label] for label in labels], np.int64)
        a, b = (
            np.median(side, axis=1)
            for side in self.side(
                lambda run: np.bincount(
                    codes, np.where(True if among is None else among, read(run), 0.0), len(unique)
                ).astype(np.float64)
            )
        )
        rows = [(label, float(a[place]), float(b[place])) for label, place in unique.items() if a[place] or b[place]]
        return tuple(sorted(rows, key=lambda row: -abs(row[2] - row[1])))


def figures(a: Floats, b: Floats, noise: Floats, tested: NDArray[np.bool_] | None = None) -> list[Figure]:
    """A Figure per row of values by run. `tested`: only these rows are tested (for many rows, false discoveries are
    bounded); others are unclear."""
    found = statistics.ratios(a, b, noise)
    tested = np.ones(len(a), np.bool_) if tested is None else tested
    slower, faster = np.zeros(len(a), np.bool_), np.zeros(len(a), np.bool_)
    slower[tested] = statistics.discoveries(found.slower[tested])
    faster[tested] = statistics.discoveries(found.faster[tested])
    middle_a, middle_b = np.median(a, axis=1), np.median(b, axis=1)
    return [
        Figure(
            float(middle_a[row]),
            float(middle_b[row]),
            float(found.estimate[row]),
            float(found.low[row]),
            float(found.high[row]),
            "slower" if slower[row] else "faster" if faster[row] else "no clear change",
        )
        for row in range(len(a))
    ]
