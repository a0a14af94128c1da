"""The NVIDIA provider's Python side: attaches when the program starts CUDA, yields to torch.profiler, detaches.

The driver tells of its start where CUDA_INJECTION64_PATH names our library (as under `leadline run`), torch by its own.

Promises: never starts CUDA, so only processes that use a GPU are measured on it; changes no environment variable; what
cannot be measured is one sentence in `status()` and a loss in the file.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, cast

from leadline.capture.config import Options
from leadline.capture.import_hook import ImportHook
from leadline.capture.native import Native

NVTX_VARIABLE = "NVTX_INJECTION64_PATH"
"""Environment: the library that NVTX asks for a tool, at a program's first NVTX call."""
CUDA_VARIABLE = "CUDA_INJECTION64_PATH"
"""Environment: the library that the driver asks for a tool, in a program's first cuInit."""
INJECT_LIBRARY = "libleadline_inject.so"
"""File name of the library that NVTX and the driver are given."""
RECORDING_VARIABLE = "LEADLINE_GPU_RECORDING"
"""Environment: a file to record GPU calls and records into, for bug reports and tests."""
SKIPPED_DOMAINS = ("NCCL", "cuDNN", "cudnn", "cuBLAS", "cuBLASLt", "cuSPARSE", "CCCL", "XLA", "TSL")
"""NVTX domains of libraries whose ranges would bury the program's own."""
VISIBLE_VARIABLE = "CUDA_VISIBLE_DEVICES"
"""Environment: the devices that the driver shows to a program."""
_DEVICE_FILES = (Path("/dev/nvidiactl"), Path("/dev/dxg"))
"""One of them is there where the driver is: Linux, and Linux under Windows."""
_FORKED = (
    "This process was forked after CUDA had started, and CUDA does not survive a fork, so GPU work is not measured "
    'here; use the start method "spawn" or "forkserver".'
)
_RETRY_S = (0.0, 0.5, 2.0, 5.0)
"""How long after torch.profiler has stopped CUPTI is asked for again: it lets go in its own time."""


class GpuNative(Protocol):
    """The part of `leadline._native` that is about NVIDIA GPUs."""

    def attach_nvidia(self, info: dict[str, Any]) -> dict[str, Any]: ...
    def await_nvidia(self, info: dict[str, Any]) -> dict[str, Any]: ...
    def detach_nvidia(self) -> dict[str, Any]: ...
    def nvidia_pause(self, tool: str) -> None: ...
    def nvidia_resume(self) -> dict[str, Any]: ...
    def nvidia_status(self) -> str: ...
    def nvidia_kernel_source(self, kernel: str, file: str, line: int, detail: str) -> None: ...
    def nvidia_kernel_user(self, kernel: str, user: str, file: str, line: int, detail: str) -> None: ...
    def nvtx_start(self, skipped_domains: list[str]) -> None: ...
    def nvtx_stop(self) -> None: ...
    def nvtx_status(self) -> str: ...


