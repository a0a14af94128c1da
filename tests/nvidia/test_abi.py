"""Our declarations of CUPTI, CUDA and NVTX against the vendor's own headers and libraries, both majors, from PyPI.

The packages are requirements of the tests, never of Leadline; a test whose package is not installed says so.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Headers:
    """Where one major's headers and library are."""

    major: int
    cupti: Path
    cuda: Path
    library: Path


def nvidia_package(*parts: str) -> Path | None:
    spec = importlib.util.find_spec("nvidia")
    for place in (spec.submodule_search_locations or []) if spec is not None else []:
        path = Path(place, *parts)
        if path.exists():
            return path
    return None


RELEASES = ("12", "13", "toolkit")
"""The packages of both majors, and the toolkit that this machine has."""
_TOOLKIT = Path("/usr/local/cuda")


def headers(release: int | str) -> Headers:
    if shutil.which("g++") is None:
        pytest.skip("The vendor's headers are compared by compiling, and no g++ was found.")
    major = 12 if str(release) == "12" else 13
    if release == "toolkit":
        cupti = cuda = _TOOLKIT / "include"
        library = next(_TOOLKIT.glob("lib*/libcupti.so.13"), None)
    elif major == 13:
        cupti = cuda = nvidia_package("cu13", "include")
        library = nvidia_package("cu13", "lib", "libcupti.so.13")
    else:
        cupti = nvidia_package("cuda_cupti", "include")
        cuda = nvidia_package("cuda_runtime", "include")
        library = nvidia_package("cuda_cupti", "lib", "libcupti.so.12")
    found = cupti is not None and (cupti / "cupti.h").exists() and cuda is not None and (cuda / "cuda.h").exists()
    if not found or cupti is None or cuda is None or library is None:
        suffix = "" if major == 13 else "-cu12"
        package = f"nvidia-cuda-cupti{suffix}, nvidia-cuda-runtime{suffix} and nvidia-cuda-crt"
        pytest.skip(f"Needs {_TOOLKIT if release == 'toolkit' else package}, not installed here.")
    return Headers(major, cupti, cuda, library)


RECORDS = {
    "KernelRecord": (
        "Kernel",
        {
            "registers_per_thread": "registersPerThread",
            "start": "start",
            "end": "end",
            "device_id": "deviceId",
            "context_id": "contextId",
            "stream_id": "streamId",
            "grid": "gridX",
            "block": "blockX",
            "static_shared": "staticSharedMemory",
            "dynamic_shared": "dynamicSharedMemory",
            "correlation_id": "correlationId",
            "name": "name",
            "shared_executed": "sharedMemoryExecuted",
            "graph_node_id": "graphNodeId",
            "graph_id": "graphId",
        },
    ),
    "MemcpyRecord": (
        "Memcpy",
        {
            "copy_kind": "copyKind",
            "source_kind": "srcKind",
            "destination_kind": "dstKind",
            "bytes": "bytes",
            "start": "start",
            "end": "end",
            "device_id": "deviceId",
            "context_id": "contextId",
            "stream_id": "streamId",
            "correlation_id": "correlationId",
            "graph_node_id": "graphNodeId",
            "graph_id": "graphId",
        },
    ),
    "MemcpyPeerRecord": (
        "MemcpyPtoP",
        {"bytes": "bytes", "start": "start", "stream_id": "streamId", "correlation_id": "correlationId",
         "graph_node_id": "graphNodeId"},
    ),
    "MemsetRecord": (
        "Memset",
        {"bytes": "bytes", "start": "start", "end": "end", "stream_id": "streamId", "correlation_id": "correlationId",
         "memory_kind": "memoryKind", "graph_node_id": "graphNodeId"},
    ),
    "SynchronizationRecord": (
        "Synchronization",
        {"type": "type", "start": "start", "end": "end", "correlation_id": "correlationId", "stream_id": "streamId",
         "event_id": "cudaEventId"},
    ),
    "OverheadRecord": (
        "Overhead",
        {"overhead": "overheadKind", "start": "start", "end": "end", "correlation_id": "correlationId"},
    ),
    "GraphTraceRecord": (
        "GraphTrace",
        {"correlation_id": "correlationId", "start": "start", "end": "end", "device_id": "deviceId",
         "graph_id": "graphId", "stream_id": "streamId"},
    ),
}  # fmt: skip

