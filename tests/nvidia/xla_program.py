"""JAX's programs run on the CPU while a stand-in does what XLA does on a GPU: it names the program and each operation by
NVTX ranges and launches kernels inside; run under `leadline run` by the tests.

xla_program.py NVTX_CLIENT      a library that is NVTX's side of an injected tool
"""

import ctypes
import sys

import fake_gpu
import jax
import jax.extend
import jax.numpy as jnp

from leadline.capture.providers.jax import devices as jax_devices

jax_devices.type_of = lambda device: "cuda"
fake_gpu.load()
client = ctypes.CDLL(sys.argv[1])


def layer(x, w):
    return jnp.tanh(x @ w)


@jax.jit
def step(x, w):
    for _ in range(3):
        x = layer(x, w)
    return jnp.sum(x)


def operations():
    """The number of the program and what it runs, by its own words."""
    backend = jax.extend.backend.get_backend()
    for executable in backend.live_executables():
        module = executable.hlo_modules()[0]
        if module.name == "jit_step":
            from leadline import _xla

            program = _xla.Program(module.as_serialized_hlo_module_proto())
            return program.id, [name for name in program.entry if not name.startswith("copy")]
    raise SystemExit("there is no program of that name")


class Launches(ctypes.Structure):
    _fields_ = [("title", ctypes.c_char_p), ("kernel", ctypes.c_void_p)]


x = jnp.ones((64, 64))
step(x, x).block_until_ready()
number, names = operations()
kernels = [fake_gpu.Kernel(f"kernel_of_{name}".encode(), 1000, 32, 0, False) for name in names]
rows = (Launches * len(names))(
    *(
        Launches(f"Thunk:#name=jit(step)/x,hlo_op={name},unique_hlo_op_id=7#".encode(), ctypes.addressof(kernel))
        for name, kernel in zip(names, kernels, strict=True)
    )
)
launch = ctypes.cast(fake_gpu.runtime().cudaLaunchKernel, ctypes.c_void_p)
program = f"XlaModule:#hlo_module=jit_step,program_id={number}#".encode()


def train():
    for _ in range(5):
        step(x, x), client.run(program, rows, len(names), launch)


train()
client.run(b"XlaModule:#hlo_module=gemm_fusion_dot.85#", rows, 0, launch)
fake_gpu.runtime().cudaDeviceSynchronize()
print(len(names))
