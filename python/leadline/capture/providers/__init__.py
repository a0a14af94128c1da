"""Every framework and vendor that this process can be asked about: one module each, found by the list below."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from types import ModuleType
from typing import Any, NamedTuple, Protocol, runtime_checkable

from leadline.capture.config import Options
from leadline.capture.import_hook import ImportHook
from leadline.capture.native import Native

PROVIDERS: tuple[str, ...] = (
    "leadline.capture.providers.torch.provider",
    "leadline.capture.providers.nvidia.provider",
    "leadline.capture.providers.amd.provider",
    "leadline.capture.providers.accelerator.provider",
    "leadline.capture.providers.torch.inductor",
    "leadline.capture.providers.cpu",
    "leadline.capture.providers.jax.provider",
    "leadline.capture.providers.tensorflow.provider",
    "leadline.capture.providers.tools",
    "leadline.capture.providers.garbage",
    "leadline.capture.providers.engines.vllm",
    "leadline.capture.providers.engines.generate",
)
"""Modules with `create(native, options, changed) -> Provider`, in the order they start."""


class Framework(NamedTuple):
    """What a provider waits for."""

    name: str
    """The provider's."""
    absent: str
    """Its message while the program has imported none of `modules`."""
    modules: tuple[str, ...]
    """The provider is loaded when the program's import of the first of these has ended."""


FRAMEWORKS: dict[str, Framework] = {
    "leadline.capture.providers.torch.provider": Framework("torch", "The program did not import torch.", ("torch",)),
    "leadline.capture.providers.torch.inductor": Framework(
        "torch.compile",
        "The program did not compile.",
        ("torch._dynamo.utils", "triton.runtime.jit", "triton.compiler.compiler", "triton.runtime.autotuner"),
    ),
    "leadline.capture.providers.jax.provider": Framework("jax", "The program did not import JAX.", ("jax",)),
    "leadline.capture.providers.tensorflow.provider": Framework(
        "tensorflow", "The program did not import TensorFlow.", ("tensorflow", "keras")
    ),
    "leadline.capture.providers.engines.generate": Framework(
        "transformers", "The program did not import transformers.", ("transformers",)
    ),
    "leadline.capture.providers.engines.vllm": Framework("vllm", "The program did not import vLLM.", ("vllm",)),
}
"""Of PROVIDERS, those that a program pays for only when it imports the framework."""


class Provider(Protocol):
    """One source of events."""

    name: str
    """Key in `meta.json`'s `available`."""

    def start(self) -> None:
        """Attach now, or arrange to attach when the framework appears; may raise, and is then counted as a loss."""

    def stop(self) -> None:
        """Take away every hook."""

    def forked(self) -> None:
        """In the child of a fork, where the session goes on: let go of what does not survive."""

    def status(self) -> dict[str, Any]:
        """`ok` (True, False, None while the framework is not there), `version`, `message` (one sentence or empty)."""


@runtime_checkable
class CanPause(Protocol):
    """A provider that the overhead budget may pause."""

    @property
    def pausable(self) -> str:
        """What can be paused, a word of `budget.ORDER`; empty where nothing of it was asked for."""

    def pause(self) -> None:
        """Cost nothing until `resume`."""

    def resume(self) -> None:
        """Measure again."""


@runtime_checkable
class HearsSteps(Protocol):
    """A provider that wants to know when the trace window may have begun or ended."""

    def stepped(self) -> None:
        """The program has said that a step ends (`leadline.step()`)."""


def in_order_of_stopping(providers: Sequence[Provider]) -> list[Provider]:
    """The last one first, but for those that say `stops_last`: they hear what the others tell while they stop, as a
    vendor's library hands over its last records then."""
    return sorted(providers, key=lambda provider: not getattr(provider, "stops_last", False))[::-1]


class Awaited:
    """Stands for the provider of a framework, which is neither loaded nor made before the program imports that."""

    def __init__(self, framework: Framework, make: Callable[[], Provider]) -> None:
        self.name = framework.name
        self._absent = framework.absent
        self._make = make
        self._provider: Provider | None = None
        self._hooks = [ImportHook(module, self._imported) for module in framework.modules]

    def start(self) -> None:
        """See `Provider.start`."""
        for hook in self._hooks:
            hook.install()

    def _imported(self, framework: ModuleType) -> None:
        if self._provider is None:
            self._provider = self._make()
            self._provider.start()

    def stop(self) -> None:
        """See `Provider.stop`."""
        for hook in self._hooks:
            hook.uninstall()
        if self._provider is not None:
            self._provider.stop()

    def stepped(self) -> None:
        """See `HearsSteps.stepped`."""
        if isinstance(self._provider, HearsSteps):
            self._provider.stepped()

    def forked(self) -> None:
        """See `Provider.forked`."""
        if self._provider is not None:
            self._provider.forked()

    @property
    def pausable(self) -> str:
        """See `CanPause`: nothing before the framework is there."""
        return self._provider.pausable if isinstance(self._provider, CanPause) else ""

    def pause(self) -> None:
        """See `CanPause`."""
        if isinstance(self._provider, CanPause):
            self._provider.pause()

    def resume(self) -> None:
        """See `CanPause`."""
        if isinstance(self._provider, CanPause):
            self._provider.resume()

    def status(self) -> dict[str, Any]:
        """See `Provider.status`."""
        if self._provider is None:
            return {"ok": None, "version": "", "message": self._absent}
        return self._provider.status()

    def dataflow(self) -> dict[str, Any]:
        """What the provider has for the process's record, if anything."""
        found: dict[str, Any] = getattr(self._provider, "dataflow", dict)()
        return found

    def engines(self) -> list[dict[str, Any]]:
        """What the provider knows of engines that serve, if anything."""
        found: list[dict[str, Any]] = getattr(self._provider, "engines", list)()
        return found

    @property
    def place(self) -> tuple[int, int] | None:
        """The provider's, where it has one."""
        return getattr(self._provider, "place", None)


def end_step(native: Native, providers: Iterable[Provider], options: Options, number: int | None) -> None:
    """The program has said that a step ends, and with it a trace window may begin or end. `number`: None to count."""
    native.step(-1 if number is None else number)
    if options.trace is not None:
        for provider in providers:
            if isinstance(provider, HearsSteps):
                provider.stepped()


def create_providers(native: Native, options: Options, changed: Callable[[], None]) -> tuple[Provider, ...]:
    """One of each; `changed` is to be called when a status has changed after `start`."""

    def create(module: str) -> Provider:
        provider: Provider = importlib.import_module(module).create(native, options, changed)
        return provider

    def prepare(module: str) -> Provider:
        framework = FRAMEWORKS.get(module)
        asks = options.budget and not options.budget_after_s  # at once, what may rest
        asked = asks and options.shapes and module == PROVIDERS[0]
        return create(module) if framework is None or asked else Awaited(framework, partial(create, module))

    return tuple(prepare(module) for module in PROVIDERS)
