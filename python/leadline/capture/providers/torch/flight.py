"""Tells the flight recorder of which process group a collective is, and when its work has ended. A message between two
ranks is recorded as a collective of these two: the sender's n-th and the receiver's n-th are one.

Backends that describe their collectives to torch's profiler (NCCL) need none of this; gloo does not. Methods of
`ProcessGroup` are wrapped, below what the compiler rewrites, so compiled programs see nothing new. Collectives that C++
begins (DistributedDataParallel) belong to the process's only group, where it has one. Messages of one tag follow each
other, where the backend looks at tags. Promises: never a collective; results and errors of what is wrapped come back as
they are; `uninstall` leaves torch as it was found.

Ranks that are measured from different moments on count from different collectives. So a group has the number that torch
gave its last collective before, and, beside our count, torch's own of now: where both agree counts can be compared.
Of two ranks that exchange messages the number is that of their group, a mark of how far the program was.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any, Protocol, cast

from leadline.capture.current import CURRENT
from leadline.capture.import_hook import ImportHook
from leadline.capture.native import Native
from leadline.capture.providers.replaced import Replacements

_METHODS = (
    "allreduce", "allreduce_coalesced", "reduce", "broadcast", "allgather", "allgather_coalesced", "_allgather_base",
    "allgather_into_tensor_coalesced", "gather", "scatter", "reduce_scatter", "_reduce_scatter_base",
    "reduce_scatter_tensor_coalesced", "alltoall", "alltoall_base", "barrier", "monitored_barrier",
)  # fmt: skip
_MESSAGES = ("send", "recv", "recv_anysource")
"""Methods of `ProcessGroup`; the first two are told the other rank's number in the group second, and a tag third."""
_TAGGED = ("gloo", "mpi", "ucc")
"""Backends that match messages by their tags; NCCL takes them as they come."""
_TAGS = 16
"""Tags below this count by themselves, all others of two ranks together: some programs have one for each step."""
_MOST_OPEN = 1024

_UNKNOWN = -1

Where = tuple[str, str, int, int, int]
"""Name, description, size of a group, this rank's number there, and how many of its collectives were not seen."""


class FlightNative(Protocol):
    """What this provider needs of the native module."""

    def flight_announce(
        self, group: str, description: str, size: int, rank: int, since: int, elements: int
    ) -> None: ...
    def flight_announced(self, told: int = -1) -> int: ...
    def flight_attached(self, attached: bool) -> None: ...
    def flight_done(self, number: int) -> None: ...
    def flight_usual(self, group: str, description: str, size: int, rank: int, since: int) -> None: ...


