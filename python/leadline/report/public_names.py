"""Which names of operators, kernels, classes and packages are public, so that `leadline redact` may keep them.

A name is public where each of its words is in `public_words.txt`, which tools/public_words.py makes from PyTorch and
traces of public programs. A word of one's own anywhere in a name, `triton_poi_fused_acme_add_0`, makes it one's own.
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
    r"(lib(torch\w*|c10\w*|python[\d.]*|stdc\+\+|gcc_s|gomp\S*|iomp5|m|c|dl|rt|pthread|cuda\w*|cublas\w*|cudnn\w*|cufft\w*|"
    r"cusparse\w*|cusolver\w*|curand|cupti|nccl|nvrtc\w*|nvToolsExt|amdhip64|hsa-runtime64|rccl|rocblas|MIOpen|mkl_\w+|"
    r"openblas\S*|z|ssl|crypto|ffi)|ld-linux\S*|python[\d.]*|linux-vdso)(-[0-9a-f]{8,})?([-.](so|\d+|cpython-\S+|abi3))*"
)


@lru_cache(maxsize=2)
def _listed(name: str) -> frozenset[str]:
    return frozenset(Path(__file__).with_name(name).read_text(encoding="ascii").split())


def is_public_name(name: str) -> bool:
    """Whether each word is public; single letters and numbers say nothing."""
    if len(name) > _MOST or _STRANGE.search(name):
        return False
    return all(len(word) == 1 or word in _listed("public_words.txt") for word in _WORD.findall(name))


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
    return bool(_LIBRARY.fullmatch(file.replace("\\", "/").rpartition("/")[2])) or bool(public_package(file))