CALLBACK = {
    "CallbackData": ("CUpti_CallbackData", {
        "site": "callbackSite", "function_name": "functionName", "params": "functionParams",
        "return_value": "functionReturnValue", "symbol_name": "symbolName", "context": "context", "correlation_id": "correlationId"}),
    "ResourceData": ("CUpti_ResourceData", {
        "context": "context", "stream": "resourceHandle", "descriptor": "resourceDescriptor"}),
    "ModuleData": ("CUpti_ModuleResourceData", {
        "module_id": "moduleId", "image_bytes": "cubinSize", "image": "pCubin"}),
    "GraphData": ("CUpti_GraphData", {
        "graph": "graph", "node": "node", "original_node": "originalNode", "node_type": "nodeType",
        "graph_exec": "graphExec"}),
}  # fmt: skip

NUMBERS = {
    "Domain::kDriver": "CUPTI_CB_DOMAIN_DRIVER_API",
    "Domain::kRuntime": "CUPTI_CB_DOMAIN_RUNTIME_API",
    "Domain::kResource": "CUPTI_CB_DOMAIN_RESOURCE",
    "Domain::kState": "CUPTI_CB_DOMAIN_STATE",
    "Resource::kContextDestroyStarting": "CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING",
    "Resource::kModuleLoaded": "CUPTI_CBID_RESOURCE_MODULE_LOADED",
    "Resource::kModuleUnloadStarting": "CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING",
    "Resource::kGraphDestroyStarting": "CUPTI_CBID_RESOURCE_GRAPH_DESTROY_STARTING",
    "Resource::kGraphNodeCreated": "CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED",
    "Resource::kGraphNodeDestroyStarting": "CUPTI_CBID_RESOURCE_GRAPHNODE_DESTROY_STARTING",
    "Resource::kGraphExecDestroyStarting": "CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING",
    "Resource::kGraphNodeCloned": "CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED",
    "Kind::kMemcpy": "CUPTI_ACTIVITY_KIND_MEMCPY",
    "Kind::kMemset": "CUPTI_ACTIVITY_KIND_MEMSET",
    "Kind::kConcurrentKernel": "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL",
    "Kind::kOverhead": "CUPTI_ACTIVITY_KIND_OVERHEAD",
    "Kind::kMemcpyPeer": "CUPTI_ACTIVITY_KIND_MEMCPY2",
    "Kind::kSynchronization": "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
    "Kind::kGraphTrace": "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
    "CopyKind::kDtoH": "CUPTI_ACTIVITY_MEMCPY_KIND_DTOH",
    "CopyKind::kPtoP": "CUPTI_ACTIVITY_MEMCPY_KIND_PTOP",
    "MemoryKind::kManagedStatic": "CUPTI_ACTIVITY_MEMORY_KIND_MANAGED_STATIC",
    "SyncType::kContext": "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE",
    "SyncType::kStreamWaitEvent": "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT",
    "kMultipleSubscribersNotSupported": "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED",
    "kInsufficientPrivileges": "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES",
    "kMaxLimitReached": "CUPTI_ERROR_MAX_LIMIT_REACHED",
    "kFlushForced": "CUPTI_ACTIVITY_FLAG_FLUSH_FORCED",
}