class CollectiveFlight:
    """One per session."""

    def __init__(self, native: Native) -> None:
        self._native = cast(FlightNative, native)
        self._replaced = Replacements()
        self._hook = ImportHook("torch.distributed.distributed_c10d", self._follow)
        self._open: dict[int, int] = {}  # numbers of collectives by id of their Work
        self._since: dict[str, int] = {}  # by name of a group
        self._attached = False

    def install(self) -> None:
        """Wrap what is there, and what the program imports later."""
        self._attached = CURRENT.from_outside
        self._native.flight_attached(self._attached)
        self._hook.install()

    def uninstall(self) -> None:
        """Undo `install`."""
        self._hook.uninstall()
        self._replaced.undo()
        self._open.clear()

    def groups_changed(self, groups: list[tuple[Any, int]]) -> None:
        """The groups that this rank is in, with its number there."""
        several = [(group, rank) for group, rank in groups if group.size() > 1]
        for group, _ in several:
            self._seen_since(group)
        if len(several) != 1:
            self._native.flight_usual("", "", 0, 0, 0)
            return
        ((group, rank),) = several
        self._native.flight_usual(*self._where(group, ())[:3], rank, self._seen_since(group))

    def _follow(self, c10d: ModuleType) -> None:
        group = getattr(c10d, "ProcessGroup", None)
        for name in _METHODS if isinstance(group, type) else ():
            original = vars(group).get(name)
            if callable(original):
                self._replaced.attribute(group, name, self._announcing(original, self._where, _number))
        for name in _MESSAGES if isinstance(group, type) else ():
            original = vars(group).get(name)
            if callable(original):
                self._replaced.attribute(
                    group, name, self._announcing(original, functools.partial(self._pair, c10d, name))
                )
        work = getattr(c10d, "Work", None)
        if isinstance(work, type) and callable(vars(work).get("wait")):
            self._replaced.attribute(work, "wait", self._ending(work.wait))  # type: ignore[attr-defined]

    def _seen_since(self, group: Any) -> int:
        """How many collectives of it nobody has seen here."""
        name = str(group.group_name)
        since = self._since.get(name)
        if since is None:
            since = _number(group)
            if since == _UNKNOWN and not self._attached:
                since = 0  # ranks that begin by themselves begin at one place of their program
            self._since[name] = since
        return since

    def _where(self, group: Any, _: tuple[Any, ...]) -> Where:
        return str(group.group_name), _description(group), group.size(), group.rank(), self._seen_since(group)

    def _pair(self, c10d: ModuleType, name: str, group: Any, arguments: tuple[Any, ...]) -> Where:
        """The two ranks of a message by their numbers in the job, the sender first; one alone where it takes any."""
        here = c10d.get_global_rank(group, group.rank())
        since = _UNKNOWN if self._attached else self._seen_since(group)
        if name == "recv_anysource":
            return f"any>{here} {group.group_name}", f"from any rank to rank {here}", 1, 0, since
        there = c10d.get_global_rank(group, int(arguments[1]))
        source, target = (here, there) if name == "send" else (there, here)
        tag = _tag(group, arguments)
        described = f"from rank {source} to rank {target}{f', {tag}' if tag else ''}"
        return f"{source}>{target} {tag} {group.group_name}", described, 2, int(name != "send"), since

    def _announcing(
        self,
        original: Callable[..., Any],
        where: Callable[[Any, tuple[Any, ...]], Where],
        number_of: Callable[[Any], int] = lambda _: _UNKNOWN,
    ) -> Callable[..., Any]:
        native = self._native

        @functools.wraps(original)
        def announcing(group: Any, *arguments: Any, **named: Any) -> Any:
            try:
                native.flight_announce(*where(group, arguments), _elements(arguments))
            except Exception:
                return original(group, *arguments, **named)
            number = 0
            try:
                work = original(group, *arguments, **named)
            finally:
                number = native.flight_announced(number_of(group))
            if number and work is not None:
                if len(self._open) >= _MOST_OPEN:
                    self._open.clear()  # nobody waits for them
                self._open[id(work)] = number
            return work

        return announcing

    def _ending(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def ending(work: Any, *arguments: Any, **named: Any) -> Any:
            result = original(work, *arguments, **named)
            number = self._open.pop(id(work), 0)
            if number:
                self._native.flight_done(number)
            return result

        ending._torchdynamo_disable = True  # type: ignore[attr-defined]
        return ending


def _number(group: Any) -> int:
    """That of its last collective, as torch counts; -1 where its backend does not."""
    try:
        return int(group._get_sequence_number_for_group())
    except Exception:
        return _UNKNOWN


def _tag(group: Any, arguments: tuple[Any, ...]) -> str:
    """What keeps messages of two ranks apart: `tag 3`, `other tags`; nothing where none does."""
    tag = int(arguments[2]) if len(arguments) > 2 else 0
    if not tag or group._get_backend(arguments[0][0].device).name() not in _TAGGED:
        return ""
    return f"tag {tag}" if 0 < tag < _TAGS else "other tags"


def _description(group: Any) -> str:
    told = str(getattr(group, "group_desc", ""))
    return "" if told == "undefined" else told


def _elements(arguments: tuple[Any, ...]) -> int:
    """Of the tensors that go in, where they come first in a list."""
    tensors = arguments[0] if arguments else None
    if isinstance(tensors, list) and tensors and all(hasattr(one, "numel") for one in tensors):
        return sum(int(one.numel()) for one in tensors)
    numel = getattr(tensors, "numel", None)
    return int(numel()) if callable(numel) else -1
