"""`build_report`: from a profile and the user's options to the one data model that every format draws. Pure."""

from __future__ import annotations

import re
import shlex

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import replace
from leadline.analysis import analysis_of, breakdown
from leadline.analysis.analyze import quiet
from leadline.analysis.case import case_of
from leadline.analysis.columns import nearest
from leadline.analysis.engine_phases import NO_WORK, START_UP, in_phase
from leadline.analysis.findings import Findings, from_object
from leadline.analysis.functions import METRIC, functions, imports
from leadline.engines import engines_of, together
from leadline.opening.commands import output_for
from leadline.profiles import Profile, Tree
from leadline.profiles.tree import present_name
from leadline.report import devices, provenance, sampled
from leadline.report.model import Focus, HotPath, OperatorRow, Report, ReportOptions, Total
from leadline.report.paths import PathWords
from leadline.report.programs import compiled_programs
from leadline.report.ranks import ranks_of, with_spreads
from leadline.report.start import start_of
from leadline.report.steps import shown_steps
from leadline.report.timeline import wait_lines
from leadline.report.timesplit import threads_left_out, time_splits
from leadline.report.whole_tables import whole_tables
from leadline.schema import MetricInfo
from leadline.verdict.judge import quietly

_OPERATOR_ORDERS = ("count", "call_time")


class UnknownMetricError(ValueError):
    """`--sort` names a metric the profile does not have; the message lists those it has."""


class BadPatternError(ValueError):
    """`--focus` is not a regular expression."""


def sort_metrics(tree: Tree) -> list[str]:
    """What `--sort` may name: additive metrics of this profile, and `call_time` and `count` for the operators."""
    return [str(info.kind) for info in tree.measured if info.additive] + list(_OPERATOR_ORDERS)


def build_report(
    profile: Profile, options: ReportOptions | None = None, file: str = "FILE", found: Findings | None = None
) -> Report:
    """The report on `profile`; `file` is its name as the next commands should give it, `found` what the analyzer found,
    where that is known already.

    Raises UnknownMetricError, BadPatternError and TooLargeError, each with a sentence.
    """
    options = options or ReportOptions()
    analysis = analysis_of(profile)
    tree, scope = analysis.tree, analysis.scopes
    sort = _sort_metric(profile, options.sort)
    path_metric = _default_metric(profile) if sort in _OPERATOR_ORDERS else sort
    kept, focus = _focused(tree, options.focus, path_metric)
    words = PathWords(analysis, provenance.working_directory(profile), options.hide_library_frames, options.frames)

    additive = [str(info.kind) for info in tree.measured if info.additive]
    operators = _ordered(breakdown.operators(tree, scope, kept), sort)
    by_function = functions(tree, kept)
    waiting, waiting_hidden = sampled.waiting(analysis, words)
    modules = breakdown.modules(tree, scope, kept, options.merge_layers)
    top = max(options.top, 0)
    counted = kept & ~imports(tree) if path_metric == METRIC and sort != options.sort and focus is None else kept
    engine = together(engines_of(profile.meta)) if focus is None else None
    nothing = np.zeros_like(kept)
    begun, idle = (kept & in_phase(tree, name) if engine else nothing for name in (START_UP, NO_WORK))
    counted = counted & ~begun & ~idle
    paths = analysis.hot_paths.ranked(path_metric, top, counted, also=additive)
    report = Report(
        meta=provenance.meta(profile, file),
        options=options,
        sort=sort,
        path_metric=path_metric,
        path_total=next((_total(tree, info, counted) for info in tree.measured if str(info.kind) == path_metric), None),
        imports_ns=int(tree.exclusive(path_metric).sum[kept & ~counted & ~begun & ~idle].sum()),
        focus=focus,
        totals={str(info.kind): _total(tree, info, kept) for info in tree.measured},
        splits=time_splits(analysis, words),
        splits_hidden=threads_left_out(analysis),
        engine=engine,
        start_up_ns=int(tree.exclusive(path_metric).sum[begun].sum()),
        no_work_ns=int(tree.exclusive(path_metric).sum[idle & ~begun].sum()),
        steps=shown_steps(profile) if focus is None else None,
        paths=with_spreads(profile, [words.path(entry) for entry in paths.entries], path_metric),
        paths_hidden=paths.of - len(paths.entries),
        functions=tuple(words.function(row) for row in by_function[:top]),
        functions_hidden=max(0, len(by_function) - top),
        operators=tuple(operators[:top]),
        operators_hidden=max(0, len(operators) - top),
        operator_calls=sum(row.count for row in operators),
        modules=tuple(modules[:top]),
        modules_hidden=max(0, len(modules) - top),
        phases=tuple(breakdown.phases(tree, scope, kept)),
        memory=devices.memory(analysis, words, kept, top),
        gpu=devices.gpu(profile, kept, top),
        programs=compiled_programs(analysis, words, kept),
        losses=provenance.losses(profile),
        cost=provenance.cost(profile),
        findings=_saved_findings(profile),
        ranks=ranks_of(profile),
        waits=wait_lines(profile),
        counters=sampled.counters(analysis, kept, words),
        waiting=waiting,
        waiting_hidden=waiting_hidden,
        tables=whole_tables(analysis, kept) if options.whole_tables else None,
    )
    if options.verdict and focus is None:
        report = _with_verdict(report, profile, found, words)
    inside_kernels = bool(tree.exclusive("instruction_samples").count.any())
    return replace(report, next_commands=_next_commands(report, len(profile.events["start_ns"]) > 0, inside_kernels))


