#!/usr/bin/env python3
"""Makes the lists of public names that `leadline redact` keeps, below python/leadline/report.

    python tools/public_words.py TRACE.json[.gz] ...    traces of public programs, whose kernels' names are read too

`public_words.txt`: words that public libraries name their kernels with. A name stays only where each of its words is in
the list.

`public_operators.txt`: operators, nodes of autograd and regions of PyTorch, and operators of public libraries in the
traces. A name stays only where the list has it as a whole.

`public_functions.txt`: functions, classes, modules and folders of public packages that stand on hot paths, from the
packages installed here; those that are not keep what the list had. A name stays only where each of its parts is in the
list as a whole.
"""

from __future__ import annotations

import gzip
import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

REPORT = Path(__file__).resolve().parent.parent / "python/leadline/report"
OUT = REPORT / "public_words.txt"
OPERATORS = REPORT / "public_operators.txt"
FUNCTIONS = REPORT / "public_functions.txt"
WORD = re.compile(r"[A-Za-z]+")
LIBRARIES = re.compile(
    r"(void )?(at::|c10::|cub::|thrust::|cutlass|cudnn|cublas|nccl|ampere_|volta_|turing_|hopper_|sm\d+_|nvjet|gemm"
    r"|ck::|rocprim|hipcub|Cijk_|flash_|triton_|Mem(cpy|set)|miopen|MIOpen|igemm|gridwise|batched_transpose|__amd_rocclr)"
)
MORE = """
AccumulateGrad CopySlices CopyBackwards GraphRoot DataLoader iter next DistributedDataParallel DataParallel FSDP
Autograd
NVIDIA AMD Intel Tesla Quadro GeForce RTX GTX GB GiB SXM PCIE PCIe HBM NVL Instinct Radeon Graphics Xeon EPYC Ryzen
Processor CPU GPU TPU Core MI Apple Neoverse device stream queue host Memcpy Memset HtoD DtoH DtoD HtoH PtoP
Pageable Pinned Device Unknown ProfilerStep record param Optimizer step zero grad autograd engine evaluate function
profiler gloo mkldnn inductor prims prim forward backward optimizer closure data loading compile on another thread
captured at instantiated before profiling turn garbage collection saving root module model void unsigned char short
int long float double bool const template lambda anonymous namespace operator std tuple array integral constant
enable if type true false bfloat half Half BFloat cache modifier evict first last ns ms us bytes count sum mean poi
per red tem fused fwd bwd rrelu relu gelu silu softmax layernorm sgemm hgemm dgemm tn nn nt fma
"""

NAMESPACES = re.compile(
    r"(aten|prims?|_?c10d(_functional(_autograd)?)?|inductor(_prims)?|mkl(dnn)?|onednn|profiler|quantized|sparse|symm_mem|fbgemm"
    r"|torch::distributed::reducer|torch\.distributed\.ddp\.reducer)::\w+"
)
COLLECTIVES = """
all_reduce broadcast reduce all_gather _all_gather_base reduce_scatter _reduce_scatter_base all_to_all all_to_allv
gather scatter send recv barrier coalesced all_reduce_barrier all_gather_coalesced reduce_scatter_tensor_coalesced
all_gather_into_tensor_coalesced all_reduce_coalesced
"""
NODES = "AccumulateGrad CopySlices CopyBackwards GraphRoot Error DelayedError UndefinedGrad"

