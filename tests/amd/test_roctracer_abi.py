"""Our declarations of roctracer, of the older roctx and of HIP's calls as both tell them, against the vendor's headers:
those of ROCm 7.1 in the `triton` wheel of today, and those of ROCm 6.1, the last release without rocprofiler-sdk, in its
wheel 3.0.0.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.amd.test_abi import ROOT, compiles
from tests.amd.test_abi import headers as newest_headers  # noqa: F401

INCLUDES = ("roctracer/roctracer.h", "roctracer/roctracer_roctx.h", "roctracer/roctracer_hip.h")
LAYOUTS = {
    "Record": (
        "activity_record_t",
        {
            "domain": "domain",
            "kind": "kind",
            "operation": "op",
            "correlation": "correlation_id",
            "begin": "begin_ns",
            "end": "end_ns",
            "device": "device_id",
            "queue": "queue_id",
            "bytes": "bytes",
            "kernel": "kernel_name",
        },
    ),
    "Properties": (
        "roctracer_properties_t",
        {
            "mode": "mode",
            "buffer_bytes": "buffer_size",
            "allocate": "alloc_fun",
            "allocate_data": "alloc_arg",
            "full": "buffer_callback_fun",
            "full_data": "buffer_callback_arg",
        },
    ),
    "HipCall": ("hip_api_data_t", {"correlation": "correlation_id", "phase": "phase", "arguments": "args"}),
    "RoctxCall": ("roctx_api_data_t", {"message": "args.message", "range": "args.id"}),
}
VALUES = {
    "Domain::kHipWork": "ACTIVITY_DOMAIN_HIP_OPS",
    "Domain::kHipCalls": "ACTIVITY_DOMAIN_HIP_API",
    "Domain::kRoctx": "ACTIVITY_DOMAIN_ROCTX",
    "Operation::kDispatch": "HIP_OP_ID_DISPATCH",
    "Operation::kCopy": "HIP_OP_ID_COPY",
    "Operation::kBarrier": "HIP_OP_ID_BARRIER",
    "Phase::kEnter": "ACTIVITY_API_PHASE_ENTER",
    "Phase::kExit": "ACTIVITY_API_PHASE_EXIT",
    "RoctxOperation::kMark": "ROCTX_API_ID_roctxMarkA",
    "RoctxOperation::kPush": "ROCTX_API_ID_roctxRangePushA",
    "RoctxOperation::kPop": "ROCTX_API_ID_roctxRangePop",
    "RoctxOperation::kStart": "ROCTX_API_ID_roctxRangeStartA",
    "RoctxOperation::kStop": "ROCTX_API_ID_roctxRangeStop",
    "kSuccess": "ROCTRACER_STATUS_SUCCESS",
}
FUNCTIONS = {
    "op_string": "roctracer_op_string",
    "open_pool": "roctracer_open_pool_expl",
    "next_record": "roctracer_next_record",
}
MEMBERS = {
    "stream": ("stream", "hStream"),
    "bytes": ("sizeBytes", "size", "widthInBytes", "width", "count"),
    "rows": ("height",),
    "event": ("event",),
    "address": ("ptr", "dev_ptr", "handle", "hostPtr"),
    "address_out": ("ptr", "dev_ptr", "handle", "dptr"),
    "source": ("src",),
    "destination": ("dst", "dstDevice"),
    "graph": ("graph",),
}


@pytest.fixture(scope="module", params=["7.1", "6.1"])
def headers(request: pytest.FixtureRequest, newest_headers: Path) -> Path:  # noqa: F811
    """Those of a release of ROCm."""
    if request.param == "7.1":
        return newest_headers
    folder = ROOT / "build/vendor/rocm61"
    if not (folder / "roctracer/roctracer.h").exists():
        pytest.skip(
            "The headers of ROCm 6.1 are not here; `python tools/rocm_headers.py build/vendor/rocm61 triton==3.0.0` "
            "takes them from a wheel."
        )
    return folder


def test_layouts_and_numbers_are_the_vendor_s(tmp_path: Path, headers: Path) -> None:
    checks = [
        f'static_assert(offsetof(tracer::{ours}, {mine}) == offsetof({theirs}, {its}), "{ours}.{mine}");'
        for ours, (theirs, members) in LAYOUTS.items()
        for mine, its in members.items()
    ]
    checks += [f'static_assert(static_cast<int>(tracer::{mine}) == {its}, "{mine}");' for mine, its in VALUES.items()]
    checks += [
        "static_assert(sizeof(tracer::Record) == sizeof(activity_record_t));",
        "static_assert(sizeof(tracer::Properties) == sizeof(roctracer_properties_t));",
        "static_assert(hipDeviceAttributeMultiprocessorCount == 63 && hipDeviceAttributeWarpSize == 87);",
    ]
    assert compiles(tmp_path, headers, checks, INCLUDES) == ""
    wrong = checks[0].replace("==", "!=")
    assert "Record.domain" in compiles(tmp_path, headers, [wrong], INCLUDES)  # the check can fail


def test_arguments_stand_where_roctracer_has_them(tmp_path: Path, headers: Path) -> None:
    structure = (headers / "hip/amd_detail/hip_prof_str.h").read_text()
    members = {name: body for body, name in re.findall(r"struct \{([^{}]*)\} (\w+);", structure)}
    rules = (ROOT / "native/providers/amd/hip_calls.cpp").read_text()
    checks = []
    known = set(re.findall(r'\{"(hip\w+)",\s*Match::kExact', rules))
    known |= {name for name in members if name.startswith("hipGraphInstantiate")}
    for name in sorted(known & set(members)):
        names = re.findall(r"(\w+)\s*;", members[name])
        for ours, theirs in MEMBERS.items():
            it = next((one for one in theirs if one in names), None)
            layout = f'classify("{name}", Interface::kTracer).arguments.{ours}'
            if it is None:
                checks.append(f'if ({layout} >= 0) return fail("{name}.{ours}: none");')
                continue
            place = f"offsetof(hip_api_data_t, args.{name}.{it}) - offsetof(hip_api_data_t, args)"
            checks.append(f'if ({layout} >= 0 && {layout} != int({place})) return fail("{name}.{ours}");')
    assert len(checks) > 200
    assert runs(tmp_path, headers, checks) == ""
    assert runs(tmp_path, headers, [check.replace("!= int(", "== int(") for check in checks]) != ""


def runs(folder: Path, headers: Path, checks: list[str]) -> str:
    body = ["int fail(const char* text) { std::puts(text); return 1; }", "int main() {", *checks, "return 0; }"]
    return compiles(folder, headers, body, (*INCLUDES, "cstdio"), run=True)
