"""Which names of operators, kernels, classes, functions and files are public, so that `leadline redact` may keep them.

Operators and regions are public where `public_operators.txt` has the whole name, since a program chooses its own names.
Kernels, copies and calls of drivers are public where each of their words is in `public_words.txt` and, of a kernel, the
form is that of a library (public_kernels.py). tools/public_words.py makes the lists from PyTorch and public traces.

Of Python's functions and files each part has to be in `public_functions.txt` as a whole, also inside of an installed
package: a package of one's own may be called as a public one, and a public one may run what was made at run time.
"""

from __future__ import annotations

import re
import sys
from functools import lru_cache
from pathlib import Path

_WORD = re.compile(r"[A-Za-z]+")
_STRANGE = re.compile(r"[^\x20-\x7e]")
_MOST = 4096
_PACKAGE = re.compile(r"(?:^|/)(?:site|dist)-packages/(?P<package>[^/]+?)(?:\.py)?(?:/|$)")
_STANDARD = re.compile(r"(?:^|/)lib(?:64)?/python\d+(?:\.\d+)?t?/(?P<package>[^/]+?)(?:\.py)?(?:/|$)")
_LIBRARY = re.compile(
    r"(lib(torch(_cpu|_cuda|_cuda_linalg|_hip|_xpu|_python|_global_deps|_nvshmem)?|shm|c10(_cuda|_hip|_xpu)?|python[\d.]*"
    r"|stdc\+\+|gcc_s|gomp|iomp5|omp|m|c|dl|rt|pthread|util|cuda|cudart|cupti|nccl|rccl|nvrtc(-builtins)?|nvToolsExt|nvJitLink"
    r"|cublas(Lt)?|cudnn(_(adv|cnn|ops|graph|heuristic|engines_precompiled|engines_runtime_compiled))?|cufft|cusparse(Lt)?"
    r"|cusolver|curand|amdhip64|hsa-runtime64|rocblas|hipblas(lt)?|hipfft|hipsparse|MIOpen|openblas(p|64_|o)?|cblas|blas|lapack"
    r"|mkl_(rt|core|intel_(thread|lp64)|gnu_thread|(vml_)?(avx2|avx512|def|mc3?))|z|ssl|crypto|ffi)"
    r"|ld-linux(-x86-64|-aarch64)?|python[\d.]*|linux-vdso)(-[0-9a-f]{8,})?([-.](so|[\d.]+|r\d+))*"
)
_MODULE_FILE = re.compile(r"(?P<name>\w+)((\.cpython-\d+t?-(x86_64|aarch64)-linux-(gnu|musl)|\.abi3)?\.so|\.pyi?)?")
_MADE = ("<module>", "<lambda>", "<locals>", "<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>")
_FROZEN = re.compile(r"<frozen (?P<module>[\w.]+)>")


@lru_cache(maxsize=3)
def _listed(name: str) -> frozenset[str]:
    return frozenset(Path(__file__).with_name(name).read_text(encoding="ascii").split())


def is_public_name(name: str) -> bool:
    """Whether each word is public; single letters and numbers say nothing."""
    if len(name) > _MOST or _STRANGE.search(name):
        return False
    return all(len(word) == 1 or word in _listed("public_words.txt") for word in _WORD.findall(name))


_NODE = "autograd::engine::evaluate_function: "
_STEP = re.compile(r"ProfilerStep#\d+")


def is_public_operator(name: str) -> bool:
    """Whether PyTorch gives this name, as a whole, to an operator, to a node of autograd or to a region."""
    return bool(_STEP.fullmatch(name)) or name.removeprefix(_NODE) in _listed("public_operators.txt")


@lru_cache(maxsize=1)
def public_operator_words() -> frozenset[str]:
    """Names of public operators without their namespaces, as Inductor joins them."""
    return frozenset(name.rpartition("::")[2] for name in _listed("public_operators.txt"))


def is_public_function(name: str) -> bool:
    """Whether each part of a function's or a module's dotted name is public as a whole; single letters say nothing."""
    listed = _listed("public_functions.txt")
    return len(name) <= _MOST and all(len(part) == 1 or part in _MADE or part in listed for part in name.split("."))


def is_public_part(part: str) -> bool:
    """Whether a folder or the name of a file inside of a public package is public."""
    found = _MODULE_FILE.fullmatch(part)
    return found is not None and (is_public_function(found["name"]) or found["name"] in _packages())


def is_public_module(file: str) -> bool:
    """Whether all of what `public_package` gives of a file is public, or it is a module inside of the interpreter."""
    if frozen := _FROZEN.fullmatch(file):
        return is_public_function(frozen["module"])
    installed = public_package(file)
    return bool(installed) and all(is_public_part(part) for part in installed.split("/"))


@lru_cache(maxsize=1)
def _packages() -> frozenset[str]:
    return _listed("public_packages.txt") | sys.stdlib_module_names


def public_package(file: str) -> str:
    """The part of a file's path from its public package on, `torch/nn/modules/module.py`; empty where it is of none."""
    path = file.replace("\\", "/")
    found = _PACKAGE.search(path)
    if found:
        return path[found.start("package") :] if found["package"] in _listed("public_packages.txt") else ""
    found = _STANDARD.search(path)
    if found and found["package"] in sys.stdlib_module_names:
        return path[found.start("package") :]
    return ""


def is_public_library(file: str) -> bool:
    """Whether a native frame is of the interpreter, a compiler or a public framework."""
    return bool(_LIBRARY.fullmatch(file.replace("\\", "/").rpartition("/")[2])) or is_public_module(file)
