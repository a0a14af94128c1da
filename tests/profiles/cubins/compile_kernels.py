"""Makes the cubins of the Triton kernels: `python compile_kernels.py` in a folder whose name may stay in them."""

from pathlib import Path

import matmul
import triton
from triton.backends.compiler import GPUTarget

for chip in (80, 90, 100, 120):
    source = triton.compiler.ASTSource(
        fn=matmul.matmul,
        signature={"a": "*fp16", "b": "*fp16", "c": "*fp16", "m": "i32", "n": "i32", "k": "i32"}
        | dict.fromkeys(("BM", "BN", "BK"), "constexpr"),
        constexprs={"BM": 64, "BN": 64, "BK": 32},
    )
    made = triton.compile(source, target=GPUTarget("cuda", chip, 32), options={"num_warps": 4})
    Path(f"matmul.sm_{chip}.cubin").write_bytes(made.asm["cubin"])
