"""On whose behalf a place runs: a hook, a callback, a data set, a worker process, a scheduler, another thread."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping

from leadline.analysis.calls_in_source import hooks_of, user_trees
from leadline.analysis.case import Case
from leadline.analysis.columns import Mask
from leadline.analysis.origin import Origin, origin
from leadline.analysis.rules.jaxwork import by_themselves
from leadline.analysis.rules.place.at import At, cost_of, loop_of
from leadline.analysis.rules.place.fact import Fact
from leadline.analysis.threads import main_threads
from leadline.analysis.wrappers import without_wrappers
from leadline.profiles.tree import Node
from leadline.schema import FrameKind

_HOOKS: Mapping[str, str] = {
    "register_forward_hook": "a forward hook",
    "register_forward_pre_hook": "a forward pre-hook",
    "register_full_backward_hook": "a backward hook",
    "register_full_backward_pre_hook": "a backward pre-hook",
    "register_hook": "a hook of a tensor's gradient",
    "register_post_accumulate_grad_hook": "a hook of each gradient",
    "register_step_pre_hook": "a hook of the optimizer",
    "register_step_post_hook": "a hook of the optimizer",
    "register_comm_hook": "the communication hook of DDP",
}
_METHODS: Mapping[str, str] = {
    "__getitem__": "to get one sample or item",
    "__getitems__": "to get the samples of a batch",
    "__iter__": "to go through a data set",
    "__next__": "to get the next item",
    "__repr__": "to format an object as text",
    "__str__": "to format an object as text",
    "__format__": "to format an object as text",
    "__del__": "to remove an object",
    "__deepcopy__": "to copy an object",
    "__getstate__": "to pickle an object",
    "__setstate__": "to unpickle an object",
    "state_dict": "to make a state_dict",
    "configure_optimizers": "to make optimizers",
}
"""Methods of the program that Python or a framework calls: for what."""
_METRICS = r"/torchmetrics/"
_METRIC_LATER = (
    "Only update the metric at each step, and compute it at the end of a pass or every hundredth step: what it has "
    "kept grows with the steps."
)
_LIBRARIES = (
    (r"/torch/optim/lr_scheduler\.py:", "in a learning-rate scheduler", 0.7),
    (r"/torch/nn/parallel/distributed\.py:.*sync.*buffers", "to send the module's buffers to all ranks", 0.7),
    (r"/torch/optim/swa_utils\.py:", "in a moving average of the weights", 0.7),
    (r"/torch/_tensor_str\.py:", "to format a tensor as text", 0.8),
    (r"(^|/)logging/__init__\.py:", "to log a message", 0.7),
    (r"/(tensorboardX?|torch/utils/tensorboard)/", "to log for TensorBoard", 0.7),
    (r"/(wandb|mlflow)/", "to log to a tracker", 0.7),
    (_METRICS, "in a metric", 0.7),
    (r"(^|/)copy\.py:_?deepcopy", "to copy an object with all it holds", 0.7),
    (r"(^|/)pickle\.py:", "to pickle an object", 0.6),
    (r"/torch/utils/checkpoint\.py:", "below a checkpoint, which computes the forward pass again", 0.5),
    (r"/torch/nn/utils/parametriz(e|ations)\.py:", "to make a weight from its parametrization", 0.6),
    (
        r"/torch/autograd/functional\.py:|/torch/_functorch/(eager_transforms|vmap|apis)",
        "to make derivatives of a function",
        0.4,
    ),
)
_OF_ITS_OWN = re.compile(r"/torchmetrics/metric\.py$")
"""Wraps the methods of its own subclasses only, so that what it passes a call on to is a metric as well."""
_FETCH = re.compile(r"/torch/utils/data/_utils/fetch\.py$")
_APPLY = re.compile(r"/torch/autograd/function\.py$")
_CALLED_BACK = re.compile(r"(?:pure|io|debug|host)_?callback")
_UNNAMED = ("", "python", "python3")
"""Names of threads that nobody has named."""
_NEARLY_ALL = 0.8
"""Of the place's time: what runs there for somebody else is another matter."""
_ON = re.compile(r"^on_[a-z_]+$")


def on_behalf(case: Case, at: At) -> list[Fact]:
    """The most telling of the frames around the place, and of those that it calls."""
    tree = case.tree
    path = [tree.node(row) for row in tree.path_rows(at.row)]
    found = [*_of_frames(path, _hooks(case), int(case.analysis.scopes.user[at.row])), *_of_libraries(case, path)]
    return [
        *(fact for fact, node in found if _share_below(case, at, tree.frame_of == node.frame) >= _NEARLY_ALL),
        *_of_thread(case, at),
        *_of_jax(case, at),
        *_of_phases(case, at),
    ]


def _share_below(case: Case, at: At, wanted: Mask) -> float:
    """Of the place's time: a line may have several callers."""
    cost = cost_of(case)[at.mine]
    return float(cost[case.below(wanted)[at.mine]].sum()) / max(float(cost.sum()), 1.0)


def _hooks(case: Case) -> Mapping[str, str]:
    """Functions that the program registers as hooks, with what registers them."""
    kept: dict[str, str] | None = vars(case).get("_hooks")
    if kept is None:
        kept = {name: by for _, parsed in user_trees(case) for name, by in hooks_of(parsed).items()}
        vars(case)["_hooks"] = kept
    return kept


Said = tuple[Fact, Node]
"""A fact, with the frame that says so."""


