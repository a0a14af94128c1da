"""The start page as data: one step as bars that add up, where it goes, what would help, the verdict as text.

The sentence, its account and its fixes are the verdict's (`leadline.verdict`); this adds what a reader asks next. Times
are nanoseconds of one step (of the run, where nothing repeats: `of` says which), shares are of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import replace
from leadline.analysis.case import Case
from leadline.analysis.columns import Mask, Rows, at_rows, distinct, factorized
from leadline.analysis.findings import Finding, Findings
from leadline.analysis.layers import merged_layers
from leadline.analysis.rules.communication import late_rank
from leadline.analysis.workclass import classes_of_nodes
from leadline.names import bare, distinct_parts
from leadline.names.kernels import kernel_words
from leadline.profiles.meta import is_imported
from leadline.report.model import Place
from leadline.report.paths import PathWords
from leadline.report.phrases import operator_text
from leadline.report.rank_bars import rank_bars
from leadline.report.start_model import Bar, BarPart, Help, Kernel, Line, Start
from leadline.steps import NoSteps
from leadline.steps.of_profile import steps_of
from leadline.units import percent
from leadline.verdict.fixes import CORES, CORES_REMEDY
from leadline.verdict.model import Account, Fix, Verdict
from leadline.verdict.outside_operators import outside_operators
from leadline.verdict.text import as_lines, fix_text, head
from leadline.verdict.words import IDLE, SHORT
from leadline.work.operators import CLASSES

MOST_ROWS = 8
MOST_WALLS = 60
OUTSIDE = "outside of phases"
_ONE_LINE, _MOSTLY = 0.85, 0.6
"""Of a step on one line: from where on a line is split, and where it calls several modules."""
_PHASES = {
    "forward": "forward",
    "backward": "backward",
    "optimizer": "optimizer",
    "zero_grad": "optimizer",
    "closure": "optimizer",
    "data loading": "data loading",
    "compile": "compile",
    "garbage collection": "garbage collection",
    "saving": "saving",
}
_ORDER = (
    "data loading",
    "forward",
    "backward",
    "optimizer",
    "compile",
    "garbage collection",
    "saving",
    "communication",
    "",
)


def start_of(verdict: Verdict, found: Findings | None, words: PathWords, case: Case, file: str) -> Start | None:
    """None where there is no account: nothing that takes time was measured."""
    account = verdict.account
    if account is None or account.wall_ns <= 0:
        return None
    made = _Step(case, account)
    steps = steps_of(case.profile)
    main = None if isinstance(steps, NoSteps) else steps.main
    walls = main.walls_ns if main is not None and account.of == "step" else ()
    several = main is not None and account.of == "step" and main.timed > 1
    on_device = verdict.kind == "device" and float(made.device_time.sum()) / made.steps > account.wall_ns / 2
    where = _where(made, words, on_device)
    lines = any(one.place is not None for one in where)
    return Start(
        of=account.of,
        wall_ns=account.wall_ns,
        steps=account.steps,
        title=head(verdict),
        min_ns=main.min_ns if several and main else 0,
        max_ns=main.max_ns if several and main else 0,
        walls_ns=tuple(walls[-MOST_WALLS:]),
        text="\n".join(as_lines(verdict)),
        node=_node_of(made, verdict),
        bars=tuple(_bars(made, account)),
        ranks=rank_bars(case.profile, late_rank(case) if verdict.kind == "ranks" else -1),
        help=tuple(_help(verdict, found, file)),
        where=where,
        where_of="device time" if on_device else "time",
        no_lines="" if lines or not where else _no_lines(case),
        kernels=_kernels(made),
        device=_device_name(case),
        rules_silent=len(found.not_applicable) if found is not None else 0,
    )


class _Step:
    """Time per node of one step on the thread that sets its length, and of the device below it."""

    def __init__(self, case: Case, account: Account) -> None:
        self.case, self.account = case, account
        self.tree, self.scopes = case.tree, case.analysis.scopes
        loop = case.known_loop if account.of == "step" else None
        none = np.zeros(len(self.tree), np.int64)
        if loop is None:
            self.mine: Mask = np.ones(len(self.tree), np.bool_)
            self.time: Rows = np.maximum(self.tree.exclusive("time").sum, 0)
            self.device_time: Rows = np.maximum(self.tree.exclusive("gpu_time").sum, 0)
            self.steps = 1
            samples = np.where(outside_operators(case, self.mine), self.tree.exclusive("cpu_sample").sum, 0)
            self.time = self.time + samples
            self.scale, self.device_scale = self._scale(self.time), self._scale(self.device_time)
            return
        self.mine = loop.inside & (self.scopes.thread == self.scopes.thread[loop.anchors[0]])
        self.steps = loop.steps
        samples = np.where(outside_operators(case, self.mine), case.samples, 0) if case.sampled_ns else none
        self.time = np.where(self.mine, loop.time, 0) + samples
        self.device_time = np.where(loop.inside, case.gpu_time, 0) if case.has_device else none
        self.scale, self.device_scale = self._scale(self.time), self._scale(self.device_time)

    def _scale(self, time: Rows) -> float:
        """Parts of several threads or streams at a time add up to more than a step; scaled as the account is, no part
        and no sum of parts exceeds it."""
        whole = float(time.sum()) / self.steps
        return min(1.0, self.account.wall_ns / whole) if whole > 0 else 1.0

    def phases(self, rows: Rows) -> NDArray[np.str_]:
        """The phase of each of these nodes, empty outside of phases; communication there is one of its own."""
        names = at_rows(self.tree.frames["name"][self.tree.frame_of].astype(np.int64), self.scopes.phase, -1)[rows]
        text = self.tree.tables.strings
        known, number = distinct(names)
        kinds = [_PHASES.get(text[name], "") if name >= 0 else "" for name in known.tolist()]
        found = np.array(kinds, np.str_)[number]
        talks = classes_of_nodes(self.tree)[rows] == CLASSES.index("communication")
        return np.where((found == "") & talks, "communication", found)


def _bars(made: _Step, account: Account) -> list[Bar]:
    bars = []
    if (phases := _phase_bar(made, account)) is not None:
        bars.append(phases)
    bars.append(_lane(made, account, "thread", "main thread"))
    if account.lane("device"):
        bars.append(_lane(made, account, "device", _device_name(made.case) or "device"))
    return bars


def _phase_bar(made: _Step, account: Account) -> Bar | None:
    """None where the program has no phases."""
    rows = np.flatnonzero(made.time > 0)
    phases, times = made.phases(rows), made.time[rows]
    sums: dict[str, float] = {}
    first: dict[str, int] = {}
    for phase in np.unique(phases).tolist():
        here = np.where(phases == phase, times, 0)
        sums[phase] = float(here.sum()) / made.steps
        first[phase] = int(rows[np.argmax(here)])
    if not any(sums.get(name) for name in _ORDER[:-1]):
        return None
    scale = made.scale
    parts = [
        _bar_part(name or "other", name or OUTSIDE, sums[name] * scale, account.wall_ns, first[name])
        for name in _ORDER
        if sums.get(name, 0) * scale >= 0.5
    ]
    rest = account.wall_ns - sum(one.ns for one in parts)
    if rest > 0:
        share = rest / account.wall_ns
        parts.append(BarPart("between", "between operators", rest, share, "unexplained", "measured"))
    return Bar("phase", tuple(parts), scale < 1.0)


def _bar_part(key: str, label: str, ns: float, wall: int, node: int) -> BarPart:
    group = "wait" if key in ("data loading", "communication") else "work"
    return BarPart(key, label, int(ns), ns / wall, group, "measured", node)


def _lane(made: _Step, account: Account, lane: str, name: str) -> Bar:
    groups = {"core": "work", "busy": "work", "wait": "wait", "idle": "idle", "unexplained": "unexplained"}
    parts = []
    for one in account.lane(lane):
        lines = tuple(" ".join(filter(None, (place.text, place.what))) for place in one.places)
        node = _node_at(made, one.places[0].file, one.places[0].line) if one.places else -1
        short = {**SHORT, **IDLE} if one.group == "idle" else SHORT
        label = short.get(one.key, one.label).removeprefix("the ")
        parts.append(BarPart(one.key, label, one.ns, one.share, groups[one.group], one.known, node, lines))
    order = {"work": 0, "wait": 1, "idle": 1, "unexplained": 2}
    parts.sort(key=lambda one: (order[one.group], -one.ns))
    rest = account.wall_ns - sum(one.ns for one in parts)
    if parts and abs(rest) <= len(parts):  # whole nanoseconds of each part
        parts[0] = replace(parts[0], ns=parts[0].ns + rest)
    return Bar(name, tuple(parts))


def _node_at(made: _Step, file: str, line: int) -> int:
    """The node with most time on a user's line; -1 where no frame is there."""
    tree = made.tree
    if not file or not line:
        return -1
    files = tree.tables.strings.rows_equal(file)
    frames = np.isin(tree.frames["file"], files) & (tree.frames["line"] == line)
    user = made.scopes.user
    here = (at_rows(frames[tree.frame_of].astype(np.int64), user, 0) > 0) & (made.time + made.device_time > 0)
    if not here.any():
        return -1
    rows = np.flatnonzero(here)
    best = int(rows[np.argmax((made.time + made.device_time)[rows])])
    outer = int(made.scopes.outer[best])
    return outer if outer >= 0 else best


