"""Launches hand-written Triton kernels on the fake GPU: real Triton compiles and launches them; nothing computes."""

import sys

from tests.nvidia import fake_gpu, fake_triton

fake_gpu.load()

import leadline  # noqa: E402

late = "late" in sys.argv
if not late:
    leadline.start(sys.argv[1], quiet=True)

import triton  # noqa: E402
import triton.language as tl  # noqa: E402
from triton.runtime import driver  # noqa: E402

driver.set_active(fake_triton.triton_driver()())
VALUE = fake_triton.FakeTensor()


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):  # the line of add_kernel
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)


@triton.jit(repr=lambda special: f"scale_by_{special.constants['FACTOR']}")
def scale_kernel(x, n, FACTOR: tl.constexpr):  # the line of scale_kernel
    at = tl.arange(0, 64)
    tl.store(x + at, tl.load(x + at, mask=at < n) * FACTOR, mask=at < n)


@triton.autotune(
    configs=[triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})],
    key=["n"],
    do_bench=lambda call, quantiles: (call(), (1.0, 1.0, 1.0))[1],
)
@triton.jit
def tuned_kernel(x, n, BLOCK: tl.constexpr):  # the line of tuned_kernel
    at = tl.arange(0, BLOCK)
    tl.store(x + at, at.to(tl.float32), mask=at < n)


def launch_all() -> None:
    for _ in range(3):
        add_kernel[(10,)](VALUE, VALUE, VALUE, 1000, BLOCK=128)
        scale_kernel[(1,)](VALUE, 64, FACTOR=3)
        tuned_kernel[(1,)](VALUE, 64)


if late:  # all are compiled and loaded before measuring begins
    launch_all()
    leadline.start(sys.argv[1], quiet=True)
launch_all()
leadline.stop()
if "again" in sys.argv:  # a second file of the same process
    leadline.start(sys.argv[1].replace(".leadline", "-again.leadline"), quiet=True)
    launch_all()
    leadline.stop()
compiler = sys.modules["triton.compiler.compiler"]
jit = sys.modules["triton.runtime.jit"]
for function in (compiler.compile, triton.compile, compiler.CompiledKernel.__init__, jit.JITFunction.__init__):
    assert function.__module__.startswith("triton."), "something of the profiler is left in Triton"
launch_all()