def _of_frames(path: list[Node], hooks: Mapping[str, str], user: int) -> Iterator[Said]:
    """By the program's own functions."""
    caller: Node | None = None
    for above, node in itertools.pairwise(path):
        if node.kind != str(FrameKind.PYTHON):
            continue
        by_program = above.kind == str(FrameKind.PYTHON) and origin(above.file) == Origin.USER
        fact = (
            None
            if by_program or origin(node.file) != Origin.USER
            else _of_called(node, above, caller, hooks, own=node.row == user)
        )
        if fact is not None:
            yield fact, node
        caller = node


def _of_called(node: Node, above: Node, caller: Node | None, hooks: Mapping[str, str], *, own: bool) -> Fact | None:
    """Of a function that the program did not call itself. `above`: the frame above; `caller`: the Python one above;
    `own`: it is the place's function, which its name says already."""
    parts = node.name.split(".")
    last, file = parts[-1], caller.file if caller is not None else ""
    hook = next((hooks[name] for name in reversed(parts) if name in hooks), "")
    if last == "<lambda>" and caller is above:
        hook = ""  # which of its lambdas a framework calls from Python is not known
    if hook in _HOOKS:
        return Fact("for", f"runs in {_HOOKS[hook]}, {_plain(node.name)}", 0.8)
    if last in _METHODS:
        return Fact("for", f"runs {_METHODS[last]}" + ("" if own else f", in {node.name}"), 0.5)
    if _FETCH.search(file):
        return Fact("for", f"runs in the collate function {_plain(node.name)}", 0.6)
    if _APPLY.search(file) and last in ("forward", "backward"):
        whose = parts[-2] if len(parts) > 1 else "a function"
        return Fact("for", f"runs in the {last} pass of {whose}, a torch.autograd.Function", 0.6)
    if origin(file) in (Origin.FRAMEWORK, Origin.PACKAGE) and _ON.match(last):
        return Fact("for", f"runs in the callback {_plain(node.name)}", 0.7)
    return None


def _plain(name: str) -> str:
    """`Watch.make.hook` of `Watch.make.<locals>.hook`."""
    return name.replace(".<locals>", "").replace(".<lambda>", ".lambda")


def _of_libraries(case: Case, path: list[Node]) -> Iterator[Said]:
    working = set(without_wrappers(case.tree, [node.row for node in path]))
    for node in path:
        if node.kind == str(FrameKind.PYTHON) and origin(node.file) != Origin.USER:
            works = node.row in working or _OF_ITS_OWN.search(node.file)
            for pattern, words, tells in _LIBRARIES if works else ():
                if re.search(pattern, f"{node.file}:{node.name}"):
                    kind = "does" if words.startswith("to copy") else "for"
                    yield Fact(kind, f"runs {words}", tells, _METRIC_LATER if pattern == _METRICS else ""), node
        if _CALLED_BACK.search(f"{node.name} {node.detail.get('hlo', '')}"):
            yield Fact("for", "runs in a callback from a compiled program into Python", 0.8), node


def _of_thread(case: Case, at: At) -> list[Fact]:
    """In a process or thread that is not the one whose steps are counted."""
    scopes, loop = case.analysis.scopes, loop_of(case)
    if loop is None or not len(loop.anchors):
        return []
    main, anchor = int(scopes.thread[at.row]), int(loop.anchors[0])
    if main == int(scopes.thread[anchor]) or main < 0:
        return []
    process = int(scopes.process[at.row])
    if process != int(scopes.process[anchor]):
        loads = bool(case.in_phase("data loading")[at.row])
        return [Fact("where", "runs in the loader's worker processes" if loads else "runs in another process", 0.5)]
    mains = {one.node.row for one in case.profile.threads if one.row in main_threads(case.profile)}
    if main in mains or case.in_phase("backward")[at.row]:
        return []
    name = case.name(main)
    told = f"runs on the thread {name}" if name not in _UNNAMED else "runs on another thread"
    return [Fact("where", told, 0.6)]


def _of_jax(case: Case, at: At) -> list[Fact]:
    """Operations of JAX outside of any compiled function."""
    loop = loop_of(case)
    if loop is None or not case.matching(FrameKind.OPERATOR, r"^(jit|pjit|pmap)\(").any():
        return []
    alone = by_themselves(case)[at.rows]
    number = int(case.calls[at.rows[alone]].sum())
    if number < loop.steps:
        return []
    each = f"{max(round(number / loop.steps), 1):,}"
    plural = "" if each == "1" else "s"
    return [
        Fact("jit", f"runs {each} operation{plural} of JAX a step on this line, one by one, outside of jax.jit", 0.7)
    ]


def _of_phases(case: Case, at: At) -> list[Fact]:
    phase = case.name(int(case.analysis.scopes.phase[at.row]))
    if phase == "data loading" and (not at.called or at.called[0].endswith("DataLoaderIter.__next__")):
        return []  # the loader itself
    if phase and _share_below(case, at, case.named(FrameKind.PHASE, phase)) < _NEARLY_ALL:
        return []
    words = {
        "backward": "runs in the backward pass",
        "recompute": "computes a forward pass again for the backward pass",
        "data loading": "runs to make a batch",
        "zero_grad": "runs to clear the gradients",
    }
    tells = {"recompute": 0.7, "data loading": 0.2}
    return [Fact("for", words[phase], tells.get(phase, 0.12))] if phase in words else []