def _node_of(made: _Step, verdict: Verdict) -> int:
    return _node_at(made, verdict.place.file, verdict.place.line) if verdict.place is not None else -1


def _where(made: _Step, words: PathWords, on_device: bool) -> tuple[Line, ...]:
    """Lines of the program with most of a step; where none are known, modules or operators."""
    tree, scopes = made.tree, made.scopes
    time = made.device_time if on_device else made.time
    kept = time > 0
    if not kept.any():
        return ()
    line = made.case.user_line if (made.case.user_line[kept] >= 0).any() else np.full(len(tree), -1, np.int64)
    module = _module_keys(made)
    names = tree.frames["name"].astype(np.int64)[tree.frame_of]
    outer = at_rows(names, scopes.outer, -1)
    named = np.where(outer >= 0, outer, names)
    fallback = np.where(module >= 0, module, named)  # what there is of a name where no line is known
    rows = np.flatnonzero(kept)
    key = np.where(line >= 0, line, -2 - fallback)
    several = len(np.unique(module[rows])) > 1
    one_line = _is_one_line(key[rows], time[rows], _MOSTLY if several else _ONE_LINE)
    if one_line:  # which says little: what runs there is told apart
        key = factorized(key, module if several else np.where(outer >= 0, outer, -1))
    found, group = distinct(key[kept])
    of_phase = made.phases(rows)
    scale = made.device_scale if on_device else made.scale
    values = time[rows].astype(np.float64) * (scale / made.steps)
    sums = np.bincount(group, values, len(found))
    made_lines, whats = [], []
    for one in np.argsort(-sums, kind="stable")[:MOST_ROWS].tolist():
        here = group == one
        mine, of_mine = values[here], of_phase[here]
        forward = int(mine[of_mine == "forward"].sum())
        backward = int(mine[of_mine == "backward"].sum())
        rest = (of_mine != "forward") & (of_mine != "backward")
        other = int(mine[rest].sum())
        row = _largest(rows[here], mine, module)
        phase = (str(of_mine[rest][np.argmax(mine[rest])]) or OUTSIDE) if rest.any() else ""
        place = words.place(row)
        node = int(scopes.outer[row]) if scopes.outer[row] >= 0 else row
        ns = int(sums[one])
        name = "" if place is not None else _name(made, row)
        whats.append(_what(made, row, one_line and not several))
        made_lines.append(Line(place, name, "", phase, forward, backward, other, ns, ns / made.account.wall_ns, node))
    tails = distinct_parts([module for module, _ in whats])
    told = [" › ".join(filter(None, (tail, operator))) for tail, (_, operator) in zip(tails, whats, strict=True)]
    return tuple(replace(line, what=what) for line, what in zip(made_lines, told, strict=True))