class NvidiaProvider:
    """One per session; follows CUDA from its start in the program to the end of the session."""

    name = "nvidia"

    def __init__(self, native: Native, options: Options, changed: Callable[[], None]) -> None:
        self._native = cast(GpuNative, native)
        self._count_loss = native.count_loss
        self._options = options
        self._changed = changed
        self._hook = ImportHook("torch", self._torch_imported)
        self._status: dict[str, Any] = {"ok": None, "version": "", "message": "The program did not use CUDA."}
        self._attached = False
        self._awaiting = False
        self._stopped = False
        self._yielding: ProfilerYield | None = None

    def start(self) -> None:
        """Attach now where CUDA runs already, else when the driver or torch says that it starts."""
        self._start_nvtx(os.environ.get(NVTX_VARIABLE, ""))
        self._hook.install()
        if self._attached:
            return
        answer = self._native.await_nvidia(_attach_options())
        self._awaiting = bool(answer["awaiting"])
        if not self._awaiting:
            self._attached = True
            self._note(answer, ok=bool(answer["measuring"]))
            self._changed()

    def stop(self) -> None:
        """Let go of CUPTI and take away every hook; the last records are folded first."""
        self._stopped = True
        self._hook.uninstall()
        if self._yielding is not None:
            self._yielding.uninstall()
            self._yielding = None
        self._native.nvtx_stop()
        self._look_for_cuda()
        if self._attached or self._awaiting:
            ended = self._native.detach_nvidia()
            if self._attached or ended["message"]:
                self._note(ended, ok=bool(self._status["ok"]))
            self._attached = self._awaiting = False
        if self._status["ok"] is None and (sentence := no_gpu_sentence()):
            self._status.update(ok=False, message=sentence)
            self._count_loss("provider_unavailable", 1, sentence)
        self._status["nvtx"] = json.loads(self._native.nvtx_status())
        self._changed()

    def forked(self) -> None:
        """CUDA does not survive a fork. Only a child that wants it has lost something, so only then it is a loss."""
        if not self._attached:
            return  # the child may start CUDA of its own
        self._attached = False
        if self._yielding is not None:
            self._yielding.uninstall()
            self._yielding = None
        self._status = {"ok": None, "version": "", "message": _FORKED}
        cuda: Any = getattr(sys.modules.get("torch"), "cuda", None)
        start = getattr(cuda, "_lazy_init", None)
        if start is None:
            return

        def _lazy_init(*arguments: Any, **named: Any) -> Any:
            cuda._lazy_init = start
            if not self._stopped:
                self._status.update(ok=False)
                self._count_loss("provider_unavailable", 1, _FORKED)
                self._changed()
            return start(*arguments, **named)  # torch refuses in its own words

        cuda._lazy_init = _lazy_init

    def status(self) -> dict[str, Any]:
        """See `Provider.status`; `details` and `nvtx` hold what the native side says of itself."""
        self._look_for_cuda()
        return dict(self._status)

    def _look_for_cuda(self) -> None:
        """Take over what the native side has begun by itself, told by the driver."""
        if not self._awaiting:
            return
        details = json.loads(self._native.nvidia_status())
        if not details["awaiting"]:
            self._awaiting, self._attached = False, True
            self._note(details, ok=bool(details["measuring"]))

    def _start_nvtx(self, injected: str) -> None:
        if not injected:
            return
        if Path(injected).name == INJECT_LIBRARY:
            self._native.nvtx_start(skipped_domains(self._options.nvtx))
        else:
            sentence = f"NVTX ranges are not seen because {NVTX_VARIABLE} names another tool ({injected}); unset it."
            self._count_loss("provider_unavailable", 1, sentence)

    def _torch_imported(self, torch: ModuleType) -> None:
        """At the end of the program's `import torch`: wait for its CUDA to start. Nothing may escape from here."""
        try:
            if getattr(torch.version, "cuda", None) is None:
                self._status["message"] = "This build of torch has no CUDA."
                return
            self._yielding = ProfilerYield(self._native, torch, self._changed_by_yield)
            self._yielding.install()
            lazy_call = getattr(torch.cuda, "_lazy_call", None)
            if lazy_call is not None:
                lazy_call(self._attach)
            elif driver_loaded():
                self._attach()
        except Exception as error:
            self._count_loss("provider_unavailable", 1, f"torch's CUDA could not be followed ({error!r}).")

    def _attach(self) -> None:
        """Called by torch inside its own start of CUDA, so nothing may escape."""
        if self._attached or self._stopped:
            return
        try:
            started = self._native.attach_nvidia(_attach_options())
            self._attached, self._awaiting = True, False
            self._note(started, ok=bool(started["measuring"]))
        except Exception as error:
            self._count_loss("provider_unavailable", 1, f"GPU work is not measured ({type(error).__name__}: {error}).")
        self._changed()

    def _changed_by_yield(self, answer: dict[str, Any]) -> None:
        self._note(answer, ok=bool(answer["measuring"]))
        self._changed()

    def _note(self, answer: dict[str, Any], *, ok: bool) -> None:
        details = json.loads(self._native.nvidia_status())
        self._status = {
            "ok": ok,
            "version": str(details.get("cupti_version", "")),
            "message": str(answer["message"]),
            "details": details,
        }


