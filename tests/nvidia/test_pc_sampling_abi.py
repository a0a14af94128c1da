"""Our declarations of CUPTI's program counter samples against the vendor's headers of both majors."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.nvidia.test_abi import RELEASES, compile_ok, headers

STRUCTURES = {
    "StallCount": ("CUpti_PCSamplingStallReason", {"reason": "pcSamplingStallReasonIndex", "samples": "samples"}),
    "PcRecord": (
        "CUpti_PCSamplingPCData",
        {
            "size": "size",
            "code": "cubinCrc",
            "offset": "pcOffset",
            "function_index": "functionIndex",
            "function": "functionName",
            "stall_count": "stallReasonCount",
            "stalls": "stallReason",
            "correlation_id": "correlationId",
        },
    ),
    "SamplingData": (
        "CUpti_PCSamplingData",
        {
            "size": "size",
            "room": "collectNumPcs",
            "total_samples": "totalSamples",
            "dropped_samples": "droppedSamples",
            "records": "totalNumPcs",
            "remaining": "remainingNumPcs",
            "range": "rangeId",
            "pcs": "pPcData",
            "other_samples": "nonUsrKernelsTotalSamples",
            "hardware_buffer_full": "hardwareBufferFull",
        },
    ),
    "SamplingSetting": (
        "CUpti_PCSamplingConfigurationInfo",
        {"attribute": "attributeType", "status": "attributeStatus", "value": "attributeData"},
    ),
    "SamplingSettings": (
        "CUpti_PCSamplingConfigurationInfoParams",
        {"context": "ctx", "count": "numAttributes", "settings": "pPCSamplingConfigurationInfo"},
    ),
    "SamplingOfContext": ("CUpti_PCSamplingStartParams", {"size": "size", "reserved": "pPriv", "context": "ctx"}),
    "SamplingGetData": ("CUpti_PCSamplingGetDataParams", {"context": "ctx", "data": "pcSamplingData"}),
    "StallReasonCount": ("CUpti_PCSamplingGetNumStallReasonsParams", {"context": "ctx", "count": "numStallReasons"}),
    "StallReasons": (
        "CUpti_PCSamplingGetStallReasonsParams",
        {"context": "ctx", "count": "numStallReasons", "indices": "stallReasonIndex", "names": "stallReasons"},
    ),
}
SIZES = {
    "SamplingSettings": "CUpti_PCSamplingConfigurationInfoParamsSize",
    "SamplingOfContext": "CUpti_PCSamplingEnableParamsSize",
    "SamplingGetData": "CUpti_PCSamplingGetDataParamsSize",
    "StallReasonCount": "CUpti_PCSamplingGetNumStallReasonsParamsSize",
    "StallReasons": "CUpti_PCSamplingGetStallReasonsParamsSize",
}
ATTRIBUTE = "CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_"
NUMBERS = {
    "SamplingAttribute::kPeriod": ATTRIBUTE + "SAMPLING_PERIOD",
    "SamplingAttribute::kScratchBuffer": ATTRIBUTE + "SCRATCH_BUFFER_SIZE",
    "SamplingAttribute::kHardwareBuffer": ATTRIBUTE + "HARDWARE_BUFFER_SIZE",
    "SamplingAttribute::kMode": ATTRIBUTE + "COLLECTION_MODE",
    "SamplingAttribute::kStartStop": ATTRIBUTE + "ENABLE_START_STOP_CONTROL",
    "SamplingAttribute::kOutputFormat": ATTRIBUTE + "OUTPUT_DATA_FORMAT",
    "SamplingAttribute::kDataBuffer": ATTRIBUTE + "SAMPLING_DATA_BUFFER",
    "SamplingAttribute::kSleepSpan": ATTRIBUTE + "WORKER_THREAD_PERIODIC_SLEEP_SPAN",
    "SamplingMode::kContinuous": "CUPTI_PC_SAMPLING_COLLECTION_MODE_CONTINUOUS",
    "SamplingMode::kSerialised": "CUPTI_PC_SAMPLING_COLLECTION_MODE_KERNEL_SERIALIZED",
    "kOutputParsed": "CUPTI_PC_SAMPLING_OUTPUT_DATA_FORMAT_PARSED",
    "kStallNameSize": "CUPTI_STALL_REASON_STRING_SIZE",
    "kInvalidOperation": "CUPTI_ERROR_INVALID_OPERATION",
    "kOutOfMemory": "CUPTI_ERROR_OUT_OF_MEMORY",
    "kHardwareBusy": "CUPTI_ERROR_HARDWARE_BUSY",
    "kLegacyProfilerNotSupported": "CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED",
    "kConfidentialNotSupported": "CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED",
    "kCmpNotSupported": "CUPTI_ERROR_CMP_DEVICE_NOT_SUPPORTED",
    "kMigNotSupported": "CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED",
    "kSliNotSupported": "CUPTI_ERROR_SLI_DEVICE_NOT_SUPPORTED",
    "kWslNotSupported": "CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED",
}
FUNCTIONS = {
    "enable": "cuptiPCSamplingEnable",
    "configure": "cuptiPCSamplingSetConfigurationAttribute",
    "get_data": "cuptiPCSamplingGetData",
    "stall_reasons": "cuptiPCSamplingGetStallReasons",
    "register_hash": "cuptiRegisterComputeCrcCallback",
}


@pytest.mark.parametrize("release", RELEASES)
def test_samples_settings_and_numbers_are_the_vendors(tmp_path: Path, release: str) -> None:
    where = headers(release)
    lines = ["#include <cupti.h>", "#include <cupti_pcsampling.h>", '#include "providers/nvidia/cupti_library.h"',
             "#include <cstddef>", "namespace ours = leadline::nvidia::cupti;"]  # fmt: skip
    for our, (their, fields) in STRUCTURES.items():
        lines.append(f"static_assert(sizeof(ours::{our}) == sizeof({their}));")
        for ours, theirs in fields.items():
            lines.append(f"static_assert(offsetof(ours::{our}, {ours}) == offsetof({their}, {theirs}));")
            lines.append(f"static_assert(sizeof(((ours::{our}*)0)->{ours}) == sizeof((({their}*)0)->{theirs}));")
    lines += [f"static_assert(sizeof(ours::{our}) == {theirs});" for our, theirs in SIZES.items()]
    lines += [f"static_assert(int(ours::{our}) == int({theirs}));" for our, theirs in NUMBERS.items()]
    lines.append("static_assert(ours::kPcRecordBytes12_0 == offsetof(CUpti_PCSamplingPCData, correlationId));")
    lines += [
        f"static_assert(sizeof(leadline::nvidia::PcSamplingFunctions{{}}.{ours}) == sizeof(&{theirs}));"
        for ours, theirs in FUNCTIONS.items()
    ]
    compile_ok(tmp_path, "\n".join(lines), where.cupti, where.cuda)


@pytest.mark.parametrize("release", RELEASES)
def test_the_library_has_every_function(release: str) -> None:
    library = headers(release).library.read_bytes()
    names = ["Enable", "Disable", "Start", "Stop", "SetConfigurationAttribute", "GetData", "GetNumStallReasons",
             "GetStallReasons"]  # fmt: skip
    for name in (*(f"cuptiPCSampling{end}" for end in names), "cuptiRegisterComputeCrcCallback"):
        assert f"\0{name}\0".encode() in library, name
