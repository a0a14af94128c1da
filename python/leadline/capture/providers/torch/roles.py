"""Where this rank stands in its job: its coordinates in torch.distributed's meshes and process groups.

A group of which the description names a kind of parallelism (`mesh_tp` of a DeviceMesh, `TENSOR_MODEL_PARALLEL_GROUP`
of Megatron, any name with such a word) gives one coordinate: this rank's number in it. The group of all ranks tells the
number in the job, where no launcher has put it into the environment. Looked at when groups are made and before they are
destroyed. Promises: never a collective; results and errors of what is wrapped come back as they are; `uninstall` leaves
torch as it was found.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable
from types import ModuleType
from typing import Any

from leadline.capture.import_hook import ImportHook
from leadline.capture.providers.replaced import Replacements

_WORDS = (
    ("tp", ("tp", "tensor")),
    ("pp", ("pp", "pipeline", "pipe", "stage")),
    ("ep", ("ep", "expert", "experts")),
    ("cp", ("cp", "context", "sequence", "sp")),
    ("dp", ("dp", "data", "fsdp", "hsdp", "ddp", "replicate", "shard")),
)
_SPLIT = re.compile(r"[^a-z]+")
_AFTER = ("init_process_group", "new_group", "split_group")
_BEFORE = ("destroy_process_group",)


class DistributedRoles:
    """One per session; `changed` is called when this rank's coordinates have become others."""

    def __init__(
        self, changed: Callable[[], None], groups_changed: Callable[[list[tuple[Any, int]]], None] = lambda _: None
    ) -> None:
        self._changed = changed
        self._groups_changed = groups_changed
        self._replaced = Replacements()
        self._hook = ImportHook("torch.distributed.distributed_c10d", self._follow)
        self._c10d: ModuleType | None = None
        self.role: dict[str, int] = {}
        """By kind of parallelism (tp, pp, ep, cp, dp), as far as groups were named."""
        self.place: tuple[int, int] | None = None
        """This rank's number in the job, and how many there are; None before there is a group of all."""

    def install(self) -> None:
        """Follow what is there, and what the program imports later."""
        self._hook.install()

    def uninstall(self) -> None:
        """Undo `install`; looks once more before."""
        self.check()
        self._hook.uninstall()
        self._replaced.undo()

    def check(self) -> None:
        """Take in the groups that there are now. A torch whose tables have other names tells nothing."""
        with contextlib.suppress(Exception):
            self._look()

    def _look(self) -> None:
        c10d: Any = self._c10d
        if c10d is None or not c10d.is_initialized():
            return
        me = c10d.get_rank()
        place = int(me), int(c10d.get_world_size())
        members = c10d._world.pg_group_ranks.items()
        self._groups_changed([(group, int(ranks[me])) for group, ranks in list(members) if me in ranks])
        found = dict(self.role)
        for group, ranks in list(c10d._world.pg_group_ranks.items()):
            dimension = dimension_of(str(getattr(group, "group_desc", "")))
            if dimension and me in ranks and len(ranks) > 1:
                found[dimension] = int(ranks[me])
        if (found, place) != (self.role, self.place):
            self.role, self.place = found, place
            self._changed()

    def _follow(self, c10d: ModuleType) -> None:
        self._c10d = c10d
        for name in (*_AFTER, *_BEFORE):
            original = vars(c10d).get(name)
            if callable(original):
                self._replaced.everywhere(name, original, self._watched(original, before=name in _BEFORE))
        self.check()

    def _watched(self, original: Callable[..., Any], *, before: bool) -> Callable[..., Any]:
        @functools.wraps(original)
        def watched(*arguments: Any, **named: Any) -> Any:
            if before:
                self.check()
            result = original(*arguments, **named)
            if not before:
                self.check()
            return result

        return watched


def dimension_of(description: str) -> str:
    """The kind of parallelism that a group's description names: tp, pp, ep, cp or dp; empty for none. Experts come
    before data: `expert_data_parallel` replicates experts, and is told by no single word."""
    words = set(_SPLIT.split(description.lower()))
    found = [dimension for dimension, known in _WORDS if words & set(known)]
    return found[0] if len(found) == 1 else ""