DEFINED = re.compile(r"^\s*(?:async\s+)?(?:def|class)\s+(\w+)", re.MULTILINE)
STANDARD = """
_bootsubprocess _collections_abc _weakrefset abc argparse ast asyncio base64 bisect bz2 codecs collections concurrent
contextlib contextvars copy copyreg csv ctypes dataclasses datetime decimal encodings enum fnmatch fractions functools
genericpath getpass gettext glob gzip hashlib heapq hmac http importlib inspect io ipaddress json linecache locale
logging lzma mimetypes multiprocessing ntpath numbers opcode operator os pathlib pickle pkgutil platform posixpath
pprint queue random re reprlib runpy sched secrets selectors shelve shlex shutil signal site socket socketserver sqlite3
ssl stat statistics string stringprep struct subprocess tarfile tempfile textwrap threading timeit token tokenize
traceback types typing unittest urllib uuid warnings weakref xml zipfile zipimport
"""
PACKAGES = {
    "torch": r"\w+\.py|(nn|optim|autograd|amp|cuda|cpu|distributed|utils|multiprocessing|profiler|jit|compiler|sparse"
    r"|fft|distributions|_functorch|_library|_dispatch|_subclasses|_higher_order_ops|_logging|func)/.*"
    r"|_dynamo/(\w*frame\w*|utils|guards|output_graph|symbolic_convert|callback|hooks|decorators|backends/\w+)\.py"
    r"|_inductor/(runtime/.*|(compile_fx|codecache|graph|scheduler|output_code|async_compile|utils)\.py)",
    "numpy": r"(_core|lib|linalg|random|fft|ma|matrixlib|polynomial)/.*|\w+\.py",
    "jax": r"_src/((numpy|lax|nn|interpreters|scipy|random|image)/.*|\w+\.py)|\w+\.py|(nn|numpy|lax)/.*",
    "optax": ".*",
    "flax": r"(linen|nnx|core|training)/.*",
    "transformers": r"\w+\.py|(generation|integrations|data|loss|trainer\w*|utils)/.*"
    r"|models/(auto|albert|bart|bert|bloom|clip|convnext|deberta\w*|deepseek\w*|deit|detr|distilbert|electra|falcon|gemma\d?"
    r"|gpt2|gpt_neox?|gpt_oss|gptj|granite|llama\d?|llava|longformer|mamba\d?|mbart|mistral|mixtral|mpt|olmo\d?|opt|phi\d?"
    r"|qwen\w*|resnet|roberta|sam|segformer|siglip|swin|t5|vit|wav2vec2|whisper|xlm_roberta)/modeling_(?!tf_|flax_)\w+\.py",
    "accelerate": r"\w+\.py|utils/.*",
    "lightning": "(pytorch|fabric)/.*",
    "ignite": "(engine|handlers|metrics)/.*",
    "torchmetrics": r"\w+\.py",
    "pandas": r"core/(\w+|(indexes|internals|reshape|groupby|arrays|dtypes|ops)/.*)\.py|io/\w+\.py",
    "tqdm": r"\w+\.py",
}
"""Of each package the files that programs spend time in."""
OTHERS = re.compile(r"(^|.*/)(_?tests?|_?testing|examples?|docs?)/.*|.*(^|/)(test_\w*|_torch_docs|conftest)\.py")


def of_package(folder: Path, wanted: str) -> Iterator[str]:
    for path in folder.rglob("*.py"):
        inside = path.relative_to(folder).as_posix()
        if re.fullmatch(wanted, inside) and not OTHERS.fullmatch(inside):
            yield from Path(inside).with_suffix("").parts
            yield from DEFINED.findall(path.read_text("utf-8", "replace"))


def of_packages() -> Iterator[str]:
    standard = Path(os.__file__).parent
    yield from of_package(standard, rf"({'|'.join(STANDARD.split())})(/.*|\.py)")
    for package, wanted in PACKAGES.items():
        found = importlib.util.find_spec(package)
        for folder in (found.submodule_search_locations or []) if found is not None else []:
            yield from of_package(Path(folder), wanted)


SYMBOLS = re.compile(r"(at|c10|dnnl|torch::autograd|std)::.*|(mkl|GOMP|gomp|omp|mem|str|pthread|dnnl|cblas)_?\w*")
LIBRARIES_BESIDE_TORCH = ("libtorch_cpu.so", "libc10.so", "libgomp.so.1")


def of_symbols() -> Iterator[str]:
    import torch

    for library in LIBRARIES_BESIDE_TORCH:
        path = Path(torch.__file__).parent / "lib" / library
        if path.exists():
            told = subprocess.run(["nm", "-DC", "--defined-only", path], capture_output=True, text=True, check=False)
            names = (line.split(" ", 2)[-1] for line in told.stdout.splitlines())
            yield from (name for name in names if SYMBOLS.fullmatch(name))


