"""Our declarations of CUPTI's readings of hardware counters against the vendor's headers of both majors, and the metrics
that are asked for against what CUPTI says of its chips, which needs no GPU."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from tests.nvidia.test_abi import RELEASES, ROOT, compile_ok, headers

HOST, PM = "CUpti_Profiler_Host_", "CUpti_PmSampling_"
STRUCTURES = {
    "ProfilerInitialize": ("CUpti_Profiler_Initialize_Params", {}),
    "ChipName": ("CUpti_Device_GetChipName_Params", {"device": "deviceIndex", "name": "pChipName"}),
    "HostInitialize": (
        HOST + "Initialize_Params",
        {"type": "profilerType", "chip": "pChipName", "available": "pCounterAvailabilityImage", "host": "pHostObject"},
    ),
    "HostObject": (HOST + "Deinitialize_Params", {"host": "pHostObject"}),
    "HostAddMetrics": (
        HOST + "ConfigAddMetrics_Params",
        {"host": "pHostObject", "names": "ppMetricNames", "count": "numMetrics"},
    ),
    "HostImageSize": (HOST + "GetConfigImageSize_Params", {"host": "pHostObject", "bytes": "configImageSize"}),
    "HostImage": (
        HOST + "GetConfigImage_Params",
        {"host": "pHostObject", "bytes": "configImageSize", "image": "pConfigImage"},
    ),
    "HostPasses": (
        HOST + "GetNumOfPasses_Params",
        {"bytes": "configImageSize", "image": "pConfigImage", "passes": "numOfPasses"},
    ),
    "HostEvaluate": (
        HOST + "EvaluateToGpuValues_Params",
        {"host": "pHostObject", "image": "pCounterDataImage", "bytes": "counterDataImageSize", "index": "rangeIndex",
         "names": "ppMetricNames", "count": "numMetrics", "values": "pMetricValues"},
    ),
    "PmEnable": (PM + "Enable_Params", {"device": "deviceIndex", "sampling": "pPmSamplingObject"}),
    "PmObject": (PM + "Start_Params", {"sampling": "pPmSamplingObject"}),
    "PmConfigure": (
        PM + "SetConfig_Params",
        {"sampling": "pPmSamplingObject", "config_bytes": "configSize", "config": "pConfig",
         "hardware_bytes": "hardwareBufferSize", "interval": "samplingInterval", "trigger": "triggerMode",
         "when_full": "hwBufferAppendMode"},
    ),
    "PmAvailability": (
        PM + "GetCounterAvailability_Params",
        {"device": "deviceIndex", "bytes": "counterAvailabilityImageSize", "image": "pCounterAvailabilityImage"},
    ),
    "PmImageSize": (
        PM + "GetCounterDataSize_Params",
        {"sampling": "pPmSamplingObject", "names": "pMetricNames", "count": "numMetrics", "most": "maxSamples",
         "bytes": "counterDataSize"},
    ),
    "PmImage": (
        PM + "CounterDataImage_Initialize_Params",
        {"sampling": "pPmSamplingObject", "bytes": "counterDataSize", "image": "pCounterData"},
    ),
    "PmDecode": (
        PM + "DecodeData_Params",
        {"sampling": "pPmSamplingObject", "image": "pCounterDataImage", "bytes": "counterDataImageSize",
         "stopped": "decodeStopReason", "overflow": "overflow"},
    ),
    "PmImageInfo": (
        PM + "GetCounterDataInfo_Params",
        {"image": "pCounterDataImage", "bytes": "counterDataImageSize", "room": "numTotalSamples",
         "populated": "numPopulatedSamples", "completed": "numCompletedSamples"},
    ),
    "PmSampleInfo": (
        PM + "CounterData_GetSampleInfo_Params",
        {"sampling": "pPmSamplingObject", "image": "pCounterDataImage", "bytes": "counterDataImageSize",
         "index": "sampleIndex", "start": "startTimestamp", "end": "endTimestamp"},
    ),
}  # fmt: skip
GROWN = ("HostInitialize",)
"""Structures that have more fields behind ours since 13.1; CUPTI goes by the size that they are handed with."""
NUMBERS = {
    "ProfilerType::kPmSampling": "CUPTI_PROFILER_TYPE_PM_SAMPLING",
    "ProfilerType::kRanges": "CUPTI_PROFILER_TYPE_RANGE_PROFILER",
    "TriggerMode::kClocks": "CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_SYSCLK_INTERVAL",
    "TriggerMode::kNanoseconds": "CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL",
    "WhenFull::kKeepOldest": "CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_OLDEST",
    "WhenFull::kKeepLatest": "CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_LATEST",
    "DecodeStop::kOther": "CUPTI_PM_SAMPLING_DECODE_STOP_REASON_OTHER",
    "DecodeStop::kImageFull": "CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL",
    "DecodeStop::kEndOfRecords": "CUPTI_PM_SAMPLING_DECODE_STOP_REASON_END_OF_RECORDS",
}
_VENDORS = ("cupti.h", "cupti_target.h", "cupti_profiler_target.h", "cupti_profiler_host.h", "cupti_pmsampling.h")


@pytest.mark.parametrize("release", RELEASES)
def test_arguments_and_numbers_are_the_vendors(tmp_path: Path, release: str) -> None:
    where = headers(release)
    major = where.major
    lines = [f"#include <{header}>" for header in _VENDORS]
    lines += [
        '#include "providers/nvidia/pm_sampling_abi.h"',
        "#include <cstddef>",
        "namespace ours = leadline::nvidia::cupti;",
    ]
    for our, (their, fields) in STRUCTURES.items():
        size = "ours::kPmDecodeBytes" if our == "PmDecode" else f"sizeof(ours::{our})"
        same = "<=" if our in GROWN and major >= 13 else "=="
        lines.append(f'static_assert({size} {same} {their}_STRUCT_SIZE, "{our}");')
        for ours, theirs in {"size": "structSize", "reserved": "pPriv", **fields}.items():
            lines.append(f"static_assert(offsetof(ours::{our}, {ours}) == offsetof({their}, {theirs}));")
            lines.append(f"static_assert(sizeof(((ours::{our}*)0)->{ours}) == sizeof((({their}*)0)->{theirs}));")
    new = {"kInvalidChipName": "CUPTI_ERROR_INVALID_CHIP_NAME"} if major >= 13 else {}
    numbers = {**NUMBERS, **new}
    lines += [f"static_assert(int(ours::{our}) == int({theirs}));" for our, theirs in numbers.items()]
    compile_ok(tmp_path, "\n".join(lines), where.cupti, where.cuda)


@pytest.mark.parametrize("release", RELEASES)
def test_the_library_has_every_function(release: str) -> None:
    library = headers(release).library.read_bytes()
    source = (ROOT / "native/providers/nvidia/cupti_library.cpp").read_text()
    names = [line.split('"')[1] for line in source.splitlines() if "bind(library" in line and ", c." in line]
    assert len(names) == 20
    assert [name for name in names if f"\0{name}\0".encode() not in library] == []


CHIPS = {
    "TU102": {"occupancy", "dram", "tensor", "l2", "issue", "shared"},
    "GA100": {"occupancy", "dram", "tensor", "l2", "issue", "shared"},
    "GA102": {"occupancy", "dram", "tensor", "l2", "issue", "shared"},
    "AD102": {"occupancy", "dram", "tensor", "l2", "issue", "shared"},
    "GH100": {"occupancy", "dram", "tensor", "l2", "issue", "shared"},
    "GB100": {"occupancy", "dram", "tensor", "l2", "issue"},
    "GB202": {"occupancy", "dram", "tensor", "l2"},  # the others want a run of their own
}
"""What is counted together where everything is asked for, by what CUPTI itself says."""


def test_every_chip_counts_what_is_asked_in_one_pass(tmp_path: Path) -> None:
    """By CUPTI's own plan for each chip, through the same code that chooses in a program."""
    assert chosen(tmp_path) == CHIPS


