"""The toy accelerator: known launches, bytes and times, on the lines that asked for them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.losses import lost

from leadline.schema import EventKind

Run = Callable[..., Any]


def test_a_thousand_launches_end_a_thousand_times(run: Run) -> None:
    seen = run(
        """
def step(kernel, stream, ticket):
    assert toy.toy_launch(kernel, stream, 20, ctypes.byref(ticket)) == 0

stream = toy.toy_stream_create()
gemm, relu = load(b"gemm"), load(b"relu")
ticket = U64()
for i in range(500):
    step(gemm, stream, ticket)
    step(relu, None, ticket)
toy.toy_stream_synchronize(stream)
toy.toy_wait(ticket)
"""
    )
    for name in ("gemm", "relu"):
        count, ns = seen.total("gpu_time", name)
        assert count == 500
        assert ns >= 500 * 20_000 - 500 * 200  # busy for so long; its clock counts in steps of 100 ns
        assert seen.above(name, 2) == {("step", "toy_launch")}
        assert seen.total("queue_depth", name)[0] == 500
    assert lost(seen.profile) == []
    (device,) = seen.profile.devices
    assert device.name == "Toy NPU" and device.detail["type"] == "other"
    assert {int(node.exclusive("gpu_time").count) for node in seen.nodes("gemm")} == {500}


def test_callbacks_of_the_program_tell_the_end_and_are_called(run: Run) -> None:
    seen = run(
        """
called = []
done = DONE(lambda user: called.append(user))
def submit(n):
    for i in range(n):
        assert toy.toy_submit(b"attention", None, 30, done, i + 1) == 0
submit(200)
toy.toy_stream_synchronize(None)
assert called == list(range(1, 201)), called
"""
    )
    count, ns = seen.total("gpu_time", "attention")
    assert count == 200 and ns >= 150 * 30_000
    assert seen.above("attention", 2) == {("submit", "toy_submit")}
    assert lost(seen.profile) == []


def test_bytes_directions_memory_and_waits(run: Run) -> None:
    seen = run(
        """
a = ctypes.create_string_buffer(50_000)
device = toy.toy_malloc(50_000)
for i in range(7):
    assert toy.toy_copy(device, a, 50_000, 1, None, 2 * i + 1) == 0
    assert toy.toy_copy(a, device, 10_000, 2, None, 2 * i + 2) == 0
assert toy.toy_copy(a, device, 1, 9, None, 99) == 5  # fails: no work
toy.toy_stream_synchronize(None)
toy.toy_free(device)
assert toy.toy_run(b"blocking", 300) == 0
assert toy.toy_run(None, 300) == 3
"""
    )
    assert seen.total("copy_bytes", "Memcpy HtoD (Host -> Device)") == (7, 350_000)
    assert seen.total("copy_bytes", "Memcpy DtoH (Device -> Host)") == (7, 70_000)
    count, ns = seen.total("gpu_time", "blocking")
    assert count == 1 and ns >= 300_000
    calls = {node.name: node for node in seen.profile.tree.find(kind="api")}
    assert calls["toy_malloc"].exclusive("device_alloc_bytes").sum == 50_000
    assert calls["toy_free"].exclusive("device_free_bytes").sum == 50_000
    assert calls["toy_stream_synchronize"].exclusive("sync_time").count == 1
    assert lost(seen.profile) == []


def test_arguments_arrive_wherever_they_stand(run: Run) -> None:
    run(
        """
f = toy.toy_sum
I = ctypes
f.argtypes = [I.c_int8, I.c_int16, I.c_int32, I.c_int64, I.c_uint8, I.c_uint16, I.c_uint32, I.c_uint64,
              I.c_double, I.c_float, *[I.c_double] * 7, I.c_float]
f.restype = I.c_double
values = [-1, -2, -3, -4, 5, 6, 7, 8, .5, .25, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5]
expected = sum(w * v for w, v in zip([*range(1, 9), *range(1, 11)], values))
assert f(*values) == expected, (f(*values), expected)
VISIT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, P)
def deeper(i, user):
    return toy.toy_each(2, VISIT(lambda j, user: 10 * i + j), None)
assert toy.toy_each(3, VISIT(deeper), None) == 1 + 21 + 41
"""
    )


def test_callers_that_the_loader_does_not_ask_about(run: Run, toy: Path, tmp_path: Path) -> None:
    """A library that was compiled with -fno-plt, one that binds at once, one that looks the function up itself."""
    compiler = shutil.which("gcc") or pytest.skip("needs a C compiler")
    for name, flags in {"noplt": ["-fno-plt"], "now": ["-Wl,-z,now"], "lazy": ["-Wl,-z,lazy"]}.items():
        source = tmp_path / f"{name}.c"
        source.write_text(
            f'int toy_run(const char*, unsigned);\nint call_{name}(void) {{ return toy_run("{name}", 50); }}\n'
        )
        library = [f"-L{toy}", "-l:libtoynpu.so", f"-Wl,-rpath,{toy}"]
        subprocess.run(
            [compiler, "-O2", "-fPIC", "-shared", *flags, str(source), "-o", str(toy / f"{name}.so"), *library],
            check=True,
        )
    seen = run(
        """
import time
for name in ("now", "lazy", "noplt"):
    library = ctypes.CDLL(os.environ["TOY"] + f"/{name}.so")
    call = getattr(library, "call_" + name)
    until = time.monotonic() + 20
    first = call()
    while name == "noplt" and time.monotonic() < until:  # its table is looked at now and then
        call()
        time.sleep(0.01)
        if time.monotonic() > until - 19:
            break
