"""Classes of work (`leadline.work`) of a tree's nodes, the operator before the kernel's name."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leadline._once import once
from leadline.analysis.columns import Rows, nearest
from leadline.analysis.timesplit import communication_frames
from leadline.profiles import Tree
from leadline.schema import FrameKind
from leadline.work.kernels import class_of_kernel
from leadline.work.operators import CLASSES, COMPILATION, class_of_generated, class_of_operator

_DEVICE_FRAMES = (FrameKind.KERNEL, FrameKind.COPY, FrameKind.COLLECTIVE)


def classes_of_work(tree: Tree) -> Rows:
    """Rows of CLASSES per node, as `classes_of_nodes`; device work below no operator that tells by its own name, else
    unknown."""
    found = classes_of_nodes(tree).copy()
    kinds = tree.kinds
    for row in np.flatnonzero(np.isin(kinds, [int(kind) for kind in _DEVICE_FRAMES])).tolist():
        kind = FrameKind(int(kinds[row]))
        own = class_of_kernel(tree.text("name", int(tree.frame_of[row])))
        if kind == FrameKind.COLLECTIVE or own == "communication":
            found[row] = CLASSES.index("communication")
        elif kind == FrameKind.COPY:
            found[row] = CLASSES.index("copy")
        elif found[row] < 0 or (CLASSES[found[row]] == "other" and own != "unknown"):
            found[row] = CLASSES.index(own)
    return np.where(found < 0, CLASSES.index("unknown"), found)


@once
def classes_of_nodes(tree: Tree) -> Rows:
    """Per node a row of CLASSES, by the innermost operator on its path that has a class; work in an optimizer's step
    that would be element-wise or a copy is the optimizer's (but for its closure, which is the program's own work), and
    all that compiling runs is compilation. -1 where no operator tells. Not to be written to."""
    kinds = tree.kinds
    frames = len(tree.frames["kind"])
    operators = tree.frames["kind"] == int(FrameKind.OPERATOR)
    regions = (tree.frames["kind"] == int(FrameKind.REGION)) | (tree.frames["kind"] == int(FrameKind.COLLECTIVE))
    own = np.full(frames, -1, np.int64)
    made_by_compiler = generated_frames(tree)
    optimizing = np.zeros(frames, np.bool_)
    for frame in np.flatnonzero(operators | regions | (tree.frames["kind"] == int(FrameKind.PHASE))).tolist():
        name = tree.text("name", frame)
        if tree.frames["kind"][frame] == int(FrameKind.PHASE):
            optimizing[frame] = name == "optimizer"
        elif made_by_compiler[frame]:
            own[frame] = CLASSES.index(class_of_generated(tree.text("detail", frame)))
        elif known := class_of_operator(name):
            optimizing[frame] = name.startswith("Optimizer.step#")
            own[frame] = CLASSES.index(known) if operators[frame] or known == "communication" else -1
    own[communication_frames(tree)] = CLASSES.index("communication")  # also waiting for a collective
    compiling = nearest(tree.shape, tree.frame_rows(FrameKind.PHASE, "compile")[tree.frame_of]) >= 0
    made = own[tree.frame_of]
    borders = (kinds == int(FrameKind.THREAD)) | (kinds == int(FrameKind.PROCESS))
    borders |= tree.frame_rows(FrameKind.PHASE, "closure")[tree.frame_of]
    borders[:1] = True  # nothing is taken over from above one
    update, other = CLASSES.index("optimizer"), CLASSES.index("other")
    tells = (made >= 0) & (made != other)
    told = made[nearest(tree.shape, tells | borders)]
    vague = nearest(tree.shape, (made == other) | borders)
    found = np.where((told < 0) & (made[vague] == other), other, told)
    optimizing_row = optimizing[tree.frame_of]
    inside = optimizing_row[nearest(tree.shape, optimizing_row | borders)] & ~borders
    weak = (CLASSES.index("element-wise"), CLASSES.index("copy"), other, -1)
    found[inside & np.isin(found, weak)] = update
    found[compiling] = CLASSES.index(COMPILATION)
    return found


def generated_frames(tree: Tree) -> NDArray[np.bool_]:
    """Per frame whether it is a kernel that torch.compile made for the CPU, which is a region that says of what."""
    regions = np.flatnonzero(tree.frames["kind"] == int(FrameKind.REGION)).tolist()
    found = np.zeros(len(tree.frames["kind"]), np.bool_)
    found[[frame for frame in regions if tree.text("detail", frame).startswith('{"operators": [')]] = True
    return found
