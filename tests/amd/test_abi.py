"""Our declarations of rocprofiler-sdk (1.0) against the vendor's own headers, as the `triton` wheel ships them.

`tools/rocm_headers.py` takes them out of the wheel; what the wheel leaves out (code objects, streams, the layouts of
0.4 to 0.6) is from the vendor's repository, which rocprofiler_abi.h names, and is not compared here.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEADERS = ROOT / "build/vendor/rocm"

LAYOUTS = {
    "CallbackRecord": (
        "rocprofiler_callback_tracing_record_t",
        {
            "thread": "thread_id",
            "correlation_internal": "correlation_id.internal",
            "correlation_external": "correlation_id.external",
            "ancestor": "correlation_id.ancestor",
            "kind": "kind",
            "operation": "operation",
            "phase": "phase",
            "payload": "payload",
        },
    ),
    "RecordHeader": ("rocprofiler_record_header_t", {"category": "category", "kind": "kind", "payload": "payload"}),
    "DispatchInfo": (
        "rocprofiler_kernel_dispatch_info_t",
        {
            "agent": "agent_id",
            "queue": "queue_id",
            "kernel": "kernel_id",
            "dispatch": "dispatch_id",
            "private_segment": "private_segment_size",
            "group_segment": "group_segment_size",
            "workgroup": "workgroup_size",
            "grid": "grid_size",
        },
    ),
    "DispatchRecord": (
        "rocprofiler_buffer_tracing_kernel_dispatch_record_t",
        {
            "kind": "kind",
            "operation": "operation",
            "correlation_internal": "correlation_id.internal",
            "correlation_external": "correlation_id.external",
            "thread": "thread_id",
            "start": "start_timestamp",
            "end": "end_timestamp",
            "info": "dispatch_info",
        },
    ),
    "Agent": (
        "rocprofiler_agent_v0_t",
        {
            "id": "id",
            "type": "type",
            "simds": "simd_count",
            "memory_banks": "mem_banks_count",
            "max_waves_per_simd": "max_waves_per_simd",
            "lds_kib": "lds_size_in_kb",
            "wave_front_size": "wave_front_size",
            "xccs": "num_xcc",
            "compute_units": "cu_count",
            "simds_per_compute_unit": "simd_per_cu",
            "gfx_target_version": "gfx_target_version",
            "location": "location_id",
            "domain": "domain",
            "local_memory": "local_mem_size",
            "hive": "hive_id",
            "io_links": "io_links_count",
            "memory_bank_list": "mem_banks",
            "io_link_list": "io_links",
            "name": "name",
            "product_name": "product_name",
            "node": "node_id",
            "logical_gpu": "logical_node_type_id",
            "visibility": "runtime_visibility",
            "uuid": "uuid",
        },
    ),
    "IoLink": (
        "rocprofiler_agent_io_link_t",
        {
            "type": "type",
            "from_node": "node_from",
            "to_node": "node_to",
            "weight": "weight",
            "max_mb_per_s": "max_bandwidth",
        },
    ),
    "MemoryBank": ("rocprofiler_agent_mem_bank_t", {"heap": "heap_type", "bytes": "size_in_bytes"}),
    "ToolConfiguration": (
        "rocprofiler_tool_configure_result_t",
        {"initialize": "initialize", "finalize": "finalize", "data": "tool_data"},
    ),
    "ClientId": ("rocprofiler_client_id_t", {"name": "name", "handle": "handle"}),
    "HipCall": ("rocprofiler_callback_tracing_hip_api_data_t", {"arguments": "args"}),
    "CounterValue": (
        "rocprofiler_counter_record_t",
        {
            "instance": "id",
            "value": "counter_value",
            "dispatch": "dispatch_id",
            "user": "user_data",
            "agent": "agent_id",
        },
    ),
    "MarkerCall": (
        "rocprofiler_callback_tracing_marker_api_data_t",
        {"message": "args.roctxRangePushA.message", "result": "retval"},
    ),
}
VALUES = {
    "kExceedsHardware": "ROCPROFILER_STATUS_ERROR_EXCEEDS_HW_LIMIT",
    "kCountedDispatch": "ROCPROFILER_COUNTER_RECORD_PROFILE_COUNTING_DISPATCH_HEADER",
    "kCounterValue": "ROCPROFILER_COUNTER_RECORD_VALUE",
    "kCounterInfoVersion": "ROCPROFILER_COUNTER_INFO_VERSION_0",
    "Category::kCounters": "ROCPROFILER_BUFFER_CATEGORY_COUNTERS",
    "kSuccess": "ROCPROFILER_STATUS_SUCCESS",
    "kNotImplemented": "ROCPROFILER_STATUS_ERROR_NOT_IMPLEMENTED",
    "kIncompatibleKernel": "ROCPROFILER_STATUS_ERROR_INCOMPATIBLE_KERNEL",
    "kNotAvailable": "ROCPROFILER_STATUS_ERROR_NOT_AVAILABLE",
    "kPermissionDenied": "ROCPROFILER_STATUS_ERROR_PERMISSION_DENIED",
    "SamplingMethod::kStochastic": "ROCPROFILER_PC_SAMPLING_METHOD_STOCHASTIC",
    "SamplingMethod::kHostTrap": "ROCPROFILER_PC_SAMPLING_METHOD_HOST_TRAP",
    "SamplingUnit::kInstructions": "ROCPROFILER_PC_SAMPLING_UNIT_INSTRUCTIONS",
    "SamplingUnit::kCycles": "ROCPROFILER_PC_SAMPLING_UNIT_CYCLES",
    "SamplingUnit::kTime": "ROCPROFILER_PC_SAMPLING_UNIT_TIME",
    "kCodeObjectLoad": "ROCPROFILER_CODE_OBJECT_LOAD",
    "kConfigurationLocked": "ROCPROFILER_STATUS_ERROR_CONFIGURATION_LOCKED",
    "kFinalized": "ROCPROFILER_STATUS_ERROR_FINALIZED",
    "Phase::kEnter": "ROCPROFILER_CALLBACK_PHASE_ENTER",
    "Phase::kExit": "ROCPROFILER_CALLBACK_PHASE_EXIT",
    "Category::kTracing": "ROCPROFILER_BUFFER_CATEGORY_TRACING",
    "BufferPolicy::kLossless": "ROCPROFILER_BUFFER_POLICY_LOSSLESS",
    "AgentType::kCpu": "ROCPROFILER_AGENT_TYPE_CPU",
    "AgentType::kGpu": "ROCPROFILER_AGENT_TYPE_GPU",
    "CopyOperation::kHostToHost": "ROCPROFILER_MEMORY_COPY_HOST_TO_HOST",
    "CopyOperation::kHostToDevice": "ROCPROFILER_MEMORY_COPY_HOST_TO_DEVICE",
    "CopyOperation::kDeviceToHost": "ROCPROFILER_MEMORY_COPY_DEVICE_TO_HOST",
    "CopyOperation::kDeviceToDevice": "ROCPROFILER_MEMORY_COPY_DEVICE_TO_DEVICE",
    "kAgentVersion": "ROCPROFILER_AGENT_INFO_VERSION_0",
    "ScratchOperation::kAllocate": "ROCPROFILER_SCRATCH_MEMORY_ALLOC",
    "ScratchOperation::kFree": "ROCPROFILER_SCRATCH_MEMORY_FREE",
    "ScratchOperation::kReclaim": "ROCPROFILER_SCRATCH_MEMORY_ASYNC_RECLAIM",
    "kLinkPcie": "HSA_IOLINKTYPE_PCIEXPRESS",
    "kLinkXgmi": "HSA_IOLINK_TYPE_XGMI",
    "kPublicMemory": "HSA_HEAPTYPE_FRAME_BUFFER_PUBLIC",
    "kPrivateMemory": "HSA_HEAPTYPE_FRAME_BUFFER_PRIVATE",
}
# What a rule of hip_calls.cpp says stands where: argument of ours, member of the vendor's structure for the call.
ARGUMENTS = {
    "stream": ("stream", "hStream"),
    "bytes": ("sizeBytes", "size", "widthInBytes", "width", "count"),
    "rows": ("height",),
    "event": ("event",),
    "source": ("src",),
    "address": ("ptr", "dev_ptr", "handle", "hostPtr"),
    "address_out": ("ptr", "dev_ptr", "handle", "dptr"),
}


@pytest.fixture(scope="module")
def headers() -> Path:
    if not (HEADERS / "rocprofiler-sdk/fwd.h").exists():
        pytest.skip(
            "AMD's headers are not here; `python tools/rocm_headers.py build/vendor/rocm` takes them from a wheel."
        )
    if shutil.which("g++") is None:
        pytest.skip("The vendor's headers are compared by compiling, and no g++ was found.")
    return HEADERS


SDK_INCLUDES = tuple(
    f"rocprofiler-sdk/{name}.h"
    for name in ("agent", "buffer", "buffer_tracing", "callback_tracing", "external_correlation", "registration")
)


def compiles(
    folder: Path, headers: Path, checks: list[str], includes: tuple[str, ...] = SDK_INCLUDES, *, run: bool = False
) -> str:
    """What the compiler says against it, or with `run` the program."""
    source = folder / "abi.cpp"
    source.write_text(
        "\n".join(
            [
                "#include <cstddef>",
                *(f"#include <{name}>" for name in includes),
                '#include "providers/amd/hip_calls.h"',
                '#include "providers/amd/counters_abi.h"',
                '#include "providers/amd/pc_sampling_abi.h"',
                '#include "providers/amd/rocprofiler_abi.h"',
                '#include "providers/amd/roctracer_abi.h"',
                "using namespace leadline::amd;",
                *checks,
                "",
            ]
        )
    )
    done = subprocess.run(
        [
            "g++",
            "-std=c++20",
            *(
                ("-o", str(folder / "abi"), str(ROOT / "native/providers/amd/hip_calls.cpp"))
                if run
                else ("-fsyntax-only",)
            ),
            "-w",
            "-Wno-invalid-offsetof",
            "-D__HIP_PLATFORM_AMD__",
            f"-I{headers}",
            f"-I{ROOT / 'native'}",
            f"-I{ROOT / 'native/include'}",
            str(source),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    if done.returncode == 0 and run:
        ran = subprocess.run([folder / "abi"], capture_output=True, text=True, check=False, timeout=60)
        return ran.stdout if ran.returncode != 0 else ""
    return "" if done.returncode == 0 else done.stderr


def test_layouts_and_numbers_are_the_vendor_s(tmp_path: Path, headers: Path) -> None:
    checks = []
    for ours, (theirs, members) in LAYOUTS.items():
        for mine, its in members.items():
            checks.append(
                f'static_assert(offsetof(sdk::{ours}, {mine}) == offsetof({theirs}, {its}), "{ours}.{mine}");'
            )
    checks += [f'static_assert(static_cast<int>(sdk::{mine}) == {its}, "{mine}");' for mine, its in VALUES.items()]
    checks += [
        "static_assert(sizeof(sdk::CallbackRecord) == sizeof(rocprofiler_callback_tracing_record_t));",
        "static_assert(sizeof(sdk::DispatchInfo) == sizeof(rocprofiler_kernel_dispatch_info_t));",
        "static_assert(sizeof(sdk::CounterValue) == sizeof(rocprofiler_counter_record_t));",
        "static_assert(sizeof(sdk::MemoryBank) == sizeof(rocprofiler_agent_mem_bank_t));",
        "static_assert(sizeof(rocprofiler_hip_api_retval_t) == sdk::kHipReturnBytes);",
        "static_assert(sizeof(rocprofiler_callback_tracing_hip_api_data_t) - sdk::kHipReturnBytes == "
        "offsetof(rocprofiler_callback_tracing_hip_api_data_t, retval));",
    ]
    assert compiles(tmp_path, headers, checks) == ""
    wrong = checks[0].replace("==", "!=")
    assert "CallbackRecord.thread" in compiles(tmp_path, headers, [wrong])  # the check can fail


def test_arguments_of_hip_calls_stand_where_the_rules_say(tmp_path: Path, headers: Path) -> None:
    structure = (headers / "rocprofiler-sdk/hip/api_args.h").read_text()
    members = {name: body for body, name in re.findall(r"struct \{([^{}]*)\} (\w+);", structure)}
    rules = (ROOT / "native/providers/amd/hip_calls.cpp").read_text()
    helpers = {
        "stream_at": ("stream",),
        "copy": ("bytes", "stream", "rows", "source"),
        "taken": ("bytes", "stream", "rows"),
        "given_back": ("stream",),
        "event": ("event", "stream"),
    }
    fixed = {"taken": {"address_out": 0}, "given_back": {"address": 0}}
    checks, compared = [], 0
    for name, helper, values in re.findall(r'\{"(hip\w+)",\s*Match::kExact,\s*\w+,\s*(\w+)\(([^)]*)\)', rules):
        if name not in members:
            continue
        given = dict(fixed.get(helper, {}))
        for what, value in zip(helpers[helper], (part.strip() for part in values.split(",")), strict=False):
            if value and value != "kNone":
                given[what] = int(value)
        for what, offset in given.items():
            names = [word for word in ARGUMENTS[what] if re.search(rf"[\s*]{word};", members[name])]
            member = names[0] if names else re.search(r"(\w+);", members[name])[1]  # the first: what is made or freed
            checks.append(
                f'static_assert(offsetof(rocprofiler_hip_api_args_t, {name}.{member}) == {offset}, "{name}.{member}");'
            )
            compared += 1
    assert compared > 60
    assert compiles(tmp_path, headers, checks) == ""


def test_every_call_that_moves_work_or_memory_is_followed(headers: Path) -> None:
    """Names of the vendor's list that look like work must be known to the rules, or be named here."""
    text = (headers / "rocprofiler-sdk/hip/runtime_api_id.h").read_text()
    names = set(re.findall(r"ROCPROFILER_HIP_RUNTIME_API_ID_(hip\w+)", text))
    rules = re.findall(
        r'\{"(hip\w+)",\s*Match::k(Exact|Prefix)', (ROOT / "native/providers/amd/hip_calls.cpp").read_text()
    )

    def followed(name: str) -> bool:
        plain = name.removesuffix("_spt")
        return any(plain == rule if how == "Exact" else plain.startswith(rule) for rule, how in rules)

    left_out = {
        name
        for name in names
        if re.match(r"hip(Ext|Drv|Module|Hcc)?(Launch|Memcpy|Memset|Malloc|Free|Graph(Launch|Instantiate))", name)
        and not followed(name)
    }
    assert left_out <= {"hipGraphLaunchParams"}, sorted(left_out)
    assert len(names) > 400
