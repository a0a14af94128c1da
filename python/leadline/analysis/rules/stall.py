"""`stall`: warps of a hot kernel stand still, and why (DeepContext, section 4.3, analysis 4)."""

from __future__ import annotations

import numpy as np

from leadline.analysis.columns import nearest, subtree_sums
from leadline.analysis.rules.base import CannotTell, Case, Finding, Option, Rule, Severity, Values
from leadline.analysis.rules.words import duration, percent
from leadline.profiles.tree import json_object
from leadline.schema import FrameKind

_ADVICE = (
    (
        ("long_scoreboard", "long_sb", "lg_throttle", "memory_dependency"),
        "It waits for device memory: let neighbouring threads read neighbouring elements (contiguous inputs), keep "
        "what is read twice in shared memory, use a smaller type, or fuse it with the operator that wrote its input.",
    ),
    (
        ("constant", "imc", "no_instruction", "instruction_fetch"),
        "It waits for constants or for its own code: short kernels on few elements do; give each launch more work, or "
        "let torch.compile fuse it with its neighbours.",
    ),
    (
        ("barrier", "membar", "sync"),
        "Threads of a block wait for each other: give them equal work, use smaller blocks, or synchronise less often.",
    ),
    (
        ("short_scoreboard", "mio", "shared"),
        "It waits for shared memory or special functions: avoid bank conflicts and needless exactness.",
    ),
    (
        ("wait", "exec_dependency", "math", "dispatch", "pipe"),
        "Its instructions wait for each other or for the arithmetic units: give each thread independent elements "
        "(vectorised loads), avoid conversions between types, use tensor cores.",
    ),
)


class Stall(Rule):
    name = "stall"
    asks = "Do the warps of a kernel that takes much of the device's time stand still, and why?"
    options = (
        Option("share", 5, "%", "of the device time that the kernel takes; stalls elsewhere cost nothing"),
        Option("stalled", 50, "%", "of the kernel's samples; every kernel waits for memory now and then"),
        Option("samples", 100, "1", "of one kernel; fewer do not tell its reasons apart"),
        Option("most", 3, "1", "kernels; the paper looks at the top ones"),
    )

    def check(self, case: Case, values: Values) -> list[Finding]:
        tree = case.tree
        samples = tree.exclusive("instruction_samples").sum
        if not samples.any():
            raise CannotTell("no instructions of kernels were sampled")
        frames = np.flatnonzero(tree.frames["kind"] == int(FrameKind.INSTRUCTION))
        reasons = [""] * len(tree.frames["kind"])
        for frame in frames.tolist():
            reasons[frame] = str(json_object(tree.text("detail", frame)).get("stall", ""))
        stands = np.array([bool(reason) for reason in reasons], np.bool_)[tree.frame_of]
        all_of = subtree_sums(tree.shape, samples)
        stalled = subtree_sums(tree.shape, np.where(stands, samples, 0))
        kernels = (tree.kinds == int(FrameKind.KERNEL)) & case.loop.inside & (case.gpu_time > 0)
        names = tree.frames["name"][tree.frame_of].astype(np.int64)
        owner = nearest(tree.shape, kernels)
        made: list[Finding] = []
        for group in case.grouped(kernels, case.gpu_time, names):
            share = group.value / max(case.cost_of_all, 1)
            if share < values["share"] or len(made) >= values["most"]:
                break
            seen = int(all_of[group.rows].sum())
            part = int(stalled[group.rows].sum()) / max(seen, 1)
            if seen < values["samples"] or part < values["stalled"]:
                continue
            below = np.flatnonzero(stands & np.isin(owner, group.rows) & (samples > 0))
            counted: dict[str, int] = {}
            for row in below.tolist():
                reason = reasons[int(tree.frame_of[row])]
                counted[reason] = counted.get(reason, 0) + int(samples[row])
            ranked = sorted(counted.items(), key=lambda one: (-one[1], one[0]))
            hottest = below[np.argsort(-samples[below], kind="stable")][:3].tolist()
            made.append(
                Finding(
                    self.name,
                    Severity.WARNING,
                    f"{case.name(group.row)} stands still in {percent(part)} of its samples, mostly for {ranked[0][0]}",
                    case.gain(group.value, (0, 0.3 * part, part), "bound: the kernel without its stalls"),
                    tuple(group.rows[:20].tolist()),
                    case.lines([group.row]),
                    (
                        f"{duration(case.per_step(group.value))} a step, {percent(share)} of the device time",
                        "reasons: " + ", ".join(f"{name} {percent(count / seen)}" for name, count in ranked[:3]),
                        "instructions: " + ", ".join(_place(case, row) for row in hottest),
                    ),
                    _advice(ranked[0][0]),
                    self.learn_more,
                    share * part,
                )
            )
        return made


def _place(case: Case, row: int) -> str:
    """`kernel.cu:12 LDG.E`, or the address in the kernel where lines are unknown."""
    frame = int(case.tree.frame_of[row])
    file, line = case.tree.text("file", frame), int(case.tree.frames["line"][frame])
    where = f"{file.rpartition('/')[2]}:{line}" if file and line else f"at {int(case.tree.frames['address'][frame]):#x}"
    return f"{where} {case.tree.text('name', frame)}"


def _advice(reason: str) -> str:
    word = reason.lower().replace(" ", "_")
    found = (text for keys, text in _ADVICE if any(key in word for key in keys))
    return next(
        found, "Look at these instructions in the kernel's source; another kernel for the operator may not wait."
    )