def chosen(tmp_path: Path, *options: str) -> dict[str, set[str]]:
    program = tmp_path / "chosen"
    native = ROOT / "native"
    files = ("providers/nvidia/counter_choice.cpp", "gpu/counter_choice.cpp")
    sources = [Path(__file__).with_name("chosen_counters.cpp"), *(native / file for file in files)]
    subprocess.run(
        [
            "g++",
            "-std=c++20",
            "-O1",
            f"-I{native}",
            f"-I{native / 'include'}",
            *map(str, sources),
            "-ldl",
            "-o",
            str(program),
        ],
        check=True,
        timeout=120,
    )
    # Releases after 13.0 plan nothing without a driver; a toolkit of that release answers.
    libraries = [headers(13).library, *sorted(Path("/usr/local").glob("cuda-13.0/lib*/libcupti.so.13"))]
    for library in libraries:
        command = [str(program), str(library), *options, *CHIPS]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode != 3:
            break
    else:
        pytest.skip(f"No CUPTI that plans without a driver: {', '.join(map(str, libraries))}.")
    assert done.returncode == 0, done.stderr
    return {chip: set(names) for chip, names in json.loads(done.stdout).items()}


def test_names_of_the_command_line_are_those_that_are_counted() -> None:
    from leadline.capture.config import GPU_METRICS

    source = (ROOT / "native/providers/nvidia/counter_choice.cpp").read_text()
    assert [line.split('"')[1] for line in source.splitlines() if line.startswith('      {"')] == list(GPU_METRICS)
