"""`hotspot`: one call path takes a large part of the step (DeepContext, section 4.3, analysis 1)."""

from __future__ import annotations

import numpy as np

from leadline.analysis.columns import Rows, sums_in_order
from leadline.analysis.compilers import compilers
from leadline.analysis.rules.base import Case, Finding, Line, Option, Rule, Severity, Values
from leadline.analysis.rules.collectives import collectives
from leadline.analysis.rules.library_lines import library_lines
from leadline.analysis.rules.place import TELLING, instead_at, known_of
from leadline.analysis.rules.whole_line import line_ns
from leadline.analysis.rules.words import kernel, module, operator, several
from leadline.schema import FrameKind
from leadline.units import duration, percent

_SORTING = ("sort", "topk", "unique", "nonzero", "cumsum")
_DECOMPOSING = ("svd", "linalg_eig", "linalg_inv", "cholesky", "linalg_qr", "matrix_exp", "pinv", "lstsq", "slogdet")
_ADVICE = (
    (
        ("backwardhook",),
        "What runs here are hooks of modules (register_full_backward_hook): inspect its children with `leadline "
        "report --focus`, and remove those that only observe.",
    ),
    (
        _DECOMPOSING,
        "The time of a decomposition grows with the third power of the size, and it uses cores badly: keep its result "
        "for "
        "several steps, take the largest singular value by power iteration, and solve (torch.linalg.solve) instead of "
        "inverting.",
    ),
    (
        _SORTING,
        "Sorting and selecting are slow on every device: check whether the step needs them for all elements, and in "
        "every step.",
    ),
)
_SMALL_NS = 30_000
"""An operator that takes no longer is mostly called, not computed."""
_CALLED = (
    "Give each call more work (a larger batch, several sequences at a time), or let {compiler} make fewer of them: "
    "these are many short calls, and dispatch takes most of their time."
)
_COMPILED = (
    "It is compiled already, and each run is short: give a run more work (a larger batch, several steps in one "
    "`lax.scan` or `tf.while_loop`), so that calls take less of the loop."
)
_MOST_BY_ONE = 0.25
"""Of the path's time below its own operator: one operator there that takes more is what the path consists of."""


class Hotspot(Rule):
    name = "hotspot"
    asks = "Which call paths take a large part of the step?"
    general = True
    options = (
        Option("share", 20, "%", "halving less than a fifth of the step gains less than a tenth"),
        Option("most", 2, "1", "`leadline report` has a table of everything large"),
    )

    def check(self, case: Case, values: Values) -> list[Finding]:
        device = case.has_device
        time = case.gpu_time if device else case.time_and_samples
        total = int(time.sum()) if device else case.total_ns
        time = np.where(collectives(case), 0, time)  # communication is a question of its own
        groups = case.grouped(time > 0, time, case.analysis.hot_paths.group)
        if not total:
            return []
        made = []
        for group in groups[: int(values["most"])]:
            share = group.value / total
            if share < values["share"]:
                break
            made.append(self._finding(case, group.row, group.value, share, np.sort(group.rows), device))
        made += library_lines(case, self.name, self.learn_more, values["share"])
        return [one for one in made if one is not None]

    def _finding(self, case: Case, row: int, ns: int, share: float, rows: Rows, device: bool) -> Finding | None:
        scopes = case.analysis.scopes
        what = operator(case.name(int(scopes.outer[row]))) or case.name(int(scopes.phase[row])) or _python(case, row)
        inside = case.module(row)
        where = f" in {module(inside)}" if inside else ""
        phase = case.name(int(scopes.phase[row]))
        back = f" ({phase})" if phase not in ("", "forward", what) else ""
        of = "the device time" if device else "the step"
        begun = np.unique(scopes.outer[rows])  # an operator that calls others is one call
        calls = int(case.calls[begun[begun >= 0]].sum())
        each = ns / max(calls, 1)
        small = not device and 0 < each < _SMALL_NS
        parts = _parts(case, rows, ns, device=device)
        names = [what.lower(), *(one.lower() for one in parts)]  # a norm may be a decomposition
        known = next((text for keys, text in _ADVICE for name in names if any(key in name for key in keys)), "")
        instead = _instead(case, row)
        if not (known or small or parts or instead):
            return None
        return Finding(
            self.name,
            Severity.WARNING if instead else Severity.INFO,
            f"{what}{back}{where} takes {percent(share)} of {of}",
            case.at_most(line_ns(case, row), "bound: all the time of this line, and what waits for it (Amdahl)")
            if instead and not device
            else case.at_most(ns, "bound: all the time of this path (Amdahl)"),
            tuple(rows[:20].tolist()),
            case.lines([row]),
            (
                f"{duration(case.per_step(ns))} a step of {duration(case.loop.step_ns)}",
                *((f"{several(case.per_step(calls), 'call')} a step of {duration(each)}",) if calls else ()),
                *parts,
                *_known(case, row),
            ),
            instead or self._advice(case, row, known or _LOOK, small=small),
            self.learn_more,
            share,
            of_place=bool(instead),
        )

    def _advice(self, case: Case, row: int, known: str, *, small: bool) -> str:
        if not small:
            return known
        outer = case.analysis.scopes.outer[row]
        detail = case.tree.node(int(outer)).detail if outer >= 0 else {}
        if "hlo" in detail or "node" in detail:  # inside of a program of XLA, or a graph of TensorFlow
            return _COMPILED
        return _CALLED.format(compiler=compilers(case.profile.meta))


_LOOK = "Inspect the largest of its parts with `leadline report --focus`."


def _parts(case: Case, rows: Rows, ns: int, *, device: bool) -> tuple[str, ...]:
    """What of the path's time is in operators below its own, or kernels, the largest first; empty where all of it is
    its own: then there is nothing to say that its name does not."""
    time = case.gpu_time if device else case.time
    outer = np.unique(case.analysis.scopes.outer[rows])
    own = {case.name(row) for row in outer.tolist()}
    inside = rows[np.isin(case.tree.kinds[rows], (int(FrameKind.OPERATOR), int(FrameKind.KERNEL)))]
    sums: dict[str, int] = {}
    for frame, spent in sums_in_order(case.tree.frame_of[inside], time[inside]):
        name = case.tree.text("name", frame)
        if name not in own:
            sums[name] = sums.get(name, 0) + spent
    ranked = sorted(sums.items(), key=lambda item: -item[1])[:3]
    if not ranked or len(sums) < 2 or ranked[0][1] < _MOST_BY_ONE * ns:
        return ()
    return ("of it " + ", ".join(f"{percent(part / max(ns, 1))} in {_short(name)}" for name, part in ranked),)


def _short(name: str) -> str:
    return operator(name) if "::" in name and "(" not in name else kernel(name)


def _python(case: Case, row: int) -> str:
    """What is known of Python without an operator: by samples, so it is the line's function."""
    line = case.line(row)
    return f"{line.function or line.short} in Python" if line else "one line"


def _line_and_operator(case: Case, row: int) -> tuple[Line | None, str]:
    inner = int(case.analysis.scopes.inner[row])
    return case.line(row), case.name(inner) if inner >= 0 else ""


def _instead(case: Case, row: int) -> str:
    line, what = _line_and_operator(case, row)
    return instead_at(case, line.file, line.line, what) if line is not None else ""


def _known(case: Case, row: int) -> tuple[str, ...]:
    """What tells the cause of the line, where anything does."""
    line, what = _line_and_operator(case, row)
    known = known_of(case, line.file, line.line, what, least=TELLING) if line is not None else ""
    return (f"the line {known}",) if known else ()
