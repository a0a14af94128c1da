"""The text that runs on the GPU: it compiles with what is here, its functions are the vendor's, its errors are sentences."""

from __future__ import annotations

import locale
import os
import re
import stat
import struct
from pathlib import Path

import pytest
from tests.nvidia.test_abi import ROOT, compile_ok
from tests.nvidia.test_sanitizer_abi import RELEASES, SAME_SHAPE, cuda, folder

from leadline.tools import device_text
from leadline.tools.device_text import ARCHITECTURES, PATCHES, Compiler, compilers, patches
from leadline.tools.errors import ToolError

TEXT = ROOT / "native/backends/device"
NANS = "LL_STORE(a) {\n  if (ll_is_float(a.object) && ll_isnan(a)) ll_count(a.object);\n}"
CALLBACKS = {
    "leadline_exit": ("BlockExit", "BLOCK_EXIT"),
    "leadline_global": ("MemoryAccess", "GLOBAL_MEMORY_ACCESS"),
    "leadline_shared": ("MemoryAccess", "SHARED_MEMORY_ACCESS"),
    "leadline_local": ("MemoryAccess", "LOCAL_MEMORY_ACCESS"),
    "leadline_barrier": ("Barrier", "BARRIER"),
    "leadline_syncwarp": ("Syncwarp", "SYNCWARP"),
    "leadline_memcpy_async": ("MemcpyAsync", "MEMCPY_ASYNC"),
    "leadline_memcpy_async_filled": ("MemcpyAsync", "MEMCPY_ASYNC"),
    "leadline_matrix": ("MatrixMemoryAccess", "MATRIX_MEMORY_ACCESS"),
    "leadline_cluster_barrier": ("ClusterBarrierArrive", "CLUSTER_BARRIER_ARRIVE"),
    "leadline_bulk_load": ("BulkCopyGlobalToShared", "BULK_COPY_GLOBAL_TO_SHARED"),
    "leadline_bulk_store": ("BulkCopySharedToGlobal", "BULK_COPY_SHARED_TO_GLOBAL"),
    "leadline_bulk_reduce": ("BulkReductionSharedToGlobal", "BULK_REDUCTION_SHARED_TO_GLOBAL"),
    "leadline_tma_load": ("TensorMemoryLoad", "TMA_LOAD"),
}
FLAGS = {
    "kFlagRead": "READ",
    "kFlagWrite": "WRITE",
    "kFlagAtomicOfSystem": "ATOMSYS",
    "kFlagPrefetch": "PREFETCH",
    "kFlagAtomicWriteOnly": "ATOMIC_WRITE_ONLY",
}
LEADS = """
template <class A, class B> struct Leads : std::false_type {};
template <class S, class... B, class R>
struct Leads<R (*)(void*, unsigned long, unsigned long, unsigned, unsigned, unsigned), S (*)(B...)>
    : Same<R (*)(void*, unsigned long, unsigned long, unsigned, unsigned), S (*)(B...)> {};
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def one(kind: str) -> Compiler:
    found = next((each for each in compilers() if bool(each.nvcc) == (kind == "nvcc")), None)
    if found is None:
        pytest.skip(f"NVIDIA's compilers are not installed here: no {kind}.")
    return found


def functions(elf: bytes) -> set[str]:
    """The functions that a cubin gives to others: its symbol table, read as ELF says."""
    assert elf[:4] == b"\x7fELF"
    start, size, count = struct.unpack_from("<Q10xHH", elf, 0x28)
    found = set()
    for number in range(count):
        header = struct.unpack_from("<IIQQQQIIQQ", elf, start + number * size)
        if header[1] != 2:  # a table of symbols
            continue
        names = struct.unpack_from("<IIQQQQ", elf, start + header[6] * size)[4]
        for at in range(header[4], header[4] + header[5], 24):
            name, info = struct.unpack_from("<IB", elf, at)
            if info == 0x12:  # global, a function
                found.add(elf[names + name : elf.index(b"\0", names + name)].decode())
    return found


def test_the_list_of_patches_is_the_headers() -> None:
    text = (TEXT / "tracker.h").read_text()
    listed = re.findall(r"patch\((leadline_\w+), (\d+)\)", text)
    assert {name: int(number) for name, number in listed} == PATCHES
    assert PATCHES.keys() == CALLBACKS.keys()


@pytest.mark.parametrize("release", RELEASES)
def test_functions_take_what_the_vendor_gives(tmp_path: Path, release: str) -> None:
    where = folder(release)
    lines = ["#include <sanitizer.h>", "#include <type_traits>", '#include "testing/simt/simt.h"',
             '#include "backends/device/patches.cu"', SAME_SHAPE, LEADS]  # fmt: skip
    old = release != "13.5"
    for name, (callback, point) in CALLBACKS.items():
        if name == "leadline_tma_load" and old:
            continue  # younger than these
        lines.append(f"static_assert(SANITIZER_INSTRUCTION_{point} == {PATCHES[name]});")
        if name == ("leadline_memcpy_async_filled" if old else "leadline_memcpy_async"):
            continue  # of the other releases
        if name == "leadline_bulk_store" and not old:
            lines.append(f"static_assert(Leads<SanitizerCallback{callback}, decltype(&{name})>::value);")
            continue  # an argument at the end that is not used
        lines.append(f'static_assert(Same<decltype(&{name}), SanitizerCallback{callback}>::value, "{name}");')
    for ours, theirs in FLAGS.items():
        if theirs != "ATOMIC_WRITE_ONLY" or not old:
            lines.append(f"static_assert(int({ours}) == SANITIZER_MEMORY_DEVICE_FLAG_{theirs});")
    compile_ok(tmp_path, "\n".join(lines) + "\n", where, cuda(release))


def test_one_file_for_every_gpu_is_small() -> None:
    code = patches(compiler=one("nvcc"))
    assert 10_000 < len(code) < 300_000


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_both_ways_give_the_declared_functions(architecture: int, tmp_path: Path) -> None:
    compiler = one("nvrtc")
    assert compiler.nvrtc is not None
    if architecture not in compiler.nvrtc.architectures:
        pytest.skip(f"{compiler.name} is older than GPUs of compute capability {architecture / 10:.1f}.")
    cubin = patches((architecture,), compiler=compiler)
    assert functions(cubin) == set(PATCHES)
    by_nvcc = tmp_path / "nvcc.cubin"
    source = tmp_path / "patches.cu"
    source.write_text(device_text.source())
    command = [one("nvcc").nvcc, "-std=c++17", "-cubin", "--compile-as-tools-patch", f"-arch=sm_{architecture}"]
    assert device_text._run([*command, "-o", str(by_nvcc), str(source)]) == ""
    assert functions(by_nvcc.read_bytes()) == set(PATCHES)


def test_a_gpu_that_the_compiler_does_not_know_is_a_sentence() -> None:
    with pytest.raises(ToolError, match=r"NVRTC 1\d\.\d makes no code for compute capability 3\.0; a newer one may"):
        patches((30,), compiler=one("nvrtc"))


@pytest.mark.parametrize("kind", ["nvcc", "nvrtc"])
def test_a_users_text_comes_along_or_says_where_it_fails(kind: str) -> None:
    compiler = one(kind)
    encoding = locale.nl_langinfo(locale.CODESET)
    plain = patches((90,), compiler=compiler)
    assert locale.nl_langinfo(locale.CODESET) == encoding  # NVRTC changes that of the thread that calls it
    assert patches((90,), NANS, "NaNs", compiler) != plain
    wrong = NANS.replace("ll_isnan(a)", "ll_isnan(b)")
    with pytest.raises(
        ToolError, match=r'The `gpu` text of the tool NaNs does not compile: line 2: identifier "b" is undefined\.'
    ):
        patches((90,), wrong, "NaNs", compiler)


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_what_was_made_is_kept(tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    stand_in = script(
        tmp_path / "nvcc",
        f'[ "$1" = --list-gpu-arch ] && exit\necho "$@" >> {calls}\nwhile [ "$1" != -o ]; do shift; done\necho code > "$2"',
    )
    compiler = Compiler("nvcc 1", nvcc=stand_in)
    assert patches((90,), compiler=compiler) == b"code\n"
    assert patches((90,), compiler=compiler) == b"code\n"
    assert len(calls.read_text().splitlines()) == 1
    patches((90,), NANS, "NaNs", compiler)
    patches((100,), compiler=compiler)
    patches((90,), compiler=Compiler("nvcc 2", nvcc=stand_in))
    assert len(calls.read_text().splitlines()) == 4
    assert "--compile-as-tools-patch" in calls.read_text()
    assert not [path for path in (tmp_path / "cache/leadline/tools").iterdir() if path.suffix != ".bin"]


def test_an_older_nvcc_compiles_for_what_it_knows(tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    lists = 'case "$1" in --list-gpu-arch) printf "compute_80\\ncompute_90\\n"; exit;; esac'
    writes = f'echo "$@" >> {calls}\nwhile [ "$1" != -o ]; do shift; done\necho code > "$2"'
    compiler = Compiler("nvcc 12.4", nvcc=script(tmp_path / "nvcc", f"{lists}\n{writes}"))
    patches((80, 90, 120), compiler=compiler)
    patches((120,), compiler=compiler)
    first, second = calls.read_text().splitlines()
    assert "code=sm_80" in first and "code=[sm_90,compute_90]" in first and "120" not in first.partition(" -o ")[0]
    assert "code=[sm_90,compute_90]" in second and "sm_80" not in second


def test_errors_are_sentences(tmp_path: Path) -> None:
    told = 'NaNs.gpu(7): error: expected a ";"\n\n1 error detected in the compilation of "patches.cu".'
    compiler = Compiler("nvcc 1", nvcc=script(tmp_path / "nvcc", f"cat <<'END' >&2\n{told}\nEND\nexit 2"))
    with pytest.raises(ToolError, match=r'The `gpu` text of the tool NaNs does not compile: line 7: expected a ";"\.$'):
        patches((90,), NANS, "NaNs", compiler)
    silent = Compiler("nvcc 2", nvcc=script(tmp_path / "silent", "exit 3"))
    with pytest.raises(ToolError, match=r"The text for the GPU does not compile: error 3\."):
        patches((90,), compiler=silent)
    with pytest.raises(ToolError, match=r"could not be compiled: .*No such file"):
        patches((90,), compiler=Compiler("nvcc 3", nvcc=str(tmp_path / "missing")))
    with pytest.raises(ToolError, match="has no LL_STORE"):
        patches((90,), "int x;", "Counts", silent)


def test_without_a_compiler_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_text, "compilers", list)
    assert "nvidia-cuda-nvrtc" in device_text.why_not()
    with pytest.raises(ToolError, match="nothing here compiles for an NVIDIA GPU; install"):
        patches()


def test_a_compiler_of_ones_own_choice_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = script(tmp_path / "my-nvcc", 'echo "release 99.1, V99.1.2"')
    monkeypatch.setenv("NVCC", mine)
    monkeypatch.setenv("CXX", os.environ.get("CXX", "g++"))
    assert compilers()[0] == Compiler("nvcc 99.1.2", nvcc=mine)
