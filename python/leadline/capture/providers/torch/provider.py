"""The torch provider's Python side: attaches when the program has imported torch, names modules, detaches at the end.

Promises: never imports torch by itself; a torch that cannot be measured is named in one sentence, and the rest of the
profile goes on without it.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any, cast

from leadline.capture.config import Options
from leadline.capture.current import CURRENT
from leadline.capture.hang_watch import HangWatch
from leadline.capture.import_hook import ImportHook
from leadline.capture.native import Native
from leadline.capture.providers.loaders.torch_workers import BatchMarks
from leadline.capture.providers.torch.autograd_engine import renew_engine
from leadline.capture.providers.torch.closures import ClosurePhases
from leadline.capture.providers.torch.dataflow import Dataflow
from leadline.capture.providers.torch.flight import CollectiveFlight
from leadline.capture.providers.torch.habits import Habits
from leadline.capture.providers.torch.native import TorchNative
from leadline.capture.providers.torch.recompute import RecomputationEnds
from leadline.capture.providers.torch.roles import DistributedRoles
from leadline.capture.providers.torch.saving import Saves
from leadline.capture.providers.torch.step_borders import StepBorders
from leadline.capture.providers.torch.tensor_layout import tensor_layout
from leadline.capture.providers.torch.waits import KnownWaits

if TYPE_CHECKING:
    from leadline.capture.providers.torch.modules import ModuleTracker

OLDEST = (2, 4)
"""First release whose RecordFunction and module hooks are what the native side expects."""
_SELF_TEST_OPERATOR = "aten::mul"


class TorchProvider:
    """One per session; follows torch from its import to the end of the session."""

    name = "torch"

    def __init__(self, native: Native, options: Options, changed: Callable[[], None]) -> None:
        self._native = cast(TorchNative, native)
        self._options = options
        self._changed = changed
        self._hook = ImportHook("torch", self._imported)
        self._modules: ModuleTracker | None = None
        self._closures: ClosurePhases | None = None
        self._batches = BatchMarks(native)
        self._waits = KnownWaits(native)
        self._saves = Saves(native)
        self._flight = CollectiveFlight(native)
        self._hang = HangWatch(options.hang_after_s, lambda: self._native.flight_standing_ns() / 1e9, _part_of_session)
        self._roles = DistributedRoles(changed, self._groups_changed)
        self._habits = Habits(native, self._living_modules, changed)
        self._recomputation = RecomputationEnds(native)
        self._dataflow = Dataflow() if options.trace is not None else None
        self._borders = StepBorders(_step_ends) if options.duty else None
        self._status: dict[str, Any] = {"ok": None, "version": "", "message": "The program did not import torch."}
        self._attached = False

    def start(self) -> None:
        """Attach now when torch is there, or as soon as it is."""
        self._hook.install()

    def stop(self) -> None:
        """Take away the callbacks and the module hooks."""
        self._hook.uninstall()
        self._batches.uninstall()
        self._waits.uninstall()
        self._saves.uninstall()
        self._roles.uninstall()
        self._hang.stop()
        self._flight.uninstall()
        self._habits.uninstall()
        self._recomputation.uninstall()
        if self._borders is not None:
            self._borders.uninstall()
        if self._dataflow is not None:
            self._dataflow.uninstall()
        if self._modules is not None:
            self._modules.uninstall()
            self._modules = None
        if self._closures is not None:
            self._closures.uninstall()
            self._closures = None
        if self._attached:
            self._native.detach_torch()
            self._attached = False

    def forked(self) -> None:
        """Everything goes on in the child."""
        self.resume()
        if self._attached and (torch := sys.modules.get("torch")) is not None:
            renew_engine(torch)
        self._habits.forked()
        if self._dataflow is not None:
            self._dataflow.forked()

    @property
    def pausable(self) -> str:
        """What of it a cost budget may let rest; empty for nothing."""
        return "shapes" if self._options.shapes else ""

    def pause(self) -> None:
        """Operators without the shapes of their inputs until `resume`."""
        self._native.provider_rest(self.name, True)

    def resume(self) -> None:
        """Shapes again."""
        self._native.provider_rest(self.name, False)

    def status(self) -> dict[str, Any]:
        """See `Provider.status`."""
        told: dict[str, Any] = {"role": dict(self._roles.role)} if self._roles.role else {}
        if habits := self._habits.facts():
            told["habits"] = habits
        if self._attached and self._options.shapes and (padding := _padding(self._native.provider_status(self.name))):
            told["padding"] = padding
        return {**self._status, **told}

    @property
    def place(self) -> tuple[int, int] | None:
        """This process's rank in torch.distributed, and how many ranks there are."""
        return self._roles.place

    def dataflow(self) -> dict[str, Any]:
        """What depended on what in the trace window, for the process's record."""
        return self._dataflow.status() if self._dataflow is not None else {}

    def _groups_changed(self, groups: list[tuple[Any, int]]) -> None:
        self._flight.groups_changed(groups)
        self._hang.follow(groups)

    def _imported(self, torch: ModuleType) -> None:
        """Called at the end of the program's own `import torch`, so nothing may escape from here."""
        try:
            self._attach(torch)
        except Exception as error:
            self._refuse(torch, f"torch could not be attached ({type(error).__name__}: {error}).")
        self._changed()

    def _attach(self, torch: ModuleType) -> None:
        version = str(torch.__version__)
        if version_pair(version) < OLDEST:
            oldest = ".".join(map(str, OLDEST))
            self._refuse(torch, f"torch {version} is not measured: it is older than {oldest}; use a newer torch.")
            return
        result = self._native.attach_torch(attach_info(torch, shapes=self._options.shapes))
        if not result.get("ok"):
            self._refuse(torch, str(result.get("message") or "the self-test failed; its operators are not measured."))
            return
        self._attached = True
        self._batches.install()
        self._flight.install()
        self._waits.install()
        self._saves.install()
        self._roles.install()
        if self._options.shapes:
            self._recomputation.install(torch.utils.checkpoint)
        if self._dataflow is not None:
            self._dataflow.install(torch)
        self._status = {
            "ok": True,
            "version": version,
            "message": str(result.get("message") or ""),
            "autograd": bool(result.get("sequence")),
            **({"slower": slower} if (slower := str(result.get("slower") or "")) else {}),
        }
        self._closures = ClosurePhases(self._native)
        if self._options.modules:
            from leadline.capture.providers.torch.modules import ModuleTracker

            self._modules = ModuleTracker(self._native, torch)
            self._modules.install()
        self._habits.install()
        if self._borders is not None:
            self._borders.install()

    def _living_modules(self) -> list[Any]:
        return self._modules.living() if self._modules is not None else []

    def _refuse(self, torch: ModuleType, sentence: str) -> None:
        version = str(getattr(torch, "__version__", ""))
        self._status = {"ok": False, "version": version, "message": sentence}
        self._native.count_loss("provider_unavailable", 1, sentence)


