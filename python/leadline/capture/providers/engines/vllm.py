"""vLLM's V1 engine: which of its methods are followed, what they mean, and what is said where a release has moved one.

Every method is checked when it is wrapped (`Followed`): one that is absent or takes other arguments costs what it would
have told, in one sentence. Nothing here may raise into the engine.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from leadline.capture.config import Options
from leadline.capture.native import Native
from leadline.capture.providers.engines.follow import Followed
from leadline.capture.providers.engines.vllm_scheduler import SchedulerFollower, kind_of

START_UP = "start-up"
NO_WORK = "no work"
SCHEDULING = "scheduling"
INPUT = "input preparation"
SAMPLING = "sampling"
DETOKENISING = "detokenising"
TOKENISING = "tokenising"
FROM_ENGINE = "waiting for the engine"
FROM_WORKERS = "waiting for the workers"

_RUNNERS = ("vllm.v1.worker.gpu_model_runner", "vllm.v1.worker.gpu.model_runner")
_WORKERS = (("vllm.v1.worker.gpu_worker", "Worker"), ("vllm.v1.worker.cpu_worker", "CPUWorker"))
_STARTING = (
    *("init_device", "load_model", "determine_available_memory"),
    *("initialize_from_config", "compile_or_warm_up_model"),
)
_PREPARING = (
    *("_update_states", "_prepare_inputs", "_preprocess", "_build_attention_metadata"),
    *("finish_requests", "add_requests", "update_requests", "prepare_inputs", "prepare_attn"),
)


class VllmProvider:
    """One per session."""

    name = "vllm"

    def __init__(self, native: Native, options: Options, changed: Callable[[], None]) -> None:
        self._native = native
        self._followed = Followed(native, "vLLM", changed)
        self._scheduler = SchedulerFollower(native, options, changed)
        self._is_engine = False

    def start(self) -> None:
        """See `Provider.start`."""
        self._followed.release = str(getattr(sys.modules.get("vllm"), "__version__", "") or "")
        self._scheduler.version = self._followed.release
        wanted: list[tuple[str, Callable[[ModuleType], None]]] = [
            ("vllm.v1.core.sched.scheduler", self._follow_scheduler),
            ("vllm.v1.engine.core", self._follow_core),
            ("vllm.v1.engine.output_processor", self._follow_output),
            ("vllm.v1.engine.input_processor", self._follow_input),
            ("vllm.renderers.base", self._follow_renderer),
            ("vllm.distributed.device_communicators.shm_broadcast", self._follow_queue),
            *((name, self._follow_runner) for name in _RUNNERS),
            *((name, self._follow_worker) for name, _ in _WORKERS),
        ]
        self._followed.modules(wanted)

    def stop(self) -> None:
        """See `Provider.stop`."""
        self._followed.undo()

    def forked(self) -> None:
        """A child's engine is its own."""
        self._scheduler.forget()
        self._is_engine = False

    def status(self) -> dict[str, Any]:
        """See `Provider.status`."""
        return self._followed.status()

    def engines(self) -> list[dict[str, Any]]:
        """For the process's record: every engine of this process."""
        return self._scheduler.facts()

    # ---------------------------------------------------------------- what is followed

    def _follow_scheduler(self, module: ModuleType) -> None:
        self._scheduler.follow(getattr(module, "Scheduler", None), self._followed, SCHEDULING)

    def _follow_core(self, module: ModuleType) -> None:
        core = getattr(module, "EngineCore", None)
        process = getattr(module, "EngineCoreProc", None)
        self._followed.phase(core, "__init__", START_UP, outermost=True)
        self._followed.method(process, "_process_input_queue", self._input_queue, ())

    def _input_queue(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """The engine's thread waits here for requests; while it has some it only looks."""
        native = self._native
        lose = self._followed.lose

        def process_input_queue(core: Any, *arguments: Any, **named: Any) -> Any:
            token = 0
            try:
                self._is_engine = True
                if not core.has_work():
                    self._scheduler.idle()
                    token = native.phase_begin(NO_WORK)
            except Exception as error:
                lose("the wait for requests", error)
            try:
                return original(core, *arguments, **named)
            finally:
                if token:
                    native.phase_end(token)

        return process_input_queue

    def _follow_output(self, module: ModuleType) -> None:
        self._followed.phase(getattr(module, "OutputProcessor", None), "process_outputs", DETOKENISING)

    def _follow_input(self, module: ModuleType) -> None:
        self._followed.phase(getattr(module, "InputProcessor", None), "process_inputs", TOKENISING)

    def _follow_renderer(self, module: ModuleType) -> None:
        """Releases before 0.20 have no renderers: their input processor tokenises."""
        renderer = getattr(module, "BaseRenderer", None)
        for name in ("_tokenize_prompt", "tokenize_prompt", "tokenize_prompts"):
            if callable(vars(renderer).get(name) if renderer is not None else None):
                self._followed.phase(renderer, name, TOKENISING, outermost=True)

    def _follow_queue(self, module: ModuleType) -> None:
        self._followed.method(getattr(module, "MessageQueue", None), "dequeue", self._dequeue, ())

    def _dequeue(self, original: Callable[..., Any]) -> Callable[..., Any]:
        native = self._native

        def dequeue(queue: Any, *arguments: Any, **named: Any) -> Any:
            token = native.phase_begin(FROM_WORKERS if self._is_engine else FROM_ENGINE)
            try:
                return original(queue, *arguments, **named)
            finally:
                native.phase_end(token)

        return dequeue

    def _follow_runner(self, module: ModuleType) -> None:
        runner = getattr(module, "GPUModelRunner", None)
        self._followed.method(runner, "execute_model", self._execute, ("scheduler_output",))
        for name in _PREPARING:
            if callable(vars(runner).get(name) if runner is not None else None):
                self._followed.phase(runner, name, INPUT, outermost=True)
        self._followed.phase(runner, "sample_tokens", SAMPLING)

    def _execute(self, original: Callable[..., Any]) -> Callable[..., Any]:
        native = self._native
        lose = self._followed.lose

        def execute_model(runner: Any, scheduler_output: Any, *arguments: Any, **named: Any) -> Any:
            token = 0
            try:
                if scheduler_output.total_num_scheduled_tokens:
                    token = native.phase_begin(kind_of(scheduler_output))
            except Exception as error:
                lose("the kind of a step", error)
            try:
                return original(runner, scheduler_output, *arguments, **named)
            finally:
                if token:
                    native.phase_end(token)

        return execute_model

    def _follow_worker(self, module: ModuleType) -> None:
        kind = next((getattr(module, name, None) for where, name in _WORKERS if where == module.__name__), None)
        for name in _STARTING:
            if callable(vars(kind).get(name) if kind is not None else None):
                self._followed.phase(kind, name, START_UP, outermost=True)


def create(native: Native, options: Options, changed: Callable[[], None]) -> VllmProvider:
    """See `leadline.capture.providers`."""
    return VllmProvider(native, options, changed)
