"""Our declarations of the Compute Sanitizer's API against the vendor's headers and libraries of 12.9, 13.0 and 13.5.

`tools/sanitizer_headers.py` takes them out of NVIDIA's wheels. They are needed by these tests only.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.nvidia import fake_sanitizer
from tests.nvidia.test_abi import ROOT, compile_ok, nvidia_package

VENDOR = ROOT / "build/vendor/sanitizer"
RELEASES = ("12.9", "13.0", "13.5")

STRUCTURES = {
    "ModuleData": ("Sanitizer_ResourceModuleData", {
        "context": "context", "module": "module", "image_bytes": "cubinSize", "image": "pCubin"}),
    "FunctionsData": ("Sanitizer_ResourceFunctionsLazyLoadedData", {
        "context": "context", "module": "module", "functions": "functions", "count": "numFunctions"}),
    "MemoryData": ("Sanitizer_ResourceMemoryData", {
        "address": "address", "size": "size", "context": "context", "device": "device", "stream": "stream",
        "stream_handle": "hStream", "pool": "memoryPool", "flags": "flags"}),
    "LaunchData": ("Sanitizer_LaunchData", {
        "context": "context", "stream": "stream", "stream_handle": "hStream", "module": "module",
        "function": "function", "function_name": "functionName", "grid": "gridDim_x", "block": "blockDim_x",
        "cluster": "clusterDim_x", "grid_id": "gridId", "launch": "hLaunch", "device": "device",
        "api_context": "apiContext", "api_stream": "apiStream", "api_stream_handle": "hApiStream"}),
    "GraphNodeData": ("Sanitizer_GraphNodeLaunchData", {
        "graph_exec": "graphExec", "launch_id": "launchId", "node": "node", "node_type": "nodeType",
        "launch": "launchData", "is_upload": "isGraphUpload"}),
}  # fmt: skip
NUMBERS = {
    "kSuccess": "SANITIZER_SUCCESS",
    "kInvalidParameter": "SANITIZER_ERROR_INVALID_PARAMETER",
    "kInvalidContext": "SANITIZER_ERROR_INVALID_CONTEXT",
    "kOutOfMemory": "SANITIZER_ERROR_OUT_OF_MEMORY",
    "kMaxLimitReached": "SANITIZER_ERROR_MAX_LIMIT_REACHED",
    "kNotInitialized": "SANITIZER_ERROR_NOT_INITIALIZED",
    "kNotSupported": "SANITIZER_ERROR_NOT_SUPPORTED",
    "Domain::kResource": "SANITIZER_CB_DOMAIN_RESOURCE",
    "Domain::kSynchronize": "SANITIZER_CB_DOMAIN_SYNCHRONIZE",
    "Domain::kLaunch": "SANITIZER_CB_DOMAIN_LAUNCH",
    "Domain::kGraphs": "SANITIZER_CB_DOMAIN_GRAPHS",
    "Resource::kContextCreated": "SANITIZER_CBID_RESOURCE_CONTEXT_CREATION_FINISHED",
    "Resource::kContextDestroyStarting": "SANITIZER_CBID_RESOURCE_CONTEXT_DESTROY_STARTING",
    "Resource::kModuleLoaded": "SANITIZER_CBID_RESOURCE_MODULE_LOADED",
    "Resource::kModuleUnloadStarting": "SANITIZER_CBID_RESOURCE_MODULE_UNLOAD_STARTING",
    "Resource::kMemoryAlloc": "SANITIZER_CBID_RESOURCE_DEVICE_MEMORY_ALLOC",
    "Resource::kMemoryFree": "SANITIZER_CBID_RESOURCE_DEVICE_MEMORY_FREE",
    "Resource::kMemoryAllocAsync": "SANITIZER_CBID_RESOURCE_MEMORY_ALLOC_ASYNC",
    "Resource::kMemoryFreeAsync": "SANITIZER_CBID_RESOURCE_MEMORY_FREE_ASYNC",
    "Resource::kMemoryFreeAsyncDone": "SANITIZER_CBID_RESOURCE_MEMORY_FREE_ASYNC_DONE",
    "Resource::kFunctionsLazyLoaded": "SANITIZER_CBID_RESOURCE_FUNCTIONS_LAZY_LOADED",
    "Resource::kFunctionsLazyPatched": "SANITIZER_CBID_RESOURCE_FUNCTIONS_LAZY_PATCHED",
    "Launch::kBegin": "SANITIZER_CBID_LAUNCH_BEGIN",
    "Launch::kAfterSyscallSetup": "SANITIZER_CBID_LAUNCH_AFTER_SYSCALL_SETUP",
    "Launch::kEnd": "SANITIZER_CBID_LAUNCH_END",
    "Graphs::kNodeLaunchBegin": "SANITIZER_CBID_GRAPHS_NODE_LAUNCH_BEGIN",
    "Graphs::kNodeLaunchEnd": "SANITIZER_CBID_GRAPHS_NODE_LAUNCH_END",
    "Graphs::kLaunchBegin": "SANITIZER_CBID_GRAPHS_LAUNCH_BEGIN",
    "Graphs::kLaunchEnd": "SANITIZER_CBID_GRAPHS_LAUNCH_END",
    "kGraphNodeKernel": "CU_GRAPH_NODE_TYPE_KERNEL",
    "kMemoryOfModule": "SANITIZER_MEMORY_FLAG_MODULE",
    "kMemoryHostPinned": "SANITIZER_MEMORY_FLAG_HOST_PINNED",
    "Point::kBlockEnter": "SANITIZER_INSTRUCTION_BLOCK_ENTER",
    "Point::kBlockExit": "SANITIZER_INSTRUCTION_BLOCK_EXIT",
    "Point::kGlobal": "SANITIZER_INSTRUCTION_GLOBAL_MEMORY_ACCESS",
    "Point::kShared": "SANITIZER_INSTRUCTION_SHARED_MEMORY_ACCESS",
    "Point::kLocal": "SANITIZER_INSTRUCTION_LOCAL_MEMORY_ACCESS",
    "Point::kBarrier": "SANITIZER_INSTRUCTION_BARRIER",
    "Point::kMemcpyAsync": "SANITIZER_INSTRUCTION_MEMCPY_ASYNC",
    "Point::kMatrix": "SANITIZER_INSTRUCTION_MATRIX_MEMORY_ACCESS",
    "Point::kClusterBarrierArrive": "SANITIZER_INSTRUCTION_CLUSTER_BARRIER_ARRIVE",
    "Point::kBulkGlobalToShared": "SANITIZER_INSTRUCTION_BULK_COPY_GLOBAL_TO_SHARED",
    "Point::kBulkSharedToGlobal": "SANITIZER_INSTRUCTION_BULK_COPY_SHARED_TO_GLOBAL",
    "Point::kBulkReduceToGlobal": "SANITIZER_INSTRUCTION_BULK_REDUCTION_SHARED_TO_GLOBAL",
}
NEW_NUMBERS = {
    "Point::kTmaLoad": "SANITIZER_INSTRUCTION_TMA_LOAD",
    "Point::kTmaStore": "SANITIZER_INSTRUCTION_TMA_STORE",
}
FUNCTIONS = {
    "subscribe": "sanitizerSubscribe",
    "unsubscribe": "sanitizerUnsubscribe",
    "enable_domain": "sanitizerEnableDomain",
    "get_result_string": "sanitizerGetResultString",
    "add_patches": "sanitizerAddPatches",
    "patch_instructions": "sanitizerPatchInstructions",
    "patch_module": "sanitizerPatchModule",
    "unpatch_module": "sanitizerUnpatchModule",
    "set_launch_callback_data": "sanitizerSetLaunchCallbackData",
    "get_function_pc_and_size": "sanitizerGetFunctionPcAndSize",
    "alloc": "sanitizerAlloc",
    "alloc_host": "sanitizerAllocHost",
    "free": "sanitizerFree",
    "free_host": "sanitizerFreeHost",
    "copy_to_device": "sanitizerMemcpyHostToDeviceAsync",
    "memset": "sanitizerMemset",
}
SAME_SHAPE = """
template <class A, class B> inline constexpr bool same_kind =
    sizeof(A) == sizeof(B) && (std::is_pointer_v<A> == std::is_pointer_v<B>);