def compile_ok(tmp_path: Path, source: str, *includes: Path) -> None:
    file = tmp_path / "check.cpp"
    file.write_text(source)
    crt = nvidia_package("cu13", "include", "crt")  # CUDA 12's runtime package leaves these to its compiler's package
    if crt is not None and not (tmp_path / "crt").exists():
        (tmp_path / "crt").symlink_to(crt)
        includes = (*includes, tmp_path)
    command = ["g++", "-std=c++20", "-w", "-fsyntax-only", f"-I{ROOT / 'native'}", *(f"-I{path}" for path in includes)]
    result = subprocess.run([*command, str(file)], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr[:4000]


def latest(header: str, base: str) -> str:
    """The newest of CUpti_ActivityKernel9, CUpti_ActivityKernel10..., which is what that library writes."""
    numbers = [int(number or 1) for number in re.findall(rf"^}} CUpti_Activity{base}(\d*);", header, re.MULTILINE)]
    newest = max(numbers)
    return f"CUpti_Activity{base}{newest if newest > 1 else ''}"


@pytest.mark.parametrize("major", [12, 13])
def test_records_callbacks_and_numbers_are_the_vendors(tmp_path: Path, major: int) -> None:
    where = headers(major)
    text = (where.cupti / "cupti_activity.h").read_text()
    lines = ['#include <cupti.h>', '#include "providers/nvidia/cupti_abi.h"', "#include <cstddef>",
             "namespace ours = leadline::nvidia::cupti;"]  # fmt: skip
    for our, (base, fields) in RECORDS.items():
        their = latest(text, base)
        lines.append(f"static_assert(sizeof(ours::{our}) <= sizeof({their}));")
        for ours, theirs in fields.items():
            lines.append(f"static_assert(offsetof(ours::{our}, {ours}) == offsetof({their}, {theirs}));")
            lines.append(f"static_assert(sizeof(((ours::{our}*)0)->{ours}) % sizeof((({their}*)0)->{theirs}) == 0);")
    for our, (their, fields) in CALLBACK.items():
        for ours, theirs in fields.items():
            lines.append(f"static_assert(offsetof(ours::{our}, {ours}) == offsetof({their}, {theirs}));")
    for ours, theirs in NUMBERS.items():
        lines.append(f"static_assert(static_cast<long long>(ours::{ours}) == static_cast<long long>({theirs}));")
    if major == 13:
        lines.append("static_assert(sizeof(ours::SubscriberParams) == sizeof(CUpti_SubscriberParams));")
        lines.append("static_assert(offsetof(ours::SubscriberParams, holder) == "
                     "offsetof(CUpti_SubscriberParams, oldSubscriberName));")  # fmt: skip
        lines.append("static_assert(offsetof(ours::SubscriberParams, allow_multiple) == "
                     "offsetof(CUpti_SubscriberParams, allowMultipleSubscribers));")  # fmt: skip
        lines.append("static_assert(ours::kHolderNameSize >= CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN);")
    compile_ok(tmp_path, "\n".join(lines) + "\n", where.cupti, where.cuda)


PARAMETERS = {
    # Leadline's name: (vendor's structure, {argument: field}); the offsets stand in api_names.cpp.
    "cudaLaunchKernel": ("cudaLaunchKernel_v7000_params", {"stream": "stream"}),
    "cudaMemcpyAsync": ("cudaMemcpyAsync_v3020_params", {"bytes": "count", "stream": "stream"}),
    "cudaMemcpyPeerAsync": ("cudaMemcpyPeerAsync_v4000_params", {"bytes": "count", "stream": "stream"}),
    "cudaMemcpy": ("cudaMemcpy_v3020_params", {"bytes": "count"}),
    "cudaMemsetAsync": ("cudaMemsetAsync_v3020_params", {"bytes": "count", "stream": "stream"}),
    "cudaStreamSynchronize": ("cudaStreamSynchronize_v3020_params", {"stream": "stream"}),
    "cudaEventSynchronize": ("cudaEventSynchronize_v3020_params", {"event": "event"}),
    "cudaStreamWaitEvent": ("cudaStreamWaitEvent_v3020_params", {"event": "event", "stream": "stream"}),
    "cudaEventRecord": ("cudaEventRecord_v3020_params", {"event": "event", "stream": "stream"}),
    "cudaEventRecordWithFlags": ("cudaEventRecordWithFlags_v11010_params", {"event": "event", "stream": "stream"}),
    "cudaMalloc": ("cudaMalloc_v3020_params", {"bytes": "size", "address_out": "devPtr"}),
    "cudaMallocManaged": ("cudaMallocManaged_v6000_params", {"bytes": "size"}),
    "cudaMallocPitch": ("cudaMallocPitch_v3020_params", {"bytes": "width", "rows": "height"}),
    "cudaMallocAsync": ("cudaMallocAsync_v11020_params", {"bytes": "size", "stream": "hStream"}),
    "cudaMallocFromPoolAsync": ("cudaMallocFromPoolAsync_v11020_params", {"bytes": "size", "stream": "stream"}),
    "cudaFree": ("cudaFree_v3020_params", {"address": "devPtr"}),
    "cudaFreeAsync": ("cudaFreeAsync_v11020_params", {"address": "devPtr", "stream": "hStream"}),
    "cudaGraphLaunch": ("cudaGraphLaunch_v10000_params", {"stream": "stream"}),
    "cuLaunchKernel": ("cuLaunchKernel_params", {"stream": "hStream"}),
    "cuLaunchCooperativeKernel": ("cuLaunchCooperativeKernel_params", {"stream": "hStream"}),
    "cuMemcpyHtoDAsync_v2": ("cuMemcpyHtoDAsync_v2_params", {"bytes": "ByteCount", "stream": "hStream"}),
    "cuMemcpyPeerAsync": ("cuMemcpyPeerAsync_params", {"bytes": "ByteCount", "stream": "hStream"}),
    "cuMemsetD8Async": ("cuMemsetD8Async_params", {"bytes": "N", "stream": "hStream"}),
    "cuStreamSynchronize": ("cuStreamSynchronize_params", {"stream": "hStream"}),
    "cuStreamWaitEvent": ("cuStreamWaitEvent_params", {"event": "hEvent", "stream": "hStream"}),
    "cuEventRecord": ("cuEventRecord_params", {"event": "hEvent", "stream": "hStream"}),
    "cuMemAlloc_v2": ("cuMemAlloc_v2_params", {"bytes": "bytesize", "address_out": "dptr"}),
    "cuMemAllocPitch_v2": ("cuMemAllocPitch_v2_params", {"bytes": "WidthInBytes", "rows": "Height"}),
    "cuMemAllocAsync": ("cuMemAllocAsync_params", {"bytes": "bytesize", "stream": "hStream"}),
    "cuMemAllocFromPoolAsync": ("cuMemAllocFromPoolAsync_params", {"bytes": "bytesize", "stream": "hStream"}),
    "cuMemCreate": ("cuMemCreate_params", {"bytes": "size"}),
    "cuMemFree_v2": ("cuMemFree_v2_params", {"address": "dptr"}),
    "cuMemFreeAsync": ("cuMemFreeAsync_params", {"address": "dptr", "stream": "hStream"}),
    "cuGraphLaunch": ("cuGraphLaunch_params", {"stream": "hStream"}),
}


def our_offsets(tmp_path: Path) -> dict[str, dict[str, int]]:
    """Offsets as `classify` gives them: the table itself is asked, not a copy of it."""
    names = ", ".join(f'"{name}"' for name in PARAMETERS)
    source = f"""
#include <cstdio>
#include "providers/nvidia/api_names.h"
int main() {{
  for (const char* name : {{{names}}}) {{
    const auto call = leadline::nvidia::classify(name);
    const auto& a = call.arguments;
    std::printf("%s followed=%d stream=%d bytes=%d rows=%d event=%d address=%d address_out=%d\\n", name, call.followed,
                a.stream, a.bytes, a.rows, a.event, a.address, a.address_out);
  }}
}}
"""
    file = tmp_path / "offsets.cpp"
    file.write_text(source)
    program = tmp_path / "offsets"
    command = ["g++", "-std=c++20", f"-I{ROOT / 'native'}", f"-I{ROOT / 'native/include'}", str(file)]
    command += [str(ROOT / "native/providers/nvidia/api_names.cpp"), "-o", str(program)]
    subprocess.run(command, check=True)
    printed = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout
    offsets = {}
    for line in printed.splitlines():
        name, *values = line.split()
        offsets[name] = {key: int(value) for key, value in (item.split("=") for item in values)}
    return offsets


@pytest.mark.parametrize("major", [12, 13])
def test_arguments_stand_where_the_vendor_puts_them(tmp_path: Path, major: int) -> None:
    where = headers(major)
    # The generated headers also use types that the others show only to the vendor's own code.
    lines = ["#define __CUDA_API_VERSION_INTERNAL", "#include <cuda_runtime_api.h>", "#include <cuda.h>", "#include <cstddef>",
             "#include <generated_cuda_runtime_api_meta.h>", "#include <generated_cuda_meta.h>"]  # fmt: skip
    for name, offsets in our_offsets(tmp_path).items():
        their, fields = PARAMETERS[name]
        assert offsets["followed"] == 1, name
        for argument, field in fields.items():
            lines.append(f"static_assert(offsetof({their}, {field}) == {offsets[argument]});")
    lines.append("static_assert(offsetof(cudaLaunchConfig_t, stream) == 32);")
    lines.append("static_assert(offsetof(CUlaunchConfig, hStream) == 32);")
    compile_ok(tmp_path, "\n".join(lines) + "\n", where.cupti, where.cuda)


@pytest.mark.parametrize("major", [12, 13])
def test_the_real_library_names_the_calls_we_follow(tmp_path: Path, major: int) -> None:
    """Every launch, copy, set, wait and allocation of the vendor's list is followed; getters and queries are not."""
    where = headers(major)
    names: set[str] = set()
    for file in ("cupti_driver_cbid.h", "cupti_runtime_cbid.h"):
        found = re.findall(r"CUPTI_(?:DRIVER|RUNTIME)_TRACE_CBID_(cu\w+)\s*=", (where.cupti / file).read_text())
        names.update(found)
    program = tmp_path / "classify"
    source = tmp_path / "classify.cpp"
    source.write_text(
        '#include <iostream>\n#include <string>\n#include "providers/nvidia/api_names.h"\n'
        "int main() { for (std::string n; std::getline(std::cin, n);) { const auto c = leadline::nvidia::classify(n);\n"
        'std::cout << n << " " << c.followed << " " << c.kind << " " << c.makes_work << "\\n"; } }\n'
    )
    command = ["g++", "-std=c++20", f"-I{ROOT / 'native'}", f"-I{ROOT / 'native/include'}", str(source)]
    subprocess.run([*command, str(ROOT / "native/providers/nvidia/api_names.cpp"), "-o", str(program)], check=True)
    printed = subprocess.run([str(program)], input="\n".join(sorted(names)), check=True, capture_output=True, text=True)
    followed = {line.split()[0] for line in printed.stdout.splitlines() if line.split()[1] == "1"}
    must = {
        name
        for name in names
        if re.match(r"(cuda|cu)(Launch(Kernel|Cooperative)|Memcpy|Memset|GraphLaunch|(Stream|Event|Device|Ctx)Synchronize"
                    r"|StreamWaitEvent|EventRecord|Malloc(Async|FromPool|_v|Managed)|MemAlloc(Async|FromPool|_v2)"
                    r"|Free(Async|_v)|MemFree(Async|_v2)|GraphInstantiate)", name)
    }  # fmt: skip
    assert len(must) > 100
    assert must - followed == set()
    noisy = {name for name in followed if re.search(r"Get|Query|Attribute(?!s)|LastError|Occupancy", name)}
    assert noisy == set()
    assert len(followed) < len(names) / 2


NVTX_NUMBERS = {
    "core::kMarkEx": "NVTX_CBID_CORE_MarkEx",
    "core::kRangeStartEx": "NVTX_CBID_CORE_RangeStartEx",
    "core::kRangeStartW": "NVTX_CBID_CORE_RangeStartW",
    "core::kRangeEnd": "NVTX_CBID_CORE_RangeEnd",
    "core::kRangePushEx": "NVTX_CBID_CORE_RangePushEx",
    "core::kRangePushA": "NVTX_CBID_CORE_RangePushA",
    "core::kRangePushW": "NVTX_CBID_CORE_RangePushW",
    "core::kRangePop": "NVTX_CBID_CORE_RangePop",
    "core::kNameCategoryW": "NVTX_CBID_CORE_NameCategoryW",
    "core2::kDomainMarkEx": "NVTX_CBID_CORE2_DomainMarkEx",
    "core2::kDomainRangePop": "NVTX_CBID_CORE2_DomainRangePop",
    "core2::kNameCategoryA": "NVTX_CBID_CORE2_DomainNameCategoryA",
    "core2::kRegisterStringW": "NVTX_CBID_CORE2_DomainRegisterStringW",
    "core2::kDomainCreateA": "NVTX_CBID_CORE2_DomainCreateA",
    "core2::kDomainDestroy": "NVTX_CBID_CORE2_DomainDestroy",
    "Module::kCore": "NVTX_CB_MODULE_CORE",
    "Module::kCore2": "NVTX_CB_MODULE_CORE2",
    "kCallbacksTable": "NVTX_ETID_CALLBACKS",
    "MessageType::kRegistered": "NVTX_MESSAGE_TYPE_REGISTERED",
    "PayloadType::kFloat": "NVTX_PAYLOAD_TYPE_FLOAT",
    "ColorType::kArgb": "NVTX_COLOR_ARGB",
}


def test_nvtx_is_declared_as_its_header_does(tmp_path: Path) -> None:
    include = nvidia_package("cu13", "include") or nvidia_package("nvtx", "include")
    if include is None or not (include / "nvtx3" / "nvToolsExt.h").exists() or shutil.which("g++") is None:
        pytest.skip("Needs the package nvidia-nvtx (its headers) and g++, not installed here.")
    pairs = {"category": "category", "color": "color", "payload_type": "payloadType", "payload": "payload",
             "message_type": "messageType", "message": "message"}  # fmt: skip
    lines = ["#include <nvtx3/nvToolsExt.h>", '#include "providers/nvidia/nvtx_abi.h"', "#include <cstddef>",
             "namespace ours = leadline::nvidia::nvtx;",
             "static_assert(sizeof(ours::EventAttributes) == sizeof(nvtxEventAttributes_t));"]  # fmt: skip
    lines += [
        f"static_assert(offsetof(ours::EventAttributes, {our}) == offsetof(nvtxEventAttributes_t, {their}));"
        for our, their in pairs.items()
    ]
    lines += [f"static_assert(static_cast<int>(ours::{our}) == {their});" for our, their in NVTX_NUMBERS.items()]
    compile_ok(tmp_path, "\n".join(lines) + "\n", include)


def test_the_real_cupti_loads_and_counts_real_time(tmp_path: Path) -> None:
    """Without a GPU the vendor's library answers few questions, but its clock is one: it is CLOCK_REALTIME."""
    where = headers(12)
    script = (
        "import ctypes, time, sys\n"
        "cupti = ctypes.CDLL(sys.argv[1])\n"
        "version = ctypes.c_uint32(); assert cupti.cuptiGetVersion(ctypes.byref(version)) == 0\n"
        "stamp = ctypes.c_uint64(); before = time.time_ns()\n"
        "assert cupti.cuptiGetTimestamp(ctypes.byref(stamp)) == 0\n"
        "assert before - 10**6 <= stamp.value <= time.time_ns() + 10**6, (before, stamp.value)\n"
        "subscriber = ctypes.c_void_p()\n"
        "print(version.value, cupti.cuptiSubscribe(ctypes.byref(subscriber), ctypes.c_void_p(1), None))\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script, str(where.library)], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    version, refused = result.stdout.split()
    assert int(version) >= 18
    assert int(refused) in (0, 15, 999)  # subscribed, or "not initialised" where there is no driver