def _step_ends() -> None:
    session = CURRENT.session
    if session is not None and session.duty is not None:
        session.duty.border()


def create(native: Native, options: Options, changed: Callable[[], None]) -> TorchProvider:
    """See `leadline.capture.providers`."""
    return TorchProvider(native, options, changed)


def _padding(status: dict[str, Any]) -> dict[str, int]:
    """Batches of token numbers that were looked at, and in millionths of each, summed: what is padding, and what is
    padding in every row; empty where there were none."""
    names = {"batches": "batches_looked_at", "all": "padding", "common": "common_padding"}
    found = {name: int(status.get(key) or 0) for name, key in names.items()}
    return found if found["batches"] else {}


def version_pair(version: str) -> tuple[int, int]:
    """Major and minor of a version such as `2.13.0+cpu`; (0, 0) for what has none."""
    numbers = []
    for part in version.split(".")[:2]:
        digits = "".join(character for character in part if character.isdigit())
        numbers.append(int(digits) if digits else 0)
    return (numbers[0], numbers[1]) if len(numbers) == 2 else (0, 0)


def attach_info(torch: ModuleType, *, shapes: bool = False) -> dict[str, Any]:
    """What the native side needs to know: code objects with a meaning, by role, and an operator to test itself with.

    Keys: `version`; `module_call`, `hidden`, `opener`, `recompute`: lists of code objects (CodeRole in
    native/stack/path_frames.h); `self_test`: runs one operator, returns its `operator` name and `sequence` number, and
    with `shapes` what `tensor_layout` found.
    """
    layout = tensor_layout(torch) if shapes else {}
    return {
        "version": str(torch.__version__),
        **code_roles(torch),
        "self_test": lambda: {**run_known_operator(torch), **layout},
    }


def code_roles(torch: ModuleType) -> dict[str, list[CodeType]]:
    """Code objects by what they mean in a call path. What a torch release does not have is left out."""
    module = torch.nn.Module
    optimizer = torch.optim.Optimizer
    record_function = torch.autograd.profiler.record_function
    # Not imported by torch itself in every release.
    checkpoint = importlib.import_module(f"{torch.__name__}.utils.checkpoint")
    return {
        "module_call": _codes(module, "_wrapped_call_impl"),
        "hidden": [
            *_codes(module, "_call_impl"),
            *_codes(module, "_slow_forward"),
            *_nested(module, "_call_impl", "inner"),
            *_nested(optimizer, "profile_hook_step", "wrapper"),
            *_nested(torch.utils._contextlib, "context_decorator", "decorate_context"),
        ],
        "opener": [
            *_codes(record_function, "__enter__"),
            *_codes(record_function, "__exit__"),
            *_codes(record_function, "__call__"),
            *_codes(getattr(torch.cuda, "nvtx", None), "range_push"),
        ],
        "recompute": [
            *_codes(checkpoint.CheckpointFunction, "backward"),
            *_nested(checkpoint, "_checkpoint_without_reentrant_generator", "recompute_fn"),
        ],
    }


def run_known_operator(torch: ModuleType) -> dict[str, Any]:
    """Run one operator whose name and sequence number are known.

    No backward: it would start autograd's threads, and a program that forks afterwards would fail.
    """
    # In inference mode no operator has a sequence number.
    with torch.inference_mode(mode=False), torch.enable_grad():
        value = torch.ones(1, device="cpu", requires_grad=True)
        product = value * 2
    return {"operator": _SELF_TEST_OPERATOR, "sequence": product.grad_fn._sequence_nr()}


def _codes(owner: Any, name: str) -> list[CodeType]:
    code = getattr(getattr(owner, name, None), "__code__", None)
    return [code] if isinstance(code, CodeType) else []


def _nested(owner: Any, name: str, inner: str) -> list[CodeType]:
    """Code of a function defined inside another one."""
    return [
        constant
        for code in _codes(owner, name)
        for constant in code.co_consts
        if isinstance(constant, CodeType) and constant.co_name == inner
    ]


def _part_of_session() -> Path | None:
    session = CURRENT.session
    return session.part.directory if session is not None else None
