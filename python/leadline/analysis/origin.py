"""Whose code a Python frame is: reports and rules name the user's own lines before anyone else's.

Decided from file names only, because a profile is read where its program may not exist. Pure functions.
"""

from __future__ import annotations

import re
from enum import IntEnum


class Origin(IntEnum):
    """Whose code it is; the larger the number, the more a user can do about it."""

    RUNTIME = 0  # the interpreter and its standard library, frozen or built-in code
    FRAMEWORK = 1  # torch, NumPy and their like, and Leadline itself
    PACKAGE = 2  # anything else that was installed
    USER = 3


_FRAMEWORKS = frozenset(
    [
        *("torch", "torchvision", "torchaudio", "torchgen", "functorch", "triton", "nvidia", "cupy"),
        *("jax", "jaxlib", "flax", "optax", "tensorflow", "keras", "numpy", "scipy"),
        *("leadline", "pytest", "_pytest", "pluggy"),
    ]
)
_FUNCTIONS = frozenset(["numpy", "scipy"])
_INSTALLED = re.compile(r"(?:^|/)(?:site|dist)-packages/(?P<package>[^/]+)")
_STANDARD_LIBRARY = re.compile(r"(?:^|/)lib(?:64)?/python\d+(?:\.\d+)?t?/(?P<rest>.*)")
_OWN_CODE = re.compile(r"(?:^|/)(?:python/leadline/|leadline/(?:capture/|_autostart\.py$|_native))")  # also a checkout
_INDUCTOR = re.compile(r"(?:^|/)c[a-z2-7]{50,52}\.py$")  # named by the hash of what torch.compile wrote into it
_WRITTEN = re.compile(r"(?:^|/)[A-Za-z_]\w*(?:\.[A-Za-z_]\w*){2,}\.py$")
"""Of code that a package wrote while running, such as torch_geometric's `torch_geometric.nn.conv.gin_conv_..._x1.py`:
a module's full name, which no file that can be imported has."""
_DEMO = re.compile(r"(?:^|/)leadline/demo/[^/]+\.py$")  # stands for a user's program, wherever it is installed


def origin(file: str) -> Origin:
    """Whose code lives in `file`. Code from stdin, `exec` or a notebook cell counts as the user's."""
    path = file.replace("\\", "/")
    if not path or path.startswith(("<frozen ", "<eval_with_key>")) or path in ("<string>", "<built-in>", "~"):
        return Origin.RUNTIME
    if _DEMO.search(path):
        return Origin.USER
    installed = _INSTALLED.search(path)
    if installed:
        package = installed["package"].removesuffix(".py").lower()
        return Origin.FRAMEWORK if package in _FRAMEWORKS else Origin.PACKAGE
    if _WRITTEN.search(path):
        return Origin.PACKAGE
    if _OWN_CODE.search(path) or _INDUCTOR.search(path):
        return Origin.FRAMEWORK
    return Origin.RUNTIME if _STANDARD_LIBRARY.search(path) else Origin.USER


def is_library(file: str) -> bool:
    """Whether `--hide-library-frames` hides Python frames of this file."""
    return origin(file) != Origin.USER


_DISPATCH = re.compile(
    r"^(?:c10::(?:Dispatcher|KernelFunction|BoxedKernel|OperatorHandle|TypedOperatorHandle|impl::(?:wrap_kernel|make_boxed"
    r"|call_functor|BoxedKernelWrapper))|at::_ops::\w+::(?:call|redispatch)$|at::redispatch::|torch::(?:autograd::"
    r"VariableType|ADInplaceOrView|TraceType)::|at::(?:functorch::)?\{anonymous\}::wrapper_|torch::autograd::"
    r"TypeError_to_NotImplemented_|pybind11::cpp_function::)"
)


def is_dispatch(name: str) -> bool:
    """Whether a native function only finds and calls another one, for PyTorch's dispatcher or pybind11. Hidden with
    library frames, as by ui/model/frames.ts."""
    return _DISPATCH.match(name) is not None


def is_called_as_function(file: str) -> bool:
    """Whether code of this framework is called for one result, as a function of the program is, and does not run it."""
    path = file.replace("\\", "/")
    installed = _INSTALLED.search(path)
    if installed is not None and installed["package"].removesuffix(".py").lower() in _FUNCTIONS:
        return True
    return path.endswith(("/torch/serialization.py", "/torch/_tensor_str.py", "/torch/_utils.py"))


def package_path(file: str) -> str:
    """The part of the path that names library code: from its package on; empty for code that was not installed."""
    path = file.replace("\\", "/")
    installed = _INSTALLED.search(path)
    if installed:
        return path[installed.start("package") :]
    standard = _STANDARD_LIBRARY.search(path)
    return standard["rest"] if standard else ""