class ProfilerYield:
    """Gives CUPTI to torch.profiler while it records GPU work: it would take the records, and neither had all.

    Replaces two functions in `torch.autograd.profiler`, through which every torch profiler begins and ends.
    """

    _FUNCTIONS = ("_prepare_profiler", "_disable_profiler")

    def __init__(self, native: GpuNative, torch: ModuleType, changed: Callable[[dict[str, Any]], None]) -> None:
        self._native = native
        self._changed = changed
        self._module: Any = torch.autograd.profiler
        self._cuda = torch.autograd.ProfilerActivity.CUDA
        self._originals: dict[str, tuple[Any, Any]] = {}
        self._yielded = False

    def install(self) -> None:
        """Replace the functions; does nothing where this torch has other ones."""
        if not all(hasattr(self._module, name) for name in self._FUNCTIONS):
            return
        prepare, disable = (getattr(self._module, name) for name in self._FUNCTIONS)

        def yielding_prepare(config: Any, activities: Any, *more: Any, **named: Any) -> Any:
            if self._cuda in activities and self._originals:
                self._yielded = True
                self._native.nvidia_pause("torch.profiler")
            return prepare(config, activities, *more, **named)

        def resuming_disable(*arguments: Any, **named: Any) -> Any:
            try:
                return disable(*arguments, **named)
            finally:
                if self._yielded:
                    self._yielded = False
                    self._take_back(list(_RETRY_S))

        for name, wrapper in zip(self._FUNCTIONS, (yielding_prepare, resuming_disable), strict=True):
            self._originals[name] = (getattr(self._module, name), wrapper)
            setattr(self._module, name, wrapper)

    def uninstall(self) -> None:
        """Put the functions back, unless somebody else has replaced ours meanwhile."""
        for name, (original, wrapper) in self._originals.items():
            if getattr(self._module, name) is wrapper:
                setattr(self._module, name, original)
        self._originals.clear()

    def _take_back(self, delays: list[float]) -> None:
        delay = delays.pop(0)
        if delay > 0:
            timer = threading.Timer(delay, self._try_again, args=(delays,))
            timer.daemon = True
            timer.start()
        else:
            self._try_again(delays)

    def _try_again(self, delays: list[float]) -> None:
        if not self._originals or self._yielded:
            return
        answer = self._native.nvidia_resume()
        if delays and not answer["measuring"]:
            self._take_back(delays)
        else:
            self._changed(answer)


def skipped_domains(shown: str) -> list[str]:
    """NVTX domains left out when those in `shown` (comma-separated, any case; `all` for every one) are to be seen."""
    names = {name.strip().lower() for name in shown.split(",")}
    return [] if "all" in names else [domain for domain in SKIPPED_DOMAINS if domain.lower() not in names]


def create(native: Native, options: Options, changed: Callable[[], None]) -> NvidiaProvider:
    """See `leadline.capture.providers`."""
    return NvidiaProvider(native, options, changed)


def _attach_options() -> dict[str, Any]:
    return {"cupti_candidates": list(cupti_candidates()), "recording": os.environ.get(RECORDING_VARIABLE, "")}


def no_gpu_sentence() -> str:
    """Why a program that was made for a GPU has not used one; empty where it could have, or was not made for one."""
    torch = sys.modules.get("torch")
    for_cuda = getattr(getattr(torch, "version", None), "cuda", None) is not None
    if not for_cuda and not driver_loaded():
        return ""
    if os.environ.get(VISIBLE_VARIABLE) == "":
        return f"{VISIBLE_VARIABLE} is empty, which hides every GPU, so no GPU work was measured; unset it to use one."
    if any(path.exists() for path in _DEVICE_FILES):
        return ""
    return (
        "The program is built for CUDA, but this machine shows it no NVIDIA GPU and driver (no /dev/nvidiactl), so no "
        "GPU work was measured; where there should be a GPU, see whether `nvidia-smi` works."
    )


def driver_loaded() -> bool:
    """Whether this process has NVIDIA's driver library; reads /proc, loads nothing."""
    try:
        return "/libcuda.so" in Path("/proc/self/maps").read_text()
    except OSError:
        return False


def cupti_candidates() -> Iterator[str]:
    """Where CUPTI may be, best first: the wheel of torch's CUDA, the other, the toolkit, the loader's own paths."""
    torch = sys.modules.get("torch")
    cuda = str(getattr(getattr(torch, "version", None), "cuda", "") or "")
    majors = sorted((13, 12), key=lambda major: not cuda.startswith(str(major)))
    for major in majors:
        folder = "cu13" if major == 13 else "cuda_cupti"
        for place in sys.path:
            path = Path(place) / "nvidia" / folder / "lib" / f"libcupti.so.{major}"
            if path.exists():
                yield str(path)
    toolkits = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    for toolkit in filter(None, toolkits):
        for folder in ("extras/CUPTI/lib64", "lib64"):
            for major in majors:
                path = Path(toolkit) / folder / f"libcupti.so.{major}"
                if path.exists():
                    yield str(path)
    yield from (f"libcupti.so.{major}" for major in majors)


def inject_library() -> Path | None:
    """The file that NVTX_VARIABLE and CUDA_VARIABLE must name; None where this installation has none."""
    # Beside the native module, which an editable installation keeps apart from the Python files.
    native = importlib.util.find_spec("leadline._native")
    path = Path(native.origin).resolve().parent / INJECT_LIBRARY if native is not None and native.origin else None
    return path if path is not None and path.exists() else None


def injection_environment(environment: dict[str, str]) -> dict[str, str]:
    """What a launcher adds to a program's environment so that NVTX ranges and the start of CUDA are seen.

    What the user has set stays: it names another tool.
    """
    library = inject_library()
    if library is None:
        return {}
    return {name: str(library) for name in (NVTX_VARIABLE, CUDA_VARIABLE) if not environment.get(name)}
