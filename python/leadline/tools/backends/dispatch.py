"""A dispatch mode on every thread of the program, from the import of torch to the end of the run."""

from __future__ import annotations

import sys
import threading
from types import ModuleType
from typing import Any


class Everywhere:
    """Enters a mode on the calling thread and on every thread that is started later.

    The compiler is told to look past it; compiled code runs as it would, and is seen as a whole or not at all. `owner`
    has `run(func, args, kwargs)` and `on`.
    """

    def __init__(self, owner: Any) -> None:
        self._owner = owner
        self._entered: Any = None
        self._bootstrap: Any = None

    def install(self) -> None:
        torch = sys.modules["torch"]
        self._make = _mode_class(torch)
        self._entered = self._make(self._owner)
        self._entered.__enter__()
        self._bootstrap = threading.Thread._bootstrap_inner  # type: ignore[attr-defined]
        original, make, owner = self._bootstrap, self._make, self._owner

        def in_mode(thread: threading.Thread) -> None:
            if not owner.on or "leadline_own" in vars(thread):
                original(thread)
                return
            mode = make(owner)
            mode.enter_quietly()
            original(thread)  # the thread's state of modes ends with it

        threading.Thread._bootstrap_inner = in_mode  # type: ignore[attr-defined]

    def uninstall(self) -> None:
        """Leave the mode where this thread can; elsewhere it only passes through from now on."""
        if self._bootstrap is not None:
            threading.Thread._bootstrap_inner = self._bootstrap  # type: ignore[attr-defined]
            self._bootstrap = None
        dispatch = sys.modules["torch.utils._python_dispatch"]
        if self._entered is not None and dispatch._get_current_dispatch_mode() is self._entered:
            self._entered.__exit__(None, None, None)
        self._entered = None


def _mode_class(torch: ModuleType) -> Any:
    dispatch = sys.modules["torch.utils._python_dispatch"]
    records = torch.autograd._enable_record_function
    fake = getattr(sys.modules.get("torch._subclasses.fake_tensor"), "FakeTensor", ())

    untouched = torch.Tensor.__torch_dispatch__
    plain: set[type] = {torch.Tensor, torch.nn.Parameter}

    def is_plain(kind: type) -> bool:
        """Whether a tensor of this kind has its own memory, and nothing to say when an operator runs."""
        if issubclass(kind, fake) or getattr(kind, "__torch_dispatch__", None) is untouched:
            plain.add(kind)
            return True
        return False

    class LeadlineMode(dispatch.TorchDispatchMode):  # type: ignore[misc, name-defined]
        supports_higher_order_operators = True

        def __init__(self, owner: Any) -> None:
            super().__init__()
            self._owner = owner

        def enter_quietly(self) -> None:
            """Only for this thread: flags of the process are those of the first mode."""
            dispatch._push_mode(self)

        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            return False  # it would import the compiler, seconds of the program's time, at the first operator

        @classmethod
        def ignore_compile_internals(cls) -> bool:
            return True

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            if not self._owner.on:
                return func(*args, **kwargs)
            if types and not all(one in plain or is_plain(one) for one in types):
                return NotImplemented  # a tensor of its own kind: what it is made of comes by itself
            records(False)  # the operator has been told already
            try:
                return self._owner.run(func, args, kwargs)
            finally:
                records(True)

    return LeadlineMode
