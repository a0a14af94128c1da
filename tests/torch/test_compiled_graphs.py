"""Which kernel of compiled code waits for which: read from generated code, and joined with what ran."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from tests.trace.test_dataflow import run

from leadline.capture.providers.torch.compiled_graphs import graph_of
from leadline.trace.dataflow import EdgeKind, edges

DRAWN = '''
cpp_fused_relu_0 = async_compile.cpp_pybinding(['const float*', 'float*'], r"""...""")
triton_poi_fused_add_1 = async_compile.triton("triton_poi_fused_add_1", """
def triton_poi_fused_add_1(in_out_ptr0, in_ptr0, xnumel, XBLOCK : tl.constexpr):
    pass
""", device_str='cuda')
def call(args):
    arg0_1, arg1_1 = args
    with torch.cuda._DeviceGuard(0):
        buf0 = empty_strided_cpu((4, 4), (4, 1), torch.float32)
        extern_kernels.mm(arg0_1, arg1_1, out=buf0)
        buf1 = empty_strided_cpu((4, 4), (4, 1), torch.float32)
        cpp_fused_relu_0(arg1_1, buf1)
        buf2 = buf1; del buf1  # reuse
        triton_poi_fused_add_1.run(buf2, buf0, 16, stream=stream0)
        buf3 = torch.ops.aten.topk.default(buf2, 2)
        buf4 = buf3[0]
        buf5 = extern_kernels.convolution(reinterpret_tensor(buf4, (2, 2), (2, 1), 0), arg0_1, stride=(1,))
        return (buf5,)
'''


def test_generated_code_says_what_needs_what() -> None:
    found = graph_of(DRAWN)
    assert found == {
        "calls": ["mm", "cpp_fused_relu_0", "triton_poi_fused_add_1", "topk", "convolution"],
        "edges": [0, 2, 1, 2, 2, 3, 3, 4],
    }


def test_code_without_a_call_has_no_graph() -> None:
    assert graph_of("x = 1") is None
    assert graph_of("def call(args):\n    return args") is None


PROGRAM = """
import torch
class Two(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = torch.nn.Linear(16, 16), torch.nn.Linear(16, 16), torch.nn.Linear(16, 8)
    def forward(self, x):
        return self.c(torch.relu(self.a(x)) + torch.tanh(self.b(x)))
torch.set_num_threads(1)
model = torch.compile(Two())
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(4):
    optimizer.zero_grad()
    model(torch.randn(4, 16)).square().mean().backward()
    optimizer.step()
"""


def test_a_fused_kernel_waits_for_both_branches(tmp_path: Path) -> None:
    profile = run(tmp_path, PROGRAM, 2)
    found = edges(profile)
    tree, events = profile.tree, profile.events
    name = [tree.text("name", int(tree.frame_of[node])) for node in events["node"]]
    compiled = found.kind == EdgeKind.COMPILED
    pairs = list(zip(found.source[compiled].tolist(), found.target[compiled].tolist(), strict=True))
    fused = {target for _, target in pairs if name[target].startswith("cpp_fused_add_relu_tanh")}
    assert len(fused) == 2, "one a step"
    for kernel in fused:
        inputs = [source for source, target in pairs if target == kernel]
        assert [name[row] for row in inputs] == ["aten::addmm", "aten::addmm"]
        end = events["start_ns"][inputs] + events["duration_ns"][inputs]
        assert (end <= events["start_ns"][kernel]).all()
    assert np.diff(np.array(pairs)[:, ::-1], axis=1).max() < 0, "whoever writes comes first"