template <class A, class B> struct Same : std::false_type {};
template <class R, class... A, class S, class... B> struct Same<R (*)(A...), S (*)(B...)> {
  static constexpr bool of() {
    if constexpr (sizeof...(A) != sizeof...(B)) return false;
    else return sizeof(R) == sizeof(S) && (same_kind<A, B> && ...);
  }
  static constexpr bool value = of();
};
"""


def folder(release: str) -> Path:
    found = VENDOR / release
    if not (found / "libsanitizer-public.so").exists():
        pytest.skip(
            "The Compute Sanitizer's headers are not here; "
            "`python tools/sanitizer_headers.py build/vendor/sanitizer` takes them from wheels."
        )
    return found


def cuda(release: str) -> Path:
    found = nvidia_package("cuda_runtime" if release.startswith("12") else "cu13", "include")
    if found is None or not (found / "cuda.h").exists() or shutil.which("g++") is None:
        pytest.skip("Needs nvidia-cuda-runtime, nvidia-cuda-crt and g++, not installed here.")
    return found


@pytest.mark.parametrize("release", RELEASES)
def test_declarations_are_the_vendors(tmp_path: Path, release: str) -> None:
    where = folder(release)
    lines = ["#include <sanitizer.h>", '#include "backends/sanitizer/sanitizer_abi.h"', "#include <cstddef>",
             "#include <type_traits>", "namespace ours = leadline::sanitizer::abi;", SAME_SHAPE]  # fmt: skip
    for our, (their, fields) in STRUCTURES.items():
        lines.append(f"static_assert(sizeof(ours::{our}) <= sizeof({their}) + 8);")  # what 13.5 appends to launches
        for ours, theirs in fields.items():
            lines.append(f"static_assert(offsetof(ours::{our}, {ours}) == offsetof({their}, {theirs}));")
            if ours != "launch" or our != "GraphNodeData":
                lines.append(
                    f"static_assert(sizeof(((ours::{our}*)0)->{ours}) % sizeof((({their}*)0)->{theirs}) == 0);"
                )
    numbers = NUMBERS | (NEW_NUMBERS if release == "13.5" else {})
    for ours, theirs in numbers.items():
        lines.append(f"static_assert(static_cast<long long>(ours::{ours}) == static_cast<long long>({theirs}));")
    for ours, theirs in FUNCTIONS.items():
        lines.append(f'static_assert(Same<decltype(ours::Functions::{ours}), decltype(&{theirs})>::value, "{ours}");')
    lines.append("static_assert(Same<ours::Callback, Sanitizer_CallbackFunc>::value);")
    compile_ok(tmp_path, "\n".join(lines) + "\n", where, cuda(release))


def test_a_wrong_declaration_would_be_found(tmp_path: Path) -> None:
    """The comparison itself: one more argument, and a pointer for a number, are not the same."""
    lines = ["#include <type_traits>", SAME_SHAPE, "static_assert(Same<int (*)(int, void*), int (*)(unsigned, char*)>::value);",
             "static_assert(!Same<int (*)(int), int (*)(int, int)>::value);",
             "static_assert(!Same<int (*)(long), int (*)(void*)>::value);"]  # fmt: skip
    compile_ok(tmp_path, "\n".join(lines) + "\n")


def names_in(library: Path) -> set[str]:
    if shutil.which("nm") is None:
        pytest.skip("The names of a library are read with nm, which is not installed here.")
    listed = subprocess.run(["nm", "-D", "--defined-only", str(library)], check=True, capture_output=True, text=True)
    return {line.split()[-1] for line in listed.stdout.splitlines()}


@pytest.mark.parametrize("release", RELEASES)
def test_the_real_library_has_the_functions_and_takes_one_subscriber(release: str) -> None:
    library = folder(release) / "libsanitizer-public.so"
    assert set(FUNCTIONS.values()) <= names_in(library)
    script = (
        "import ctypes, sys\n"
        "library = ctypes.CDLL(sys.argv[1])\n"
        "callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.c_void_p)(lambda *_: None)\n"
        "first, second = ctypes.c_void_p(), ctypes.c_void_p()\n"
        "print(library.sanitizerSubscribe(ctypes.byref(first), callback, None),\n"
        "      library.sanitizerSubscribe(ctypes.byref(second), callback, None))\n"
        "print(*[library.sanitizerEnableDomain(1, first, domain) for domain in (3, 4, 5, 10)])\n"
        "print(library.sanitizerUnsubscribe(first))\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(library)], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["0", "10", "0", "0", "0", "0", "0"], done.stderr


@pytest.mark.parametrize("release", RELEASES)
def test_the_fake_exports_what_the_real_library_does(tmp_path: Path, release: str) -> None:
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("The fake vendor libraries need a C++ compiler and none was found.")
    fake = {
        name for name in names_in(fake_sanitizer.build(tmp_path, compiler)) if re.match("sanitizer|Sanitizer|Get", name)
    }
    real = names_in(folder(release) / fake_sanitizer.LIBRARY)
    assert real - fake <= {"sanitizerIsInsideRecursiveCallback"}  # of 13.5
    assert fake <= real