def _largest(rows: Rows, values: Rows, module: Rows) -> int:
    """The node with most time of the module with most of it: what the line is named by."""
    found, group = np.unique(module[rows], return_inverse=True)
    most = group == np.argmax(np.bincount(group, values, len(found)))
    return int(rows[most][np.argmax(values[most])])


def _is_one_line(key: Rows, time: Rows, least: float) -> bool:
    """Whether so much of a step is on one line, such as the call of the whole model."""
    found, group = distinct(key)
    sums = np.bincount(group, time.astype(np.float64), len(found))
    return bool(sums.max() > least * sums.sum())


def _module_keys(made: _Step) -> Rows:
    """The module above each node by a number, those of numbered layers by one; -1 where there is none."""
    names = made.tree.frames["name"].astype(np.int64)[made.tree.frame_of]
    found = at_rows(names, made.scopes.module, -1)
    here, number = distinct(found)
    merged = [merged_layers(made.tree.tables.strings[one]) if one >= 0 else None for one in here.tolist()]
    first = dict(zip(reversed(merged), reversed(here.tolist()), strict=True))
    return np.array([first[name] for name in merged], np.int64)[number]


def _name(made: _Step, row: int) -> str:
    module, outer = int(made.scopes.module[row]), int(made.scopes.outer[row])
    tree = made.tree
    if module >= 0:
        return merged_layers(tree.text("name", int(tree.frame_of[module])))
    name = tree.text("name", int(tree.frame_of[outer if outer >= 0 else row]))
    return operator_text(name) if outer >= 0 else kernel_words(name)


