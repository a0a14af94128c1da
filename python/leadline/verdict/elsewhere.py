"""What other processes of the program do while the account's thread waits for what they make."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from leadline.analysis.case import Case
from leadline.analysis.functions import METRIC
from leadline.analysis.rules.processes import started
from leadline.analysis.threads import main_threads
from leadline.analysis.waiting import thread_waits
from leadline.units import percent
from leadline.verdict.about import Remarks

_SAYS: Mapping[str, str] = {
    "sleep": "sleeps",
    "lock": "waits for a lock",
    "gil": "waits for the interpreter",
    "io": "waits for files or pipes",
    "network": "waits for the network",
    "child": "waits for a process",
}
_WORTH = 0.2
"""Of the other process's time."""


def makers(case: Case) -> list[str]:
    """`meanwhile the process that runs actor sleeps 92 % of its time  train.py:13`: of the child whose main thread has
    most of its time in one place; empty where no child was measured."""
    children = {one.row for one in started(case)}
    mains = main_threads(case.profile)
    threads = {one.row: one for one in case.profile.threads if one.process in children and one.row in mains}
    waits = {one.thread: one for one in thread_waits(case.profile, case.analysis.scopes)[0]}
    found: list[tuple[float, str]] = []
    for row, thread in threads.items():
        if thread.wall_ns <= 0:
            continue
        for one in waits[row].lines if row in waits else ():
            line, share = case.line(one.row), one.ns / thread.wall_ns
            if line is not None and one.state in _SAYS and line.function != "<module>":
                found.append(
                    (share, _words(line.function, f"{_SAYS[one.state]} {percent(share)}", line.short, line.line))
                )
        mine = np.asarray(case.analysis.scopes.thread == thread.node.row)
        for function in case.sampled(mine, most=1):
            line, share = case.line(function.row), function.ns / thread.wall_ns
            if line is not None and line.function != "<module>":
                found.append((share, _words(function.name, f"computes {percent(share)}", line.short, line.line)))
    found.sort(key=lambda one: -one[0])
    return [text for share, text in found[:1] if share >= _WORTH]


def pool_in_line(case: Case) -> list[str]:
    """`XLA's threads wait for a core in 66 % of the time in which they could run`: of all but the main one;
    empty where it is little."""
    ran = waited = 0
    for one in thread_waits(case.profile, case.analysis.scopes)[0]:
        core = one.states_ns.get("core", 0)
        if not one.main and one.ran_ns > 0:
            ran, waited = ran + one.ran_ns, waited + core
    share = waited / max(ran + waited, 1)
    if share < _WORTH:
        return []
    return [f"XLA's threads wait for a core in {percent(share)} of the time in which they could run"]


def computing(case: Case, remarks: Remarks) -> list[str]:
    """`meanwhile the child processes compute, 90 % of it in Purchases.__getitem__  train.py:33`: what those that take
    the cores do with them, by samples."""
    children = case.mask([one.node.row for one in started(case)])
    whole = int(case.tree.exclusive(METRIC).sum[children & ~case.importing].sum())
    for function in case.sampled(children, most=1):
        line, share = case.line(function.row), function.ns / max(whole, 1)
        if line is not None and share >= _WORTH:
            at = f"{line.short.rsplit('/', 1)[-1]}:{line.line}"
            said = f"meanwhile the child processes compute, {percent(share)} of it in {function.name}  {at}"
            return [said + remarks.of_line(line)]
    return []


def _words(function: str, does: str, file: str, line: int) -> str:
    return f"meanwhile the process that runs {function or file} {does} of its time  {file.rsplit('/', 1)[-1]}:{line}"