def _with_verdict(report: Report, profile: Profile, found: Findings | None, words: PathWords) -> Report:
    """A report is worth showing without it: whatever fails there leaves it out."""
    found = report.findings if found is None else found
    try:
        found = quiet(profile) if found is None else found
    except Exception:
        found = None
    verdict = quietly(profile, found)
    start = None
    if verdict is not None:
        try:
            start = start_of(verdict, found, words, case_of(profile), report.meta.file)
        except Exception:
            start = None
    return replace(report, verdict=verdict, start=start)


def _saved_findings(profile: Profile) -> Findings | None:
    saved = profile.meta.get("findings")
    try:
        return from_object(saved) if isinstance(saved, dict) else None
    except ValueError:  # of another release, or written by somebody else: `leadline analyze` makes them anew
        return None


_ENOUGH_SAMPLES = 300
"""With fewer of those that nobody asked for, an order of lines by samples would be chance."""


def _default_metric(profile: Profile) -> str:
    """Samples see all CPU time, also between operators; where there are none or few, operators and regions have
    theirs."""
    tree = profile.tree
    asked = profile.meta.get("asked")
    few = bool(isinstance(asked, dict) and asked.get("cpu_sample_unasked"))
    few &= int(tree.exclusive(METRIC).count.sum()) < _ENOUGH_SAMPLES
    present = [str(info.kind) for info in tree.measured if info.additive]
    for metric in ("gpu_time", "cpu_sample", "time"):
        if metric in present and not (few and metric == METRIC and "time" in present):
            return metric
    return present[0] if present else "time"


def _sort_metric(profile: Profile, wanted: str | None) -> str:
    tree = profile.tree
    if wanted is None:
        return _default_metric(profile)
    known, wanted = sort_metrics(tree), present_name(wanted)
    if wanted not in known:
        raise UnknownMetricError(f"This profile has no metric {wanted!r} to sort by; it has {', '.join(known)}.")
    return wanted


def _focused(tree: Tree, pattern: str | None, metric: str) -> tuple[NDArray[np.bool_], Focus | None]:
    """Nodes at or below a frame that `pattern` finds (all without one), and what share of `metric` they hold."""
    everything = np.ones(len(tree), np.bool_)
    if pattern is None:
        return everything, None
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise BadPatternError(
            f"{pattern!r} is not a regular expression: {error}; put a \\ before special characters."
        ) from None
    found = _frames_found(tree, compiled)[tree.frame_of]
    found[0] = False
    kept = nearest(tree.shape, found) >= 0
    sums = tree.exclusive(metric).sum
    whole = int(sums.sum())
    share = float(sums[kept].sum()) / whole if whole else 0.0
    return kept, Focus(pattern, share, int(kept.sum()))


def _frames_found(tree: Tree, pattern: re.Pattern[str]) -> NDArray[np.bool_]:
    """Frames whose name or `file:line` the pattern finds; each distinct text is searched once."""
    names, of_name = np.unique(tree.frames["name"], return_inverse=True)
    text = tree.tables.strings
    named = np.array([bool(pattern.search(text[row])) for row in names.tolist()], np.bool_)[of_name]
    places, of_place = np.unique(np.stack((tree.frames["file"], tree.frames["line"])), axis=1, return_inverse=True)
    placed = np.array([bool(pattern.search(f"{text[file]}:{line}")) for file, line in places.T.tolist()], np.bool_)
    found: NDArray[np.bool_] = named | placed[of_place.ravel()]
    return found


def _total(tree: Tree, info: MetricInfo, kept: NDArray[np.bool_]) -> Total:
    measures = tree.exclusive(info.kind)
    return Total(info.unit, int(measures.sum[kept].sum()), int(measures.count[kept].sum()))


def _ordered(rows: list[OperatorRow], sort: str) -> list[OperatorRow]:
    if sort == "count":
        return sorted(rows, key=lambda row: (-row.count, row.name))
    if sort == "call_time":
        return sorted(rows, key=lambda row: (-row.time.sum, row.name))
    if sort == "gpu_time":
        return sorted(rows, key=lambda row: (-row.gpu_time_ns, -row.time.self, row.name))
    if sort == "alloc_bytes":
        return sorted(rows, key=lambda row: (-row.alloc_bytes, -row.time.self, row.name))
    return rows


def _next_commands(report: Report, has_window: bool, sampled: bool) -> tuple[str, ...]:
    """What to type next: the page, a closer look at the hottest line, the source of kernels where their instructions
    were sampled, then predictions from the trace window where there is one, else another viewer."""
    file = report.meta.file
    quoted = shlex.quote(file)
    commands = [f"leadline report {quoted} --format html -o {shlex.quote(output_for(file, '.html'))}"]
    line = _hottest_line(report.paths)
    if line and not report.options.focus:
        commands.append(f"leadline report {quoted} --focus {shlex.quote(line)}")
    if report.ranks is not None and report.ranks.alone:
        commands.append(f"leadline report {quoted} --rank {report.ranks.alone[0]}")
    if sampled:
        commands.append(f"leadline report {quoted} --source")
    if has_window:
        commands.append(f"leadline whatif {quoted}")
    elif not sampled:
        other = shlex.quote(output_for(file, ".speedscope.json"))
        commands.append(f"leadline export {quoted} --format speedscope -o {other}")
    return tuple(commands)


def _hottest_line(paths: tuple[HotPath, ...]) -> str:
    """`train\\.py:41$` of the hottest path that has a user's line, as --focus takes it."""
    for path in paths:
        if path.place and path.place.line and path.place.short.isprintable():
            return re.escape(f"{path.place.short}:{path.place.line}") + "$"
    return ""