def of_torch() -> Iterator[str]:
    import torch

    for schema in torch._C._jit_get_all_schemas():
        if schema.name.partition("::")[0] in ("aten", "prim", "prims", "c10d", "_c10d_functional", "inductor"):
            yield schema.name
    functions = Path(torch.__file__).parent / "include/torch/csrc/autograd/generated/Functions.h"
    yield from re.findall(r"struct TORCH_API (\w+)", functions.read_text())
    yield from (name for name in dir(torch.nn) + dir(torch.optim) + dir(torch.nn.functional) if name[0] != "_")


def operators() -> Iterator[str]:
    import torch

    for name in torch._C._dispatch_get_all_op_names():
        if NAMESPACES.fullmatch(base := name.partition(".")[0]):
            yield base
    functions = Path(torch.__file__).parent / "include/torch/csrc/autograd/generated/Functions.h"
    nodes = {*re.findall(r"struct TORCH_API (\w+)", functions.read_text()), *NODES.split()}
    yield from nodes
    yield from (f"torch::autograd::{name}" for name in nodes)
    for name in dir(torch.optim):
        if isinstance(getattr(torch.optim, name), type):
            yield from (f"Optimizer.{call}#{name}.{call}" for call in ("step", "zero_grad"))
    yield from (
        f"{backend}:{name}" for backend in ("nccl", "gloo", "mpi", "ucc", "xccl") for name in COLLECTIVES.split()
    )
    yield from ("record_param_comms", "DistributedDataParallel.forward", "detach", "detach_")


def events_of(path: Path) -> list[dict[str, object]]:
    data = path.read_bytes()
    text = (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8", "replace")
    try:
        found = json.loads(text)
    except ValueError:
        return []
    return list(found.get("traceEvents", [])) if isinstance(found, dict) else []


def of_trace(path: Path) -> Iterator[str]:
    for event in events_of(path):
        name, category = str(event.get("name", "")), event.get("cat")
        if category in ("kernel", "gpu_memcpy", "gpu_memset") and LIBRARIES.match(name):
            yield name
        if category in ("cuda_runtime", "cuda_driver", "Runtime") and re.fullmatch(r"(cuda|cu|hip)[A-Z]\w*", name):
            yield name


def operators_of(path: Path) -> Iterator[str]:
    for event in events_of(path):
        if event.get("cat") in ("cpu_op", "Operator") and NAMESPACES.fullmatch(name := str(event.get("name", ""))):
            yield name


def main() -> int:
    from leadline import schema

    names = [
        OUT.read_text(encoding="ascii") if OUT.exists() else "",
        *of_torch(),
        *of_symbols(),
        MORE,
        " ".join(vars(schema)),
        *(str(one) for one in vars(schema).values() if isinstance(one, tuple | dict)),
    ]
    for path in sys.argv[1:]:
        names += of_trace(Path(path))
    words = {word for name in names for word in WORD.findall(name) if len(word) > 1}
    OUT.write_text("\n".join(sorted(words)) + "\n", encoding="ascii")
    known = OPERATORS.read_text(encoding="ascii").splitlines() if OPERATORS.exists() else []
    found = {*known, *operators(), *(name for path in sys.argv[1:] for name in operators_of(Path(path)))}
    OPERATORS.write_text("\n".join(sorted(found)) + "\n", encoding="ascii")
    known = FUNCTIONS.read_text(encoding="ascii").split() if FUNCTIONS.exists() else []
    functions = {name for name in (*known, *of_packages()) if name.isascii() and len(name) > 1}
    FUNCTIONS.write_text("\n".join(sorted(functions)) + "\n", encoding="ascii")
    print(f"{len(words)} words, {len(found)} operators, {len(functions)} functions, modules and folders")
    return 0


if __name__ == "__main__":
    sys.exit(main())
