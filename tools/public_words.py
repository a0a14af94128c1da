#!/usr/bin/env python3
"""Makes python/leadline/report/public_words.txt: words that public libraries name their operators and kernels with.

    python tools/public_words.py TRACE.json[.gz] ...    traces of public programs, whose kernels' names are read too

`leadline redact --names` keeps a name only where each of its words is in the list.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

OUT = Path(__file__).resolve().parent.parent / "python/leadline/report/public_words.txt"
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


def of_torch() -> Iterator[str]:
    import torch

    for schema in torch._C._jit_get_all_schemas():
        if schema.name.partition("::")[0] in ("aten", "prim", "prims", "c10d", "_c10d_functional", "inductor"):
            yield schema.name
    functions = Path(torch.__file__).parent / "include/torch/csrc/autograd/generated/Functions.h"
    yield from re.findall(r"struct TORCH_API (\w+)", functions.read_text())
    yield from (name for name in dir(torch.nn) + dir(torch.optim) + dir(torch.nn.functional) if name[0] != "_")


def of_trace(path: Path) -> Iterator[str]:
    data = path.read_bytes()
    text = (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8", "replace")
    try:
        found = json.loads(text)
    except ValueError:
        return
    for event in found.get("traceEvents", []) if isinstance(found, dict) else []:
        name, category = str(event.get("name", "")), event.get("cat")
        if category in ("kernel", "gpu_memcpy", "gpu_memset") and LIBRARIES.match(name):
            yield name
        if category in ("cuda_runtime", "cuda_driver", "Runtime") and re.fullmatch(r"(cuda|cu|hip)[A-Z]\w*", name):
            yield name


def main() -> int:
    from leadline import schema

    names = [
        *of_torch(),
        MORE,
        " ".join(vars(schema)),
        *(str(one) for one in vars(schema).values() if isinstance(one, tuple | dict)),
    ]
    for path in sys.argv[1:]:
        names += of_trace(Path(path))
    words = {word for name in names for word in WORD.findall(name) if len(word) > 1}
    OUT.write_text("\n".join(sorted(words)) + "\n", encoding="ascii")
    print(f"{len(words)} words")
    return 0


if __name__ == "__main__":
    sys.exit(main())