def _what(made: _Step, row: int, one_line: bool) -> tuple[str, str]:
    """Module and operator around a node, of which the operator tells where all is on one line."""
    tree, scopes = made.tree, made.scopes
    module, outer = int(scopes.module[row]), int(scopes.outer[row])
    of_module = merged_layers(tree.text("name", int(tree.frame_of[module]))) if module >= 0 else ""
    operator = bare(tree.text("name", int(tree.frame_of[outer]))) if outer >= 0 else ""
    return (of_module, operator if one_line or not of_module else "")


def _no_lines(case: Case) -> str:
    imported = is_imported(case.profile.meta)
    return (
        "This trace holds no Python lines; record it with with_stack=True to see them."
        if imported
        else "No Python line is known for this work."
    )


def _kernels(made: _Step) -> tuple[Kernel, ...]:
    time = made.device_time
    rows = np.flatnonzero(time > 0)
    if not len(rows):
        return ()
    tree = made.tree
    names, of_row = np.unique(tree.frames["name"].astype(np.int64)[tree.frame_of[rows]], return_inverse=True)
    # variants of one kernel, such as two instances of a template, are one row
    found, of_name = np.unique([kernel_words(tree.tables.strings[int(one)]) for one in names], return_inverse=True)
    group = of_name[of_row]
    sums = np.bincount(group, time[rows].astype(np.float64), len(found)) * (made.device_scale / made.steps)
    calls = np.bincount(group, tree.exclusive("gpu_time").count[rows].astype(np.float64), len(found)) / made.steps
    kernels = []
    for one in np.argsort(-sums, kind="stable")[:MOST_ROWS].tolist():
        here = rows[group == one]
        node = int(here[np.argmax(time[here])])
        name = tree.text("name", int(tree.frame_of[node]))
        ns = int(sums[one])
        kernels.append(Kernel(name, str(found[one]), ns, ns / made.account.wall_ns, float(calls[one]), node))
    return tuple(kernels)


def _device_name(case: Case) -> str:
    names = sorted({one.name for one in case.profile.devices if one.name})
    count = len(case.profile.devices)
    if not names:
        return ""
    return names[0] if count < 2 else f"{count} × {names[0]}"


def _help(verdict: Verdict, found: Findings | None, file: str) -> list[Help]:
    """In the verdict's order."""
    findings = found.findings if found is not None else ()
    return [_helped(fix, _finding(fix, findings), verdict.account, file) for fix in verdict.fixes]


def _finding(fix: Fix, found: Sequence[Finding]) -> Finding | None:
    same = [one for one in found if one.rule == fix.rule]
    place = fix.place
    if place is not None:
        same.sort(key=lambda one: not (one.change_line and one.change_line.line == place.line))
    return same[0] if same else None


def _helped(fix: Fix, finding: Finding | None, account: Account | None, file: str) -> Help:
    place = None
    if fix.place is not None and fix.place.text:
        place = Place(fix.place.file, fix.place.short, fix.place.line, fix.place.function)
    said = fix_text(replace(fix, place=None), account).removeprefix(f"{fix.do}: ")
    scenario = finding.scenario if finding is not None else ""
    command = f"leadline whatif {file} {scenario}" if scenario else f"leadline analyze {file} --rule {fix.rule}"
    command = fix.measured_by or command
    uncertain = fix.measured_by and not fix.tried and fix.known != "at most"  # as fix_text says it
    remedy, evidence = (finding.remedy, finding.evidence) if finding is not None else ("", ())
    if fix.rule == CORES and account is not None:
        command, remedy = "uptime", CORES_REMEDY
        evidence = (f"{percent(fix.gain_ns / max(account.wall_ns, 1))} of the {account.of} spent waiting for a core",)
    return Help(
        fix.do,
        place,
        fix.gain_ns,
        fix.low_ns,
        fix.high_ns,
        "uncertain" if uncertain else fix.known,
        said,
        fix.rule,
        scenario,
        command,
        remedy,
        evidence,
        tuple(finding.paths) if finding is not None else (),
    )
