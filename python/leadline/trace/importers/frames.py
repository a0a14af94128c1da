"""Which frame of a call path an event of a Kineto trace is.

The profiler's Python frames are text, `file(line): function`, with the line at which the function is defined and the
file without the folder of `sys.path` that it was found in, so a package cannot be told from the program by its path:
its name decides. Addresses in names are taken off, or every run would have paths of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from leadline.profiles.builder import ProfileBuilder
from leadline.schema import FrameKind
from leadline.steps.names import phase_of
from leadline.trace.importers.spans import NO_FRAME
from leadline.trace.importers.standard_library import standard_files
from leadline.trace.tables import Kind

_PYTHON = re.compile(r"^(?P<file>.+)\((?P<line>\d{1,9})\): (?P<function>.+)$", re.DOTALL)
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_NUMBERED = re.compile(r"_\d+$")
_WHOLE = re.compile(r"^(/|<|[A-Za-z]:/)")
_PROFILER = re.compile(r"^(.*/)?torch/(profiler/|autograd/profiler)")
_OPTIMIZER = re.compile(r"^Optimizer\.step#(?P<name>.+)\.step$")
_PACKAGES = frozenset(
    [
        *("torch", "torchvision", "torchaudio", "torchtext", "torchrec", "fbgemm_gpu", "functorch", "triton", "numpy"),
        *("transformers", "accelerate", "datasets", "diffusers", "peft", "trl", "tokenizers", "safetensors", "timm"),
        *("lightning", "lightning_fabric", "pytorch_lightning", "torchmetrics", "ignite", "composer", "deepspeed"),
        *("megatron", "apex", "xformers", "flash_attn", "vllm", "ray", "torch_geometric", "scipy", "pandas", "PIL"),
        *("tqdm", "wandb", "mlflow", "tensorboard", "hydra", "omegaconf", "einops", "mmcv", "mmengine", "monai"),
    ]
)
"""Top folders that are installed packages; any other may be the program's own."""


def span_frame(
    builder: ProfileBuilder, kind: Kind, name: str, facts: str = "", standard: frozenset[str] = frozenset()
) -> int:
    """Frame of a span that is no module; NO_FRAME for built-in functions and the profiler itself, which our own paths
    do not have either. `facts`: what `operator_facts` says; `standard`: what
    `files_of_python` found."""
    if kind == Kind.PYTHON:
        return _python_frame(builder, name, standard)
    if kind == Kind.REGION:
        return _range_frame(builder, name)
    return builder.frame(FrameKind.OPERATOR if kind == Kind.OPERATOR else FrameKind.API, name, detail=facts)


def module_frame(builder: ProfileBuilder, path: str) -> int:
    """Frame of an nn.Module's call; the path is those of all modules around, such as `VGG_0.Sequential_0.Conv2d_3`."""
    return builder.frame(FrameKind.MODULE, path, module=_NUMBERED.sub("", path.rpartition(".")[2]))


def operator_facts(detail: Mapping[str, Any]) -> str:
    """The `detail` of an operator whose shapes were recorded, as our own profiles have it; empty without shapes."""
    shapes = detail.get("Input Dims")
    if not isinstance(shapes, list):
        return ""
    facts: dict[str, Any] = {"shapes": shapes}
    arguments = detail.get("Concrete Inputs")
    if isinstance(arguments, list):
        facts["arguments"] = [_argument(value) for value in arguments]
    return json.dumps(facts)


def _argument(value: Any) -> Any:
    """What a text such as `[1, 1]` or `False` says; None where it says nothing."""
    try:
        return json.loads(str(value).replace("True", "true").replace("False", "false")) if value != "" else None
    except ValueError:
        return None


def _range_frame(builder: ProfileBuilder, name: str) -> int:
    phase = phase_of(name)
    if phase is None:
        return builder.frame(FrameKind.REGION, _ADDRESS.sub("", name))
    optimizer = _OPTIMIZER.match(name)
    return builder.frame(
        FrameKind.PHASE, phase, detail=json.dumps({"optimizer": optimizer["name"]}) if optimizer else ""
    )


def _python_frame(builder: ProfileBuilder, name: str, standard: frozenset[str]) -> int:
    found = _PYTHON.match(name)
    if not found or _PROFILER.match(found["file"]):
        return NO_FRAME
    line = int(found["line"])
    file = _whole_path(found["file"].replace("\\", "/"), standard)
    return builder.frame(FrameKind.PYTHON, found["function"], file=file, line=line, first_line=line)


def _whole_path(path: str, standard: frozenset[str]) -> str:
    """The file with the folder that says whose code it is, where the profiler took that off."""
    if _WHOLE.match(path):
        return path
    if path.partition("/")[0] in _PACKAGES:
        return f"site-packages/{path}"
    return f"lib/python3/{path}" if path in standard else path


def files_of_python(names: Iterable[str]) -> frozenset[str]:
    """The files of Python's own library among those of these frames."""
    told = (_PYTHON.match(name) for name in names)
    return standard_files(
        (found["file"].replace("\\", "/"), found["function"], int(found["line"])) for found in told if found
    )