"""
    )
    assert seen.total("gpu_time", "now")[0] == 1
    assert seen.total("gpu_time", "lazy")[0] == 1
    assert seen.total("gpu_time", "noplt")[0] > 0


def test_children_and_forks_are_measured_too(run: Run) -> None:
    seen = run(
        """
import subprocess, sys
toy.toy_run(b"parent", 50)
child = os.fork()
if child == 0:
    toy2 = ctypes.CDLL(os.environ["TOY"] + "/libtoynpu.so")
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
code = 'import ctypes, os; ctypes.CDLL(os.environ["TOY"] + "/libtoynpu.so").toy_run(b"spawned", 50)'
subprocess.run([sys.executable, "-c", code], check=True)
"""
    )
    assert seen.total("gpu_time", "parent")[0] == 1
    assert seen.total("gpu_time", "spawned")[0] == 1


def test_a_window_has_the_work_with_its_launch(run: Run) -> None:
    seen = run(
        """
import leadline
ticket = U64()
kernel = load(b"traced")
for step in range(6):
    with leadline.region("step"):
        toy.toy_launch(kernel, None, 100, ctypes.byref(ticket))
        toy.toy_wait(ticket)
    leadline.step(step)
""",
        "--trace",
        "steps=3",
    )
    events = seen.profile.tables["events"]
    work = events["kind"] == EventKind.KERNEL
    launches = events["kind"] == EventKind.API
    assert int(work.sum()) == 3
    assert set(events["correlation"][work]) == set(events["correlation"][launches])


WRONG = {
    'kind = "lunch"': "the nearest is 'launch'",
    'arguments = ["text nam", "u32"]': "the nearest is 'name'",
    'arguments = ["string", "u32"]': "which is none of",
    'arguments = ["i32 name"]': "cannot be its name",
    "arguments = 7": "must be a list",
    "blockin = true": "unknown key 'blockin'; the nearest is 'blocking'",
    'success = "yes"': 'or "nonzero"',
    'returns = "i32 bytes"': "cannot return its bytes",
}


@pytest.mark.parametrize("line", WRONG)
def test_a_wrong_file_is_one_sentence(tmp_path: Path, line: str) -> None:
    from leadline.capture.accelerator import describe
    from leadline.capture.errors import ProfileError

    key = line.split()[0]
    right = {"name": 'name = "f"', "kind": 'kind = "launch"', "returns": 'returns = "i32"'}
    right.pop(key, None)
    file = tmp_path / "npu.toml"
    file.write_text('name = "NPU"\nlibrary = "libnpu.so"\n[[function]]\n' + "\n".join([*right.values(), line]) + "\n")
    with pytest.raises(ProfileError) as caught:
        describe(file)
    sentence = str(caught.value)
    assert WRONG[line] in sentence and str(file) in sentence and sentence.endswith(".") and "\n" not in sentence


def test_functions_that_are_not_there_are_named_with_the_nearest(run: Run, toy: Path, tmp_path: Path) -> None:
    file = tmp_path / "npu.toml"
    file.write_text(
        'name = "NPU"\nlibrary = "libtoynpu.so"\n[[function]]\nname = "toy_lunch"\nkind = "launch"\n'
        'arguments = ["pointer"]\n'
    )
    seen = run("", description=file)
    assert any(
        "has no function toy_lunch; the nearest name is toy_launch." in one.detail for one in seen.profile.losses
    )


def test_wrong_types_do_not_harm_the_program(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "npu.toml"
    file.write_text(
        'name = "NPU"\nlibrary = "libtoynpu.so"\n[[function]]\nname = "toy_copy"\nkind = "launch"\nblocking = true\n'
        'arguments = ["pointer", "pointer", "text name", "pointer* kernel", "pointer", "u64"]\n'
    )
    seen = run(
        """
a = ctypes.create_string_buffer(50_000)
assert toy.toy_copy(a, a, 50_000, 1, None, 1) == 0
""",
        description=file,
    )
    assert any("a type in the accelerator's file may be wrong" in one.detail for one in seen.profile.losses)


OPENBLAS = """
name = "OpenBLAS"
library = "libscipy_openblas64_*"

[[function]]
name = "scipy_cblas_sgemm64_"
kind = "launch"
blocking = true
arguments = ["i32", "i32", "i32", "i64", "i64", "i64", "f32", "pointer", "i64", "pointer", "i64", "f32", "pointer", "i64"]
"""


def test_a_library_of_others_with_arguments_on_the_stack(run: Run, tmp_path: Path) -> None:
    """NumPy's own copy of OpenBLAS, called by its extension module."""
    file = tmp_path / "openblas.toml"
    file.write_text(OPENBLAS)
    seen = run(
        """
import numpy as np
a, b = np.arange(60_000, dtype=np.float32).reshape(200, 300) / 1e4, np.ones((300, 100), np.float32)
def product():
    return a @ b
for i in range(20):
    assert np.allclose(product(), a.sum(1, keepdims=True), rtol=1e-3)
""",
        description=file,
        prelude="",
    )
    assert seen.total("gpu_time", "scipy_cblas_sgemm64_")[0] == 20
    assert seen.above("scipy_cblas_sgemm64_", 2) == {("product", "scipy_cblas_sgemm64_")}
