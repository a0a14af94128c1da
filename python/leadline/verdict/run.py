"""The account of a whole run, where nothing repeats: start-up, imports, Python by function, operators by class."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from leadline.analysis.case import Case
from leadline.analysis.functions import METRIC, imports
from leadline.analysis.threads import main_threads
from leadline.analysis.workclass import classes_of_nodes
from leadline.schema import FrameKind
from leadline.verdict.account import PART_OF_CLASS
from leadline.verdict.contention import contention
from leadline.verdict.ledger import LABELS
from leadline.verdict.model import Account, Part
from leadline.verdict.places import Places
from leadline.work.operators import CLASSES


def account_of_run(case: Case) -> Account | None:
    """Of the main thread that did most; None where there is none."""
    profile = case.profile
    mains = main_threads(profile)
    threads = [one for one in profile.threads if one.row in mains and one.wall_ns > 0]
    if not threads:
        return None
    thread = max(threads, key=lambda one: (one.operator_ns + one.cpu_ns, one.wall_ns))
    tree, scopes = case.tree, case.analysis.scopes
    mine = scopes.thread == thread.node.row
    wall = thread.wall_ns
    drafts: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    time = np.where(mine, np.maximum(tree.exclusive("time").sum, 0), 0)
    classes = classes_of_nodes(tree)
    operators = (tree.kinds == int(FrameKind.OPERATOR)) | (tree.kinds == int(FrameKind.REGION))
    for key in dict.fromkeys(PART_OF_CLASS.values()):
        numbers = [CLASSES.index(name) for name, part in PART_OF_CLASS.items() if part == key]
        here = operators & np.isin(classes, numbers)
        if key == "moves":
            here |= operators & (classes < 0)
        drafts[key] = (here, time)
    phase = tree.kinds == int(FrameKind.PHASE)
    for name, key in (("data loading", "data"), ("compile", "compile")):
        here, values = drafts.get(key, (np.zeros(len(tree), np.bool_), time))
        # a compiler's stages are phases of their own below
        drafts[key] = (here | (phase & case.below(case.named(FrameKind.PHASE, name))), values)
    samples = np.where(mine & (scopes.inner < 0), tree.exclusive(METRIC).sum, 0)
    importing = imports(tree)
    drafts["imports"] = (importing, samples)
    drafts["python"] = (~importing, samples)
    places = Places(case)
    parts: list[Part] = []
    for key, (mask, values) in drafts.items():
        rows = np.flatnonzero(mask & (values > 0))
        if not len(rows):
            continue
        ns = int(values[rows].sum())
        label = LABELS.get(key, "importing modules")
        group = "wait" if key in ("data", "ranks") else "core"
        known = "sampled" if key in ("python", "imports") else "measured"
        found = places.of(rows, values[rows].astype(np.float64), functions=key in ("python", "imports", "data"))
        parts.append(Part(key, label, "thread", group, ns, ns / wall, known, 0, found))
    booked = sum(one.ns for one in parts)
    if booked > wall:
        parts = [_scaled(one, wall / booked, wall) for one in parts]
        booked = sum(one.ns for one in parts)
    known, ratio = contention(profile, thread).queue
    queued = int(min(wall - booked, thread.cpu_ns * ratio)) if wall > booked else 0
    if queued > 0:
        parts.append(Part("core", LABELS["core"], "thread", "wait", queued, queued / wall, known, 0))
        booked += queued
    parts.sort(key=lambda one: -one.ns)
    if wall > booked:
        parts.append(Part("unexplained", LABELS["unexplained"], "thread", "unexplained", wall - booked,
                          (wall - booked) / wall, "estimated", 0))  # fmt: skip
    rank = next((one.rank for one in profile.processes if one.row == thread.process), -1)
    return Account("run", wall, 0, rank, tuple(parts), ("nothing repeats often enough to be a step",))


def _scaled(part: Part, factor: float, wall: int) -> Part:
    ns = int(part.ns * factor)
    return replace(part, ns=ns, share=ns / wall)
